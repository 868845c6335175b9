"""`network: vpc`: nothing leads in, little leads out, and only who talks to Valkey stands in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import msgspec
import pytest

from stacks import bulkheads
from stacks.app import new_app, synthesize
from stacks.network_stack import NetworkStack
from stacks.settings import Settings
from stacks.synth import SETTINGS
from tests.infra.synthesized import Deployment, Resource, resolve
from threadkeep.config import Config

REGIONS = ("eu-central-1", "us-east-1")
ZONES = {
    "eu-central-1": ["eu-central-1a", "eu-central-1b", "eu-central-1c"],
    "us-east-1": ["us-east-1a", "us-east-1d"],
}
INSIDE = {"connection", "send", "stream", "history", "sweeper", "herald", "produce"}
OUTSIDE = {"authorizer", "announcer", "eraser", "exporter", "responder"}
INTERFACES = {
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
}


@pytest.fixture(params=REGIONS)
def region(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Net:
    """A region's network."""

    def __init__(self, template: dict[str, Any]) -> None:
        self._resources: dict[str, Resource] = template["Resources"]
        self.outputs: dict[str, Any] = template.get("Outputs", {})

    def all(self, kind: str) -> dict[str, dict[str, Any]]:
        """Properties of all resources of a type."""
        return {name: one["Properties"] for name, one in self._resources.items() if one["Type"] == kind}

    @property
    def types(self) -> set[str]:
        return {one["Type"] for one in self._resources.values()}

    def group(self, description: str) -> str:
        """The security group of that description."""
        groups = self.all("AWS::EC2::SecurityGroup")
        (name,) = [name for name, group in groups.items() if group["GroupDescription"] == description]
        return name

    @property
    def subnets(self) -> list[str]:
        return [*self.all("AWS::EC2::Subnet")]


@pytest.fixture
def net(aws_vpc: Deployment, region: str) -> Net:
    return Net(aws_vpc.templates[f"Network-{region}"])


def referred(deployment: Deployment, value: Any) -> str:
    """The resource that a reference to another stack's output ends at."""
    told = value["Fn::GetStackOutput"]
    stack = told["StackName"].removeprefix("Threadkeep-prod-")
    end = deployment.templates[stack]["Outputs"][told["OutputName"]]["Value"]
    return str(end["Ref"] if "Ref" in end else end["Fn::GetAtt"][0])


def function(deployment: Deployment, region: str, name: str) -> Resource:
    (found,) = [
        resource
        for resource in deployment.resources("AWS::Lambda::Function", f"Realtime-{region}").values()
        if resource["Properties"]["Handler"] == f"handlers.{name}.handler"
    ]
    return found


def config(deployment: Deployment, region: str, name: str) -> Config:
    return Config.from_environment(
        resolve(function(deployment, region, name)["Properties"]["Environment"]["Variables"])
    )


def statements(deployment: Deployment, region: str, name: str) -> list[dict[str, Any]]:
    """What its role's policies say."""
    role = function(deployment, region, name)["Properties"]["Role"]["Fn::GetAtt"][0]
    return [
        statement
        for policy in deployment.resources("AWS::IAM::Policy", f"Realtime-{region}").values()
        if {"Ref": role} in policy["Properties"]["Roles"]
        for statement in resolve(policy["Properties"]["PolicyDocument"])["Statement"]
    ]


def rights(deployment: Deployment, region: str, name: str) -> dict[str, set[str]]:
    """Allowed actions by resource."""
    found: dict[str, set[str]] = {}
    for statement in statements(deployment, region, name):
        if statement["Effect"] == "Allow":
            for resource in listed(statement["Resource"]):
                found.setdefault(resource, set()).update(listed(statement["Action"]))
    return found


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


