"""The checks of `make synth` pass on what we have, and would not on what they are for."""

from __future__ import annotations

import json
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3

from stacks.app import FindingsError, new_app, synthesize
from stacks.bundle import Bundle
from stacks.compose import compose
from stacks.settings import Settings
from stacks.synth import SETTINGS, lint
from tests.infra.synthesized import Deployment


def test_cfn_lint_finds_nothing_in_either_region_but_what_is_wrong(aws: Deployment, tmp_path: Path) -> None:
    template = json.loads(json.dumps(aws.templates["Hot-us-east-1"]))
    template["Resources"]["Cache"]["Properties"]["ConnectionType"] = "internet"
    path = tmp_path / "wrong.template.json"
    path.write_text(json.dumps(template), encoding="utf-8")
    assert len(aws.paths) == len(aws.templates) == 12
    (finding,) = lint([*aws.paths, path], aws.settings.regions)
    assert finding.startswith("wrong.template.json: E3030 'internet' is not one of ['public', 'vpc']")
    assert finding.endswith("at Resources/Cache/Properties/ConnectionType")


def test_nor_does_it_with_a_network_of_our_own(aws_vpc: Deployment) -> None:
    assert len(aws_vpc.paths) == len(aws_vpc.templates) == 14
    assert lint(aws_vpc.paths, aws_vpc.settings.regions) == []


def test_cdk_nag_would_find_a_wildcard_and_an_open_bucket(bundle: Bundle, tmp_path: Path) -> None:
    app = new_app("aws", outdir=tmp_path / "cdk.out")
    compose(app, settings=Settings.from_file(SETTINGS), bundle=bundle)
    stack = cdk.Stack(app, "Careless")
    s3.Bucket(stack, "Open")
    role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    role.add_to_policy(iam.PolicyStatement(actions=["dynamodb:*"], resources=["*"]))
    with pytest.raises(FindingsError, match=r"^synthesis: the templates were refused"):
        synthesize(app)
    found = findings(tmp_path / "cdk.out")
    assert {"AwsSolutions-IAM5[Action::dynamodb:*]", "AwsSolutions-IAM5[Resource::*]", "AwsSolutions-S10"} <= set(found)
    assert {path.split("/")[0] for paths in found.values() for path in paths} == {"Careless"}


def test_every_acknowledgement_is_for_one_of_these_rules_and_says_why(aws: Deployment) -> None:
    """They are in the cloud assembly, construct by construct, for whoever audits it."""
    acknowledged = [
        (rule, reason)
        for path in aws.paths[0].parent.glob("*.metadata.json")
        for entries in json.loads(path.read_text(encoding="utf-8")).values()
        for entry in entries
        if entry["type"] == "aws:cdk:acknowledged-rules"
        for rule, reason in entry["data"].items()
    ]
    assert {rule.split("[")[0] for rule, _ in acknowledged} == {
        "AwsSolutions::AwsSolutions-APIG4",
        "AwsSolutions::AwsSolutions-IAM4",
        "AwsSolutions::AwsSolutions-IAM5",
        "AwsSolutions::AwsSolutions-S1",
        "AwsSolutions::AwsSolutions-SQS3",
        "CloudFormation-Validate::F3002",
        "CloudFormation-Validate::W9003",
    }
    assert not [rule for rule, reason in acknowledged if len(reason.split()) < 5]


def findings(outdir: Path) -> dict[str, list[str]]:
    """The constructs that each rule found, from CDK's report."""
    report = json.loads((outdir / "validation-report.json").read_text(encoding="utf-8"))
    return {
        violation["ruleName"]: [construct["constructPath"] for construct in violation["violatingConstructs"]]
        for plugin in report["pluginReports"]
        for violation in plugin["violations"]
    }
