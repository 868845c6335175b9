"""`network: vpc`: nothing leads in, little leads out, and only who talks to Valkey stands in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import msgspec
import pytest

from stacks.app import new_app, synthesize
from stacks.network_stack import NetworkStack
from stacks.settings import Settings
from stacks.synth import SETTINGS
from tests.infra.networks import INSIDE, REGIONS, Net
from tests.infra.synthesized import Deployment

ZONES = {
    "eu-central-1": ["eu-central-1a", "eu-central-1b", "eu-central-1c"],
    "us-east-1": ["us-east-1a", "us-east-1d"],
}


@pytest.fixture(params=REGIONS)
def region(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class TestTheNetwork:
    def test_is_one_a_region_and_none_where_valkey_has_a_public_endpoint(
        self, aws: Deployment, aws_vpc: Deployment
    ) -> None:
        assert set(aws_vpc.templates) == set(aws.templates) | {f"Network-{region}" for region in REGIONS}
        assert not [kind for kind in aws.types if kind.startswith("AWS::EC2::")]

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


class TestValkey:
    def test_stands_in_the_network_and_has_no_public_endpoint(
        self, aws: Deployment, aws_vpc: Deployment, net: Net, region: str
    ) -> None:
        cache = dict(aws_vpc.only("AWS::ElastiCache::ServerlessCache", f"Hot-{region}")["Properties"])
        (group,) = cache.pop("SecurityGroupIds")
        assert aws_vpc.referred(group) == net.group("Valkey")
        assert [aws_vpc.referred(subnet) for subnet in cache.pop("SubnetIds")] == net.subnets
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