class TestTheNetwork:
    def test_is_one_a_region_and_none_where_valkey_has_a_public_endpoint(
        self, aws: Deployment, aws_vpc: Deployment
    ) -> None:
        assert set(aws_vpc.templates) == set(aws.templates) | {f"Network-{region}" for region in REGIONS}
        assert not [kind for kind in types(aws) if kind.startswith("AWS::EC2::")]

    def test_has_nothing_that_leads_in_and_nothing_that_costs(self, net: Net) -> None:
        assert {kind for kind in net.types if kind.startswith("AWS::EC2::")} == {
            "AWS::EC2::VPC",
            "AWS::EC2::VPCCidrBlock",
            "AWS::EC2::Subnet",
            "AWS::EC2::RouteTable",
            "AWS::EC2::SubnetRouteTableAssociation",
            "AWS::EC2::Route",
            "AWS::EC2::EgressOnlyInternetGateway",
            "AWS::EC2::VPCEndpoint",
            "AWS::EC2::SecurityGroup",
            "AWS::EC2::SecurityGroupIngress",
            "AWS::EC2::SecurityGroupEgress",
            "AWS::EC2::FlowLog",
        }

    def test_has_subnets_of_both_families_in_the_zones_of_the_settings(self, net: Net, region: str) -> None:
        subnets = net.all("AWS::EC2::Subnet").values()
        assert [subnet["AvailabilityZone"] for subnet in subnets] == ZONES[region]
        for subnet in subnets:
            assert subnet["AssignIpv6AddressOnCreation"] is True
            assert subnet["MapPublicIpOnLaunch"] is False
            assert {"CidrBlock", "Ipv6CidrBlock"} <= set(subnet)

    def test_leads_out_over_ipv6_alone(self, net: Net) -> None:
        ((gateway, _),) = net.all("AWS::EC2::EgressOnlyInternetGateway").items()
        tables = {
            link["SubnetId"]["Ref"]: link["RouteTableId"]["Ref"]
            for link in net.all("AWS::EC2::SubnetRouteTableAssociation").values()
        }
        assert set(tables) == set(net.subnets)
        routes = [
            (
                route["RouteTableId"]["Ref"],
                route["DestinationIpv6CidrBlock"],
                route["EgressOnlyInternetGatewayId"]["Ref"],
            )
            for route in net.all("AWS::EC2::Route").values()
        ]
        assert sorted(routes) == sorted((table, "::/0", gateway) for table in tables.values())

    def test_leads_every_subnet_to_the_regions_own_table_and_bucket(self, net: Net) -> None:
        endpoints = net.all("AWS::EC2::VPCEndpoint").values()
        services = {endpoint["ServiceName"]["Fn::Join"][1][-1] for endpoint in endpoints}
        assert services == {".dynamodb", ".s3"}
        tables = set(net.all("AWS::EC2::RouteTable"))
        for endpoint in endpoints:
            assert endpoint["VpcEndpointType"] == "Gateway"
            assert endpoint.get("IpAddressType", "ipv4") == "ipv4"
            assert {table["Ref"] for table in endpoint["RouteTableIds"]} == tables

    def test_lets_functions_reach_https_and_valkey_and_nobody_reach_them(self, net: Net) -> None:
        functions, cache = net.group("Functions that talk to Valkey"), net.group("Valkey")
        groups = net.all("AWS::EC2::SecurityGroup")
        assert set(groups) == {functions, cache}
        assert [
            (rule.get("CidrIp") or rule["CidrIpv6"], rule["IpProtocol"], rule["FromPort"], rule["ToPort"])
            for rule in groups[functions]["SecurityGroupEgress"]
        ] == [("0.0.0.0/0", "tcp", 443, 443), ("::/0", "tcp", 443, 443)]
        assert "SecurityGroupIngress" not in groups[functions]
        assert "SecurityGroupIngress" not in groups[cache]
        # CloudFormation's way of saying nothing: without a rule a group could send anywhere.
        (nowhere,) = groups[cache]["SecurityGroupEgress"]
        assert (nowhere["CidrIp"], nowhere["IpProtocol"]) == ("255.255.255.255/32", "icmp")
        assert between(net, "AWS::EC2::SecurityGroupIngress", "SourceSecurityGroupId") == {
            (cache, functions, 6379),
            (cache, functions, 6380),
        }
        assert between(net, "AWS::EC2::SecurityGroupEgress", "DestinationSecurityGroupId") == {
            (functions, cache, 6379),
            (functions, cache, 6380),
        }

    def test_writes_down_what_it_refused_for_a_month(self, net: Net) -> None:
        (flows,) = net.all("AWS::EC2::FlowLog").values()
        ((vpc, _),) = net.all("AWS::EC2::VPC").items()
        assert (flows["ResourceId"], flows["TrafficType"]) == ({"Ref": vpc}, "REJECT")
        ((name, group),) = net.all("AWS::Logs::LogGroup").items()
        assert flows["LogGroupName"] == {"Ref": name}
        assert group["RetentionInDays"] == 30

    def test_leads_to_a_valkey_of_ones_own_at_its_port(self, tmp_path: Path) -> None:
        net = Net(alone(tmp_path, hot_endpoint="valkey.internal.example.com:7000"))
        rules = net.all("AWS::EC2::SecurityGroup")[net.group("Functions that talk to Valkey")]["SecurityGroupEgress"]
        assert [(rule.get("CidrIp"), rule["FromPort"]) for rule in rules] == [
            ("0.0.0.0/0", 443),
            (None, 443),
            ("0.0.0.0/0", 7000),
        ]


