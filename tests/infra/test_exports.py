"""The exporter: fed by a queue of its own in every region, and able to write to exports alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.infra.synthesized import ACCOUNT, Deployment, resolve
from threadkeep.config import Config

REGIONS = ("eu-central-1", "us-east-1")
TABLE = "threadkeep-prod"
LAMBDA_S = 15 * 60


@pytest.fixture(params=REGIONS)
def region(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def queue_id(deployment: Deployment, region: str, name: str) -> str:
    (found,) = [
        logical_id
        for logical_id, queue in deployment.resources("AWS::SQS::Queue", f"Realtime-{region}").items()
        if queue["Properties"]["QueueName"] == name
    ]
    return found


def function_id(deployment: Deployment, region: str, name: str) -> str:
    (found,) = [
        logical_id
        for logical_id, function in deployment.resources("AWS::Lambda::Function", f"Realtime-{region}").items()
        if function["Properties"]["Handler"] == f"handlers.{name}.handler"
    ]
    return found


def statements_of(deployment: Deployment, region: str, name: str) -> list[dict[str, Any]]:
    stack = f"Realtime-{region}"
    function = deployment.resources("AWS::Lambda::Function", stack)[function_id(deployment, region, name)]
    role = function["Properties"]["Role"]["Fn::GetAtt"][0]
    return [
        statement
        for policy in deployment.resources("AWS::IAM::Policy", stack).values()
        if {"Ref": role} in policy["Properties"]["Roles"]
        for statement in resolve(policy["Properties"]["PolicyDocument"])["Statement"]
    ]


def rights_of(deployment: Deployment, region: str, name: str) -> set[tuple[str, str]]:
    """Every action with every resource that it is allowed on."""
    return {
        (action, resource)
        for statement in statements_of(deployment, region, name)
        for action in listed(statement["Action"])
        for resource in listed(statement["Resource"])
    }


def listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def test_one_export_at_a_time_goes_to_a_run_of_the_exporter(aws: Deployment, region: str) -> None:
    jobs = queue_id(aws, region, "threadkeep-prod-export")
    mappings = aws.resources("AWS::Lambda::EventSourceMapping", f"Realtime-{region}").values()
    (mapping,) = [
        properties
        for properties in (resolve(found["Properties"]) for found in mappings)
        if properties["EventSourceArn"] == f"<{jobs}.Arn>"
    ]
    assert mapping["FunctionName"] == f"<{function_id(aws, region, 'exporter')}>"
    assert mapping["BatchSize"] == 1
    assert mapping["ScalingConfig"] == {"MaximumConcurrency": 5}


def test_a_job_is_hidden_while_it_is_worked_off_and_put_aside_after_five_attempts(aws: Deployment, region: str) -> None:
    queues = aws.resources("AWS::SQS::Queue", f"Realtime-{region}")
    jobs = queues[queue_id(aws, region, "threadkeep-prod-export")]["Properties"]
    failed = queue_id(aws, region, "threadkeep-prod-export-failed")
    assert jobs["VisibilityTimeout"] == LAMBDA_S + 60
    assert resolve(jobs["RedrivePolicy"]) == {"deadLetterTargetArn": f"<{failed}.Arn>", "maxReceiveCount": 5}
    assert jobs["SqsManagedSseEnabled"] is True


def test_an_export_is_given_up_for_lost_after_all_attempts_of_its_last_run(aws: Deployment, region: str) -> None:
    from threadkeep.domain.bounds import EXPORT_LOST_MS, EXPORT_MS_MAX  # noqa: PLC0415 -- of the code, not the stacks

    jobs = aws.resources("AWS::SQS::Queue", f"Realtime-{region}")[queue_id(aws, region, "threadkeep-prod-export")]
    attempts = jobs["Properties"]["RedrivePolicy"]["maxReceiveCount"]
    assert EXPORT_MS_MAX + attempts * jobs["Properties"]["VisibilityTimeout"] * 1_000 < EXPORT_LOST_MS


def test_somebody_is_told_of_jobs_that_were_put_aside(aws: Deployment, region: str) -> None:
    alarms = [
        resolve(alarm["Properties"])
        for alarm in aws.resources("AWS::CloudWatch::Alarm", f"Observability-{region}").values()
    ]
    named = [alarm for alarm in alarms if "threadkeep-prod-export-failed" in json.dumps(alarm.get("Dimensions", ""))]
    assert [alarm["MetricName"] for alarm in named] == ["ApproximateNumberOfMessagesVisible"]


def test_the_exporter_reads_what_is_kept_and_writes_exports_alone(aws: Deployment, region: str) -> None:
    rights = rights_of(aws, region, "exporter")
    table = f"arn:aws:dynamodb:{region}:{ACCOUNT}:table/{TABLE}"
    buckets = {name: f"arn:aws:s3:::threadkeep-prod-{ACCOUNT}-{name}" for name in REGIONS}
    jobs = f"<{queue_id(aws, region, 'threadkeep-prod-export')}.Arn>"
    taking = {"ChangeMessageVisibility", "DeleteMessage", "GetQueueAttributes", "GetQueueUrl", "ReceiveMessage"}
    expected = {
        *((f"dynamodb:{action}", table) for action in ("GetItem", "Query", "BatchGetItem", "PutItem", "UpdateItem")),
        ("dynamodb:Query", f"{table}/index/by_owner"),
        *((f"sqs:{action}", jobs) for action in (*taking, "SendMessage")),
        *(("s3:ListBucket", bucket) for bucket in buckets.values()),
        *(("s3:GetObject", f"{bucket}/{kind}/*") for bucket in buckets.values() for kind in ("bodies", "segments")),
        *((action, f"{buckets[region]}/exports/*") for action in ("s3:PutObject", "s3:AbortMultipartUpload")),
        *(("s3:GetObject", f"{bucket}/exports/*") for bucket in buckets.values()),  # notes; files are read from afar
    }
    assert {right for right in rights if right[0].split(":")[0] not in {"logs", "xray"}} == expected


def test_in_the_table_it_writes_to_the_partitions_of_exports_alone(aws: Deployment, region: str) -> None:
    writing = [
        statement
        for statement in statements_of(aws, region, "exporter")
        if {"dynamodb:PutItem", "dynamodb:UpdateItem"} & set(listed(statement["Action"]))
    ]
    assert [statement["Condition"] for statement in writing] == [
        {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["*#!export*"]}}
    ]


def test_its_environment_is_what_its_config_reads_and_names_no_hot_tier(aws: Deployment, region: str) -> None:
    function = aws.resources("AWS::Lambda::Function", f"Realtime-{region}")[function_id(aws, region, "exporter")]
    properties = resolve(function["Properties"])
    buckets = {name: f"threadkeep-prod-{ACCOUNT}-{name}" for name in REGIONS}
    config = Config.from_environment(properties["Environment"]["Variables"])
    assert (config.region, config.table, config.bucket, config.buckets) == (region, TABLE, buckets[region], buckets)
    assert config.export_queue == f"<{queue_id(aws, region, 'threadkeep-prod-export')}>"
    assert (config.hot, config.connections_url, config.model, config.erase_queue) == (None, "", None, "")
    assert (properties["Timeout"], properties["MemorySize"]) == (LAMBDA_S, 1_024)
    assert "VpcConfig" not in properties


def test_who_is_asked_for_one_queues_it_and_who_is_asked_after_it_may_sign_for_it(aws: Deployment, region: str) -> None:
    jobs = f"<{queue_id(aws, region, 'threadkeep-prod-export')}.Arn>"
    assert ("sqs:SendMessage", jobs) in rights_of(aws, region, "send")
    for name in REGIONS:
        files = f"arn:aws:s3:::threadkeep-prod-{ACCOUNT}-{name}/exports/*"
        assert {action for action, resource in rights_of(aws, region, "history") if resource == files} == {
            "s3:GetObject"
        }
    others = ("connection", "stream", "sweeper", "responder", "announcer", "eraser", "herald", "authorizer")
    assert not [name for name in others if "exports/" in json.dumps(statements_of(aws, region, name))]


def test_files_expire_and_so_do_their_pieces(aws: Deployment, region: str) -> None:
    rules = aws.only("AWS::S3::Bucket", f"Cold-{region}")["Properties"]["LifecycleConfiguration"]["Rules"]
    assert [rule["ExpirationInDays"] for rule in rules if rule.get("Prefix") == "exports/"] == [1]
    assert [rule["AbortIncompleteMultipartUpload"] for rule in rules if "AbortIncompleteMultipartUpload" in rule] == [
        {"DaysAfterInitiation": 1}
    ]
