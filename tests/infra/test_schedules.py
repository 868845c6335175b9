"""The two functions that no route calls: what starts them, and what becomes of an answer that failed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stacks.bundle import Bundle
from stacks.settings import Settings
from stacks.synth import SETTINGS
from tests.infra.synthesized import ACCOUNT, Deployment, resolve

REGIONS = ("eu-central-1", "us-east-1")
REGION = REGIONS[0]
ASK = "bedrock:InvokeModelWithResponseStream"


@pytest.fixture(params=REGIONS)
def stack(request: pytest.FixtureRequest) -> str:
    return f"Realtime-{request.param}"


def one_region(bundle: Bundle, outdir: Path, **changed: Any) -> Deployment:
    """The `aws` deployment with one region; its synthesis goes through cdk-nag too."""
    values = Settings.from_file(SETTINGS)
    settings = {name: getattr(values, name) for name in ("target", "stage", "jwks_url", "jwt_issuer", "jwt_audience")}
    return Deployment.from_settings(
        Settings.from_values(settings | {"regions": [REGION]} | changed), bundle=bundle, outdir=outdir
    )


def test_the_sweeper_runs_every_minute_and_looks_for_the_forgotten_every_day(aws: Deployment, stack: str) -> None:
    rules = [resolve(rule["Properties"]) for rule in aws.resources("AWS::Events::Rule", stack).values()]
    inputs = {rule["ScheduleExpression"]: rule["Targets"][0].get("Input") for rule in rules}
    assert set(inputs) == {"rate(1 minute)", "rate(1 day)"}
    assert inputs["rate(1 minute)"] is None
    assert json.loads(inputs["rate(1 day)"]) == {"task": "backstop"}
    sweeper = f"<{aws.function_id(stack, 'sweeper')}.Arn>"
    assert [target["Arn"] for rule in rules for target in rule["Targets"]] == [sweeper, sweeper]
    assert {rule["State"] for rule in rules} == {"ENABLED"}


def test_its_rules_alone_may_start_it(aws: Deployment, stack: str) -> None:
    sweeper = aws.function_id(stack, "sweeper")
    allowed = [
        (permission["Properties"]["Principal"], permission["Properties"]["SourceArn"]["Fn::GetAtt"][0])
        for permission in aws.resources("AWS::Lambda::Permission", stack).values()
        if permission["Properties"]["FunctionName"]["Fn::GetAtt"][0] == sweeper
    ]
    assert sorted(allowed) == sorted(
        ("events.amazonaws.com", rule) for rule in aws.resources("AWS::Events::Rule", stack)
    )


def test_nothing_but_rights_starts_the_responder(aws: Deployment, stack: str) -> None:
    responder = aws.function_id(stack, "responder")
    assert responder not in {
        permission["Properties"]["FunctionName"]["Fn::GetAtt"][0]
        for permission in aws.resources("AWS::Lambda::Permission", stack).values()
    }


def test_a_failed_answer_is_tried_once_more_and_then_its_request_is_kept(aws: Deployment, stack: str) -> None:
    config = resolve(aws.only("AWS::Lambda::EventInvokeConfig", stack)["Properties"])
    queue, _ = failed_answers(aws, stack)
    assert config["FunctionName"] == f"<{aws.function_id(stack, 'responder')}>"
    assert (config["MaximumRetryAttempts"], config["MaximumEventAgeInSeconds"]) == (1, 15 * 60)
    assert config["DestinationConfig"] == {"OnFailure": {"Destination": f"<{queue}.Arn>"}}


def test_the_failed_are_kept_encrypted_for_a_week_and_only_tls_reaches_them(aws: Deployment, stack: str) -> None:
    queue, properties = failed_answers(aws, stack)
    assert properties["SqsManagedSseEnabled"] is True
    assert properties["MessageRetentionPeriod"] == 7 * 24 * 3600
    (statement,) = [
        statement
        for policy in aws.resources("AWS::SQS::QueuePolicy", stack).values()
        if policy["Properties"]["Queues"] == [{"Ref": queue}]
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
    ]
    assert statement["Effect"] == "Deny"
    assert statement["Action"] == "sqs:*"
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def failed_answers(deployment: Deployment, stack: str) -> tuple[str, dict[str, Any]]:
    """The queue that keeps them: its logical id and properties."""
    (found,) = [
        (logical_id, queue["Properties"])
        for logical_id, queue in deployment.resources("AWS::SQS::Queue", stack).items()
        if queue["Properties"]["QueueName"] == "threadkeep-prod-failed-answers"
    ]
    return found


@pytest.mark.parametrize(
    ("name", "models"),
    [
        ("eu.anthropic.example-v1:0", ["eu.anthropic.example-v1:0", "anthropic.example-v1:0"]),
        ("anthropic.example-v1:0", ["anthropic.example-v1:0", "example-v1:0"]),
    ],
)
def test_on_bedrock_it_may_ask_one_model_and_no_other(
    bundle: Bundle, tmp_path: Path, name: str, models: list[str]
) -> None:
    deployment = one_region(bundle, tmp_path / "cdk.out", model={"kind": "bedrock", "name": name})
    statements = deployment.statements_of(f"Realtime-{REGION}", "responder")
    asking = [statement for statement in statements if "bedrock" in json.dumps(statement)]
    assert {statement["Action"] for statement in asking} == {ASK}
    assert {resource for statement in asking for resource in listed(statement["Resource"])} == {
        f"arn:aws:bedrock:{REGION}:{ACCOUNT}:inference-profile/{name}",
        *(f"arn:aws:bedrock:*::foundation-model/{model}" for model in models),
    }
    assert "secretsmanager" not in json.dumps(statements)


def test_without_a_model_there_is_no_responder_and_nobody_starts_one(bundle: Bundle, tmp_path: Path) -> None:
    deployment = one_region(bundle, tmp_path / "cdk.out")
    stack = f"Realtime-{REGION}"
    everything = json.dumps(deployment.templates).lower()
    assert "responder" not in everything
    assert "lambda:invokefunction" not in json.dumps(deployment.resources("AWS::IAM::Policy", stack)).lower()
    assert deployment.function_id(stack, "sweeper")
    assert not deployment.resources("AWS::Lambda::EventInvokeConfig", stack)
    assert "failed-answers" not in everything


def listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