class TestZones:
    def test_that_are_named_need_no_look_into_the_account(self, tmp_path: Path) -> None:
        template = alone(tmp_path, account="123456789012")
        assert [subnet["AvailabilityZone"] for subnet in Net(template).all("AWS::EC2::Subnet").values()] == ZONES[
            "eu-central-1"
        ]
        assert "missing" not in json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))

    def test_that_are_not_named_are_the_regions_first_two(self, tmp_path: Path) -> None:
        subnets = Net(alone(tmp_path, availability_zones={})).all("AWS::EC2::Subnet").values()
        assert [subnet["AvailabilityZone"] for subnet in subnets] == [
            {"Fn::Select": [number, {"Fn::GetAZs": ""}]} for number in range(2)
        ]


class TestWhoStandsInIt:
    def test_all_that_talk_to_valkey_and_nobody_else(self, aws_vpc: Deployment, region: str) -> None:
        placed = {
            resource["Properties"]["Handler"].split(".")[1]: "VpcConfig" in resource["Properties"]
            for resource in aws_vpc.resources("AWS::Lambda::Function", f"Realtime-{region}").values()
            if resource["Properties"]["Handler"].startswith("handlers.")
        }
        assert placed == dict.fromkeys(INSIDE, True) | dict.fromkeys(OUTSIDE, False)
        assert {name for name in placed if config(aws_vpc, region, name).hot is not None} == INSIDE

    def test_not_what_looks_things_up_at_deploy_time_nor_the_archive(self, aws_vpc: Deployment) -> None:
        others = [
            resource
            for name, resource in aws_vpc.resources("AWS::Lambda::Function").items()
            if not (name.startswith("Realtime-") and resource["Properties"]["Handler"].startswith("handlers."))
        ]
        assert len(others) == len(REGIONS) + len(bulkheads.ARCHIVE)
        assert not [resource for resource in others if "VpcConfig" in resource["Properties"]]

    @pytest.mark.parametrize("name", sorted(INSIDE))
    def test_each_in_every_subnet_over_both_families_in_the_one_group(
        self, aws_vpc: Deployment, net: Net, region: str, name: str
    ) -> None:
        placed = function(aws_vpc, region, name)["Properties"]["VpcConfig"]
        assert placed["Ipv6AllowedForDualStack"] is True
        (group,) = placed["SecurityGroupIds"]
        assert referred(aws_vpc, group) == net.group("Functions that talk to Valkey")
        assert [referred(aws_vpc, subnet) for subnet in placed["SubnetIds"]] == net.subnets

    @pytest.mark.parametrize("name", sorted(INSIDE))
    def test_each_with_rights_on_interfaces_that_its_code_cannot_use(
        self, aws_vpc: Deployment, region: str, name: str
    ) -> None:
        own = function(aws_vpc, region, name)
        role = own["Properties"]["Role"]["Fn::GetAtt"][0]
        properties = aws_vpc.resources("AWS::IAM::Role", f"Realtime-{region}")[role]["Properties"]
        assert not {"ManagedPolicyArns", "Policies"} & set(properties)
        assert rights(aws_vpc, region, name)["*"] >= INTERFACES
        (denied,) = [statement for statement in statements(aws_vpc, region, name) if statement["Effect"] == "Deny"]
        arn = f"arn:aws:lambda:{region}:111122223333:function:threadkeep-prod-{name}"
        assert denied["Condition"] == {"ArnEquals": {"lambda:SourceFunctionArn": arn}}
        assert (set(denied["Action"]), denied["Resource"]) == (INTERFACES, "*")
        # Lambda refuses to make a function whose role does not let it yet.
        policies = aws_vpc.resources("AWS::IAM::Policy", f"Realtime-{region}")
        assert [name for name in own["DependsOn"] if name in policies]

    @pytest.mark.parametrize("name", sorted(INSIDE - {"produce"}))
    def test_each_may_do_and_is_told_what_it_is_without_a_network_but_for_its_cache(
        self, aws: Deployment, aws_vpc: Deployment, region: str, name: str
    ) -> None:
        inside = rights(aws_vpc, region, name)
        inside["*"] -= INTERFACES
        outside = rights(aws, region, name)
        assert inside == {
            resource.replace(":serverlesscache:threadkeep-prod-public", ":serverlesscache:threadkeep-prod-vpc"): actions
            for resource, actions in outside.items()
        }
        told, usual = config(aws_vpc, region, name), config(aws, region, name)
        assert told.hot is not None
        assert told.hot.cache == "threadkeep-prod-vpc"
        assert (told.ipv6_out, usual.ipv6_out) == (True, False)
        assert msgspec.structs.replace(told, hot=usual.hot, ipv6_out=False) == usual

    @pytest.mark.parametrize("name", sorted(OUTSIDE - {"responder"}))
    def test_whoever_stands_outside_is_as_without_a_network(
        self, aws: Deployment, aws_vpc: Deployment, region: str, name: str
    ) -> None:
        assert config(aws_vpc, region, name) == config(aws, region, name)
        assert rights(aws_vpc, region, name) == rights(aws, region, name)


