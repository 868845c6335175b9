"""Who stands in the network, what that changes for them, and how the responder writes from outside."""

from __future__ import annotations

import json

import msgspec
import pytest

from stacks import bulkheads
from tests.infra.networks import INSIDE, REGIONS, Net
from tests.infra.synthesized import ACCOUNT, Deployment

INTERFACES = {
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
}
OUTSIDE = {"authorizer", "announcer", "eraser", "exporter", "responder"}


@pytest.fixture(params=REGIONS)
def region(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class TestWhoStandsInIt:
    def test_all_that_talk_to_valkey_and_nobody_else(self, aws_vpc: Deployment, region: str) -> None:
        placed = {
            resource["Properties"]["Handler"].split(".")[1]: "VpcConfig" in resource["Properties"]
            for resource in aws_vpc.resources("AWS::Lambda::Function", f"Realtime-{region}").values()
            if resource["Properties"]["Handler"].startswith("handlers.")
        }
        assert placed == dict.fromkeys(INSIDE, True) | dict.fromkeys(OUTSIDE, False)
        assert {name for name in placed if aws_vpc.config(region, name).hot is not None} == INSIDE

    def test_each_of_them_has_its_alarms(self, aws_vpc: Deployment, region: str) -> None:
        alarms = aws_vpc.resources("AWS::CloudWatch::Alarm", f"Observability-{region}").values()
        watched = {
            dimension["Value"].removeprefix("threadkeep-prod-")
            for alarm in alarms
            if alarm["Properties"].get("MetricName") == "Errors"
            for dimension in alarm["Properties"]["Dimensions"]
        }
        assert watched - {bulkhead.name for bulkhead in bulkheads.ARCHIVE} == INSIDE | OUTSIDE

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
        placed = aws_vpc.function(region, name)["Properties"]["VpcConfig"]
        assert placed["Ipv6AllowedForDualStack"] is True
        (group,) = placed["SecurityGroupIds"]
        assert aws_vpc.referred(group) == net.group("Functions that talk to Valkey")
        assert [aws_vpc.referred(subnet) for subnet in placed["SubnetIds"]] == net.subnets

    @pytest.mark.parametrize("name", sorted(INSIDE))
    def test_each_with_rights_on_interfaces_that_its_code_cannot_use(
        self, aws_vpc: Deployment, region: str, name: str
    ) -> None:
        own = aws_vpc.function(region, name)
        role = own["Properties"]["Role"]["Fn::GetAtt"][0]
        properties = aws_vpc.resources("AWS::IAM::Role", f"Realtime-{region}")[role]["Properties"]
        assert not {"ManagedPolicyArns", "Policies"} & set(properties)
        assert aws_vpc.rights(region, name)["*"] >= INTERFACES
        (denied,) = [statement for statement in aws_vpc.statements(region, name) if statement["Effect"] == "Deny"]
        arn = f"arn:aws:lambda:{region}:{ACCOUNT}:function:threadkeep-prod-{name}"
        assert denied["Condition"] == {"ArnEquals": {"lambda:SourceFunctionArn": arn}}
        assert (set(denied["Action"]), denied["Resource"]) == (INTERFACES, "*")
        # Lambda refuses to make a function whose role does not let it yet.
        policies = aws_vpc.resources("AWS::IAM::Policy", f"Realtime-{region}")
        assert [name for name in own["DependsOn"] if name in policies]

    @pytest.mark.parametrize("name", sorted(INSIDE - {"produce"}))
    def test_each_may_do_and_is_told_what_it_is_without_a_network_but_for_its_cache(
        self, aws: Deployment, aws_vpc: Deployment, region: str, name: str
    ) -> None:
        inside = aws_vpc.rights(region, name)
        inside["*"] -= INTERFACES
        outside = aws.rights(region, name)
        assert inside == {
            resource.replace(":serverlesscache:threadkeep-prod-public", ":serverlesscache:threadkeep-prod-vpc"): actions
            for resource, actions in outside.items()
        }
        told, usual = aws_vpc.config(region, name), aws.config(region, name)
        assert told.hot is not None
        assert told.hot.cache == "threadkeep-prod-vpc"
        assert (told.ipv6_out, usual.ipv6_out) == (True, False)
        assert msgspec.structs.replace(told, hot=usual.hot, ipv6_out=False) == usual

    @pytest.mark.parametrize("name", sorted(OUTSIDE - {"responder"}))
    def test_whoever_stands_outside_is_as_without_a_network(
        self, aws: Deployment, aws_vpc: Deployment, region: str, name: str
    ) -> None:
        assert aws_vpc.config(region, name) == aws.config(region, name)
        assert aws_vpc.rights(region, name) == aws.rights(region, name)


class TestTheResponder:
    def test_knows_no_valkey_and_no_connections_and_writes_nothing(self, aws_vpc: Deployment, region: str) -> None:
        told = aws_vpc.config(region, "responder")
        assert told.hot is None
        assert told.connections_url == ""
        assert told.produce_function == "threadkeep-prod-produce"
        assert told.model is not None
        actions = {action for allowed in aws_vpc.rights(region, "responder").values() for action in allowed}
        assert not {action for action in actions if action.startswith(("elasticache:", "execute-api:"))}
        assert {action for action in actions if action.startswith(("dynamodb:", "s3:"))} == {
            "dynamodb:GetItem",
            "dynamodb:Query",
            "s3:GetObject",
            "s3:ListBucket",
        }

    def test_alone_has_its_answers_written_by_produce(self, aws_vpc: Deployment, region: str) -> None:
        produce = f"arn:aws:lambda:{region}:{ACCOUNT}:function:threadkeep-prod-produce"
        invokes = {
            name: aws_vpc.rights(region, name).get(produce, set())
            for name in INSIDE | OUTSIDE
            if produce in aws_vpc.rights(region, name)
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
        own, produced = aws.config(region, "responder"), aws_vpc.config(region, "produce")
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


def test_the_local_target_has_no_network_but_its_responder_goes_by_produce(local_vpc: Deployment) -> None:
    assert not [name for name in local_vpc.templates if name.startswith(("Network-", "Hot-"))]
    assert not [kind for kind in local_vpc.types if kind.startswith("AWS::EC2::")]
    for region in local_vpc.settings.regions:
        told = local_vpc.config(region, "responder")
        assert (told.hot, told.produce_function) == (None, "threadkeep-local-produce")
        produced = local_vpc.config(region, "produce")
        assert produced.hot is not None
        assert produced.ipv6_out is False
