"""Every function of every target has the rights of its row in `stacks.bulkheads`, to the letter, and no more."""

from __future__ import annotations

from typing import Final

import msgspec
import pytest

from stacks import bulkheads
from stacks.bulkheads import Bulkhead
from tests.infra.rights import KNOW_NO_RESOURCE, WRITE_LOGS, allowed, functions, listed, ours, rights_of
from tests.infra.synthesized import Deployment, resolve
from threadkeep import schema

TARGETS: Final = ("aws", "aws_vpc", "local", "local_vpc")
NAMED_BY_A_ROW: Final = {
    "table",
    "beside_others",
    "other_tables",
    "owner_index",
    "own_exports",
    "due_index",
    "objects",
    "segments",
    "blobs",
    "uploads",
    "exports",
    "sweeps",
    "hot",
    "pushes",
    "invokes",
    "model",
    "sends",
    "takes",
}
"""Columns that give rights; `tests.infra.rights` reads each of them."""
NO_RIGHTS: Final = {"name", "concurrency_percent", "memory_mib", "timeout_s", "terms"}


@pytest.fixture(params=TARGETS)
def deployment(request: pytest.FixtureRequest) -> Deployment:
    found: Deployment = request.getfixturevalue(request.param)
    return found


def test_every_column_of_the_table_of_bulkheads_is_read_here() -> None:
    assert set(Bulkhead.__struct_fields__) == NAMED_BY_A_ROW | NO_RIGHTS
    assert not NAMED_BY_A_ROW & NO_RIGHTS


def test_every_row_is_a_function_of_some_target(request: pytest.FixtureRequest) -> None:
    rows = {msgspec.json.encode(row) for target in TARGETS for _, row in ours(request.getfixturevalue(target))}
    assert rows == {msgspec.json.encode(row) for row in bulkheads.ALL}


def test_every_functions_rights_are_its_row_to_the_letter(deployment: Deployment) -> None:
    for function, row in ours(deployment):
        found = rights_of(function.statements(deployment))
        assert found == allowed(deployment, function, row), (function.region, function.name)


def test_no_right_is_given_by_what_it_leaves_out_and_no_action_has_a_wildcard(deployment: Deployment) -> None:
    for name, template in deployment.templates.items():
        for logical_id, resource in template["Resources"].items():
            if resource["Type"] != "AWS::IAM::Policy" or logical_id.startswith("LocalSettings"):
                continue  # what sets the emulator's table up is deployed to nothing else: tests/infra/test_local.py
            for statement in resolve(resource["Properties"]["PolicyDocument"])["Statement"]:
                place = (name, logical_id)
                assert not {"NotAction", "NotResource", "NotPrincipal"} & set(statement), place
                actions = set(listed(statement["Action"]))
                assert not [action for action in actions if "*" in action or "?" in action], place
                if statement["Effect"] == "Allow" and "*" in listed(statement["Resource"]):
                    assert actions <= KNOW_NO_RESOURCE, place


def test_what_is_denied_are_network_interfaces_to_the_functions_own_code(deployment: Deployment) -> None:
    for function, _ in ours(deployment):
        denied = [one for one in function.statements(deployment) if one["Effect"] == "Deny"]
        assert len(denied) == ("VpcConfig" in function.resource)
        for statement in denied:
            assert {action.split(":")[0] for action in listed(statement["Action"])} == {"ec2"}
            (source,) = statement["Condition"]["ArnEquals"].values()
            assert source.endswith(f":function:{function.resource['FunctionName']}")


def test_conditions_only_narrow_the_exporters_writes(deployment: Deployment) -> None:
    for function, row in ours(deployment):
        narrowed = [one for one in function.statements(deployment) if one["Effect"] == "Allow" and "Condition" in one]
        if not row.own_exports:
            assert narrowed == []
            continue
        (statement,) = narrowed
        assert set(listed(statement["Action"])) == set(row.own_exports)
        leading = {"dynamodb:LeadingKeys": [f"*#{schema.EXPORTS_MARK}*"]}
        assert statement["Condition"] == {"ForAllValues:StringLike": leading}


def test_no_role_is_shared_and_each_is_taken_by_a_service_of_aws_alone(deployment: Deployment) -> None:
    taken: list[tuple[str, str]] = [
        (function.stack, function.resource["Role"]["Fn::GetAtt"][0]) for function in functions(deployment)
    ]
    assert len(set(taken)) == len(taken)
    for name, resource in deployment.resources("AWS::IAM::Role").items():
        for statement in resource["Properties"]["AssumeRolePolicyDocument"]["Statement"]:
            assert set(statement["Principal"]) == {"Service"}, name
            assert statement["Action"] == "sts:AssumeRole", name
            assert "*" not in str(statement["Principal"]), name


def test_no_template_has_users_groups_or_policies_of_its_own_accord(deployment: Deployment) -> None:
    assert not deployment.types & {
        "AWS::IAM::User",
        "AWS::IAM::Group",
        "AWS::IAM::AccessKey",
        "AWS::IAM::ManagedPolicy",
        "AWS::Lambda::Url",
    }


def test_only_our_own_gateway_and_schedules_call_functions(deployment: Deployment) -> None:
    for name, resource in deployment.resources("AWS::Lambda::Permission").items():
        properties = resolve(resource["Properties"])
        assert properties["Action"] == "lambda:InvokeFunction", name
        assert properties["Principal"] in {"apigateway.amazonaws.com", "events.amazonaws.com"}, name
        source = properties["SourceArn"]
        assert source.startswith("<") or ":<" in source, "of this very stack's gateway or rule"
        assert "FunctionUrlAuthType" not in properties


def test_what_serves_deploying_may_only_describe_the_table(request: pytest.FixtureRequest) -> None:
    deployment: Deployment = request.getfixturevalue("aws_vpc")
    others = [function for function in functions(deployment) if not function.name]
    assert len(others) == len(deployment.settings.regions)
    for function in others:
        actions = set().union(*rights_of(function.statements(deployment)).values())
        assert actions == WRITE_LOGS | {"dynamodb:DescribeTable"}