class TestTheResponder:
    def test_knows_no_valkey_and_no_connections_and_writes_nothing(self, aws_vpc: Deployment, region: str) -> None:
        told = config(aws_vpc, region, "responder")
        assert told.hot is None
        assert told.connections_url == ""
        assert told.produce_function == "threadkeep-prod-produce"
        assert told.model is not None
        actions = {action for allowed in rights(aws_vpc, region, "responder").values() for action in allowed}
        assert not {action for action in actions if action.startswith(("elasticache:", "execute-api:"))}
        assert {action for action in actions if action.startswith(("dynamodb:", "s3:"))} == {
            "dynamodb:GetItem",
            "dynamodb:Query",
            "s3:GetObject",
            "s3:ListBucket",
        }

    def test_alone_has_its_answers_written_by_produce(self, aws_vpc: Deployment, region: str) -> None:
        produce = f"arn:aws:lambda:{region}:111122223333:function:threadkeep-prod-produce"
        invokes = {
            name: rights(aws_vpc, region, name).get(produce, set())
            for name in INSIDE | OUTSIDE
            if produce in rights(aws_vpc, region, name)
        }
        assert invokes == {"responder": {"lambda:InvokeFunction"}}
        permitted = [
            permission["Properties"]["FunctionName"]
            for permission in aws_vpc.resources("AWS::Lambda::Permission", f"Realtime-{region}").values()
        ]
        assert not [name for name in permitted if "Produce" in json.dumps(name)]

    def test_has_produce_do_what_it_does_itself_without_a_network(
        self, aws: Deployment, aws_vpc: Deployment, region: str
    ) -> None:
        own, produced = config(aws, region, "responder"), config(aws_vpc, region, "produce")
        assert produced.model is None
        assert produced.hot is not None
        assert produced.hot.user == "threadkeep-prod-produce"
        assert produced == msgspec.structs.replace(own, model=None, hot=produced.hot, ipv6_out=True)

    def test_writes_itself_without_a_network_so_that_nothing_is_there_to_be_invoked(self, aws: Deployment) -> None:
        assert not [
            resource
            for resource in aws.resources("AWS::Lambda::Function").values()
            if resource["Properties"]["Handler"] == "handlers.produce.handler"
        ]


