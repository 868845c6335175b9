"""The archive stands in the home region alone, and can do what it must and no more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stacks.bundle import Bundle
from stacks.settings import Settings
from tests.infra.conftest import LOCAL
from tests.infra.synthesized import ACCOUNT, Deployment, resolve
from threadkeep.config import Config, Terms

HOME = "eu-central-1"
REGIONS = (HOME, "us-east-1")
STACK = "Archive"
TABLE = f"arn:aws:dynamodb:{HOME}:{ACCOUNT}:table/threadkeep-prod"


def function(aws: Deployment, name: str) -> dict[str, Any]:
    properties: dict[str, Any] = resolve(
        aws.resources("AWS::Lambda::Function", STACK)[aws.function_id(STACK, name)]["Properties"]
    )
    return properties


def queue(aws: Deployment, name: str) -> tuple[str, dict[str, Any]]:
    """Its logical id and properties."""
    ((logical_id, resource),) = [
        (logical_id, resource)
        for logical_id, resource in aws.resources("AWS::SQS::Queue", STACK).items()
        if resource["Properties"]["QueueName"] == f"threadkeep-prod-{name}"
    ]
    return logical_id, resolve(resource["Properties"])


def test_it_stands_in_the_home_region_behind_what_it_writes_into(aws: Deployment) -> None:
    assert [name for name in aws.templates if name.startswith("Archive")] == [STACK]
    assert aws.dependencies[STACK] == {"State", f"Realtime-{HOME}", *(f"Cold-{region}" for region in REGIONS)}
    for name in ("planner", "archiver"):
        properties = function(aws, name)
        assert properties["FunctionName"] == f"threadkeep-prod-{name}"
        assert "VpcConfig" not in properties
    assert (function(aws, "planner")["MemorySize"], function(aws, "archiver")["MemorySize"]) == (256, 1024)
    assert (function(aws, "planner")["Timeout"], function(aws, "archiver")["Timeout"]) == (900, 300)


def test_the_planner_runs_hourly_and_daily_at_no_fixed_minute(aws: Deployment) -> None:
    schedules = [resolve(one["Properties"]) for one in aws.resources("AWS::Scheduler::Schedule", STACK).values()]
    planner = f"<{aws.function_id(STACK, 'planner')}.Arn>"
    assert {
        one["ScheduleExpression"]: (one["FlexibleTimeWindow"], json.loads(one["Target"]["Input"])) for one in schedules
    } == {
        "rate(1 hour)": ({"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 15}, {}),
        "rate(1 day)": ({"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 60}, {"task": "deep"}),
    }
    assert {one["Target"]["Arn"] for one in schedules} == {planner}
    (role,) = {one["Target"]["RoleArn"].strip("<>").removesuffix(".Arn") for one in schedules}
    trust = resolve(aws.resources("AWS::IAM::Role", STACK)[role]["Properties"]["AssumeRolePolicyDocument"])
    assert [one["Principal"] for one in trust["Statement"]] == [{"Service": "scheduler.amazonaws.com"}]
    assert trust["Statement"][0]["Condition"] == {"StringEquals": {"aws:SourceAccount": ACCOUNT}}
    allowed = [
        statement
        for policy in aws.resources("AWS::IAM::Policy", STACK).values()
        if {"Ref": role} in policy["Properties"]["Roles"]
        for statement in resolve(policy["Properties"]["PolicyDocument"])["Statement"]
    ]
    assert [(one["Action"], one["Resource"]) for one in allowed] == [("lambda:InvokeFunction", planner)]


def test_archivers_take_conversations_one_by_one_and_so_many_at_a_time(aws: Deployment) -> None:
    mapping = resolve(aws.only("AWS::Lambda::EventSourceMapping", STACK)["Properties"])
    jobs, _ = queue(aws, "archive")
    assert mapping["EventSourceArn"] == f"<{jobs}.Arn>"
    assert mapping["FunctionName"] == f"<{aws.function_id(STACK, 'archiver')}>"
    assert mapping["BatchSize"] == 1
    assert mapping["ScalingConfig"] == {"MaximumConcurrency": 10}
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


def test_a_job_is_hidden_for_six_timeouts_and_put_aside_after_five_attempts(aws: Deployment) -> None:
    _, jobs = queue(aws, "archive")
    failed_id, failed = queue(aws, "archive-failed")
    assert jobs["VisibilityTimeout"] == 6 * function(aws, "archiver")["Timeout"]
    assert jobs["RedrivePolicy"] == {"deadLetterTargetArn": f"<{failed_id}.Arn>", "maxReceiveCount": 5}
    assert {one["SqsManagedSseEnabled"] for one in (jobs, failed)} == {True}
    policies = aws.resources("AWS::SQS::QueuePolicy", STACK).values()
    statements = [one for policy in policies for one in policy["Properties"]["PolicyDocument"]["Statement"]]
    assert [(one["Effect"], one["Action"], one["Condition"]) for one in statements] == [
        ("Deny", "sqs:*", {"Bool": {"aws:SecureTransport": "false"}})
    ] * 2


def rights(aws: Deployment, name: str) -> dict[str, set[str]]:
    """Allowed actions by resource, but for logs and traces."""
    found: dict[str, set[str]] = {}
    for statement in aws.statements_of(STACK, name):
        assert statement["Effect"] == "Allow"
        for resource in listed(statement["Resource"]):
            found.setdefault(resource, set()).update(listed(statement["Action"]))
    return {
        resource: actions
        for resource, actions in found.items()
        if not all(action.startswith(("logs:", "xray:")) for action in actions)
    }


def listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def test_the_planner_may_look_at_what_is_due_and_queue_it(aws: Deployment) -> None:
    jobs, _ = queue(aws, "archive")
    assert rights(aws, "planner") == {
        TABLE: {"dynamodb:UpdateItem"},
        f"{TABLE}/index/by_due": {"dynamodb:Query"},
        f"<{jobs}.Arn>": {"sqs:SendMessage"},
    }


def test_the_archiver_may_write_segments_and_bodies_everywhere_and_delete_items_of_the_table(aws: Deployment) -> None:
    jobs, _ = queue(aws, "archive")
    found = rights(aws, "archiver")
    taken = found.pop(f"<{jobs}.Arn>")
    assert "sqs:DeleteMessage" in taken
    assert "sqs:SendMessage" not in taken
    (erased,) = [resource for resource in found if "Realtime" in resource]
    assert found.pop(erased) == {"sqs:SendMessage"}
    buckets = [f"arn:aws:s3:::threadkeep-prod-{ACCOUNT}-{region}" for region in REGIONS]
    assert found == {
        TABLE: {
            "dynamodb:GetItem",
            "dynamodb:Query",
            "dynamodb:PutItem",
            "dynamodb:UpdateItem",
            "dynamodb:BatchWriteItem",
        },
        TABLE.replace(HOME, REGIONS[1]): {"dynamodb:Query"},
        **{f"{bucket}/{kind}/*": {"s3:GetObject", "s3:PutObject"} for bucket in buckets for kind in KINDS},
        **{bucket: {"s3:ListBucket"} for bucket in buckets},
    }


KINDS = ("segments", "bodies")


def test_the_archiver_asks_every_other_region_also_one_that_is_evacuated(bundle: Bundle, tmp_path: Path) -> None:
    """A tombstone is for good: what a region that is taken for gone knows counts when it has returned."""
    _, away = LOCAL["regions"]
    settings = Settings.from_values(LOCAL | {"evacuated": [away]})
    deployment = Deployment.from_settings(settings, bundle=bundle, outdir=tmp_path / "cdk.out")
    configs = {
        name: Config.from_environment(function(deployment, name)["Environment"]["Variables"])
        for name in ("planner", "archiver")
    }
    assert configs["archiver"].others == (away,)
    assert configs["planner"].others == ()


@pytest.mark.parametrize("name", ["planner", "archiver"])
def test_their_environment_is_what_their_config_reads(aws: Deployment, name: str) -> None:
    environment = function(aws, name)["Environment"]["Variables"]
    config = Config.from_environment(environment)
    jobs, _ = queue(aws, "archive")
    assert (config.table, config.region, config.hot) == ("threadkeep-prod", HOME, None)
    assert (config.archive_idle_ms, config.archive_settle_ms) == (30 * 86_400_000, 3_600_000)
    if name == "planner":
        assert (config.archive_queue, config.buckets, config.terms) == (f"<{jobs}>", {}, None)
    else:
        assert config.archive_queue == ""
        assert "Realtime" in config.erase_queue
        assert config.buckets == {region: f"threadkeep-prod-{ACCOUNT}-{region}" for region in REGIONS}
        assert config.terms == Terms(regions=REGIONS, pitr_days=21)


@pytest.mark.parametrize(
    ("metric", "queue_name", "threshold"),
    [
        ("ApproximateAgeOfOldestMessage", "threadkeep-prod-archive", 12 * 3_600),
        ("ApproximateNumberOfMessagesVisible", "threadkeep-prod-archive-failed", 1),
    ],
)
def test_an_archive_that_is_behind_calls_and_so_does_a_conversation_that_cannot_be_moved(
    aws: Deployment, metric: str, queue_name: str, threshold: int
) -> None:
    for region in REGIONS:
        alarms = aws.resources("AWS::CloudWatch::Alarm", f"Observability-{region}").values()
        found = [
            resolve(alarm["Properties"])
            for alarm in alarms
            if alarm["Properties"].get("Dimensions") == [{"Name": "QueueName", "Value": queue_name}]
        ]
        expected = [(metric, "Maximum", threshold)] if region == HOME else []
        assert [(one["MetricName"], one["Statistic"], one["Threshold"]) for one in found] == expected