class TestValkey:
    def test_stands_in_the_network_and_has_no_public_endpoint(
        self, aws: Deployment, aws_vpc: Deployment, net: Net, region: str
    ) -> None:
        cache = dict(aws_vpc.only("AWS::ElastiCache::ServerlessCache", f"Hot-{region}")["Properties"])
        (group,) = cache.pop("SecurityGroupIds")
        assert referred(aws_vpc, group) == net.group("Valkey")
        assert [referred(aws_vpc, subnet) for subnet in cache.pop("SubnetIds")] == net.subnets
        public = dict(aws.only("AWS::ElastiCache::ServerlessCache", f"Hot-{region}")["Properties"])
        assert public.pop("ConnectionType") == "public"
        # It cannot be moved: another network has another cache, which wants another name.
        names = cache.pop("ServerlessCacheName"), public.pop("ServerlessCacheName")
        assert names == ("threadkeep-prod-vpc", "threadkeep-prod-public")
        assert cache == public

    def test_admits_who_stands_inside_and_nobody_else(self, aws_vpc: Deployment, region: str) -> None:
        users = aws_vpc.resources("AWS::ElastiCache::User", f"Hot-{region}").values()
        assert {user["Properties"]["UserId"] for user in users} == {f"threadkeep-prod-{name}" for name in INSIDE}


def test_the_gateway_has_addresses_of_both_families(aws_vpc: Deployment, region: str) -> None:
    """Over IPv4 nobody inside would reach `@connections`."""
    assert aws_vpc.only("AWS::ApiGatewayV2::Api", f"Realtime-{region}")["Properties"]["IpAddressType"] == "dualstack"


def test_the_network_comes_before_who_stands_in_it(aws_vpc: Deployment, region: str) -> None:
    for stack in ("Hot", "Realtime"):
        assert f"Network-{region}" in aws_vpc.dependencies[f"{stack}-{region}"]
    assert aws_vpc.dependencies[f"Network-{region}"] == set()
    assert f"Network-{region}" not in aws_vpc.protected


def test_the_local_target_has_no_network_but_its_responder_goes_by_produce(local_vpc: Deployment) -> None:
    assert not [name for name in local_vpc.templates if name.startswith(("Network-", "Hot-"))]
    assert not [kind for kind in types(local_vpc) if kind.startswith("AWS::EC2::")]
    for region in local_vpc.settings.regions:
        told = config(local_vpc, region, "responder")
        assert (told.hot, told.produce_function) == (None, "threadkeep-local-produce")
        produced = config(local_vpc, region, "produce")
        assert produced.hot is not None
        assert produced.ipv6_out is False


def types(deployment: Deployment) -> set[str]:
    return {one["Type"] for template in deployment.templates.values() for one in template["Resources"].values()}


def between(net: Net, kind: str, other: str) -> set[tuple[str, str, int]]:
    """Rules from group to group: whose, with whom, at which one port of TCP."""
    rules = net.all(kind).values()
    assert all(rule["IpProtocol"] == "tcp" and rule["FromPort"] == rule["ToPort"] for rule in rules)
    return {(rule["GroupId"]["Fn::GetAtt"][0], rule[other]["Fn::GetAtt"][0], rule["FromPort"]) for rule in rules}


def alone(outdir: Path, **changed: Any) -> dict[str, Any]:
    """The home region's network by itself, with other settings."""
    settings = msgspec.structs.replace(Settings.from_file(SETTINGS), network="vpc", **changed)
    app = new_app("aws", outdir=outdir)
    env = cdk.Environment(account=settings.account, region=settings.home_region)
    NetworkStack(app, "Alone", settings=settings, env=env)
    synthesize(app)
    template: dict[str, Any] = json.loads((outdir / "Alone.template.json").read_text(encoding="utf-8"))
    return template
