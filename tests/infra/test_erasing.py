"""Erasure in every region: the table's stream to the announcer, queues to eraser and herald, and who calls for help."""

from __future__ import annotations

import importlib
import json
from typing import Any

import pytest

from stacks.constructs.table_stream import BATCH_MAX
from tests.infra.synthesized import ACCOUNT, Deployment, resolve
from threadkeep import schema
from threadkeep.domain.bounds import JOB_AGAIN_S_MAX
from threadkeep.stores.batch_get import KEYS_MAX

REGIONS = ("eu-central-1", "us-east-1")
TABLE = "threadkeep-prod"


@pytest.fixture(params=REGIONS)
def region(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def queue_id(deployment: Deployment, stack: str, name: str) -> str:
    (found,) = [
        logical_id
        for logical_id, queue in deployment.resources("AWS::SQS::Queue", stack).items()
        if queue["Properties"]["QueueName"] == f"{deployment_table(deployment)}-{name}"
    ]
    return found


def deployment_table(deployment: Deployment) -> str:
    return f"threadkeep-{deployment.settings.stage}"


def mapping_of(deployment: Deployment, stack: str, name: str) -> dict[str, Any]:
    function = deployment.function_id(stack, name)
    (found,) = [
        mapping
        for mapping in (
            resolve(found["Properties"])
            for found in deployment.resources("AWS::Lambda::EventSourceMapping", stack).values()
        )
        if mapping["FunctionName"] == f"<{function}>"
    ]
    return found


# --- the table's stream ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["aws", "local"])
def test_each_region_looks_its_own_replicas_stream_up_when_it_is_deployed(
    request: pytest.FixtureRequest, target: str
) -> None:
    deployment: Deployment = request.getfixturevalue(target)
    for region in REGIONS:
        stack = f"Realtime-{region}"
        ((name, latest),) = deployment.resources("Custom::LatestTableStream", stack).items()
        resolver = deployment.function_id(stack, "index")
        assert resolve(latest["Properties"]) == {
            "ServiceToken": f"<{resolver}.Arn>",
            "Table": deployment_table(deployment),
            "Revision": "0" * 64,  # of the bundle: looked up anew with every change of the code
        }
        assert mapping_of(deployment, stack, "announcer")["EventSourceArn"] == f"<{name}.StreamArn>"


def test_the_stack_waits_for_the_table(aws: Deployment, region: str) -> None:
    assert "State" in aws.dependencies[f"Realtime-{region}"]


def test_whoever_looks_it_up_may_do_nothing_else(aws: Deployment, region: str) -> None:
    stack = f"Realtime-{region}"
    resolver = aws.resources("AWS::Lambda::Function", stack)[aws.function_id(stack, "index")]
    role = resolver["Properties"]["Role"]["Fn::GetAtt"][0]
    (policy,) = [
        resolve(found["Properties"]["PolicyDocument"])
        for found in aws.resources("AWS::IAM::Policy", stack).values()
        if {"Ref": role} in found["Properties"]["Roles"]
    ]
    logs, describing = policy["Statement"]
    assert logs["Action"] == ["logs:CreateLogStream", "logs:PutLogEvents"]
    assert describing["Action"] == "dynamodb:DescribeTable"
    assert describing["Resource"] == f"arn:aws:dynamodb:{region}:{ACCOUNT}:table/{TABLE}"


def test_the_announcer_is_given_new_items_until_it_has_taken_them(aws: Deployment, region: str) -> None:
    stack = f"Realtime-{region}"
    mapping = mapping_of(aws, stack, "announcer")
    pattern, _ = mapping["FilterCriteria"]["Filters"]  # the other one is for what other regions change
    assert json.loads(pattern["Pattern"]) == {"eventName": ["INSERT"]}
    assert mapping["StartingPosition"] == "TRIM_HORIZON"
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["BisectBatchOnFunctionError"] is True
    assert mapping["MaximumRecordAgeInSeconds"] == 24 * 3600
    assert "MaximumRetryAttempts" not in mapping  # for as long as the stream remembers
    failed = queue_id(aws, stack, "failed-changes")
    assert mapping["DestinationConfig"] == {"OnFailure": {"Destination": f"<{failed}.Arn>"}}


def test_one_batch_is_asked_for_at_once() -> None:
    assert BATCH_MAX == KEYS_MAX


def test_the_tables_stream_shows_what_the_announcer_reads(aws: Deployment) -> None:
    table = aws.only("AWS::DynamoDB::GlobalTable", "State")["Properties"]
    assert table["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}
    assert [key["AttributeName"] for key in table["KeySchema"]] == [schema.PARTITION_KEY, schema.SORT_KEY]


# --- queues ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "hidden_s", "attempts"), [("erase", 720, 5), ("tell", 30, 60)])
def test_a_job_is_hidden_while_it_is_worked_off_tried_again_and_then_put_aside(
    aws: Deployment, region: str, kind: str, hidden_s: int, attempts: int
) -> None:
    stack = f"Realtime-{region}"
    jobs, failed = queue_id(aws, stack, kind), queue_id(aws, stack, f"{kind}-failed")
    properties = resolve(aws.resources("AWS::SQS::Queue", stack)[jobs]["Properties"])
    assert properties["VisibilityTimeout"] == hidden_s
    assert properties["RedrivePolicy"] == {"deadLetterTargetArn": f"<{failed}.Arn>", "maxReceiveCount": attempts}
    assert properties["SqsManagedSseEnabled"] is True
    mapping = mapping_of(aws, stack, {"erase": "eraser", "tell": "herald"}[kind])
    assert mapping["EventSourceArn"] == f"<{jobs}.Arn>"
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    at_once = {"erase": 5, "tell": 50}[kind]  # what other regions write is told by heralds
    assert (mapping["BatchSize"], mapping["ScalingConfig"]) == (1, {"MaximumConcurrency": at_once})


@pytest.mark.parametrize("target", ["aws", "aws_vpc", "local"])
def test_no_job_is_given_to_a_second_while_the_first_may_be_at_it_and_none_is_given_up_within_half_an_hour(
    request: pytest.FixtureRequest, target: str
) -> None:
    deployment: Deployment = request.getfixturevalue(target)
    seen = 0
    for stack in deployment.templates:
        for mapping in deployment.resources("AWS::Lambda::EventSourceMapping", stack).values():
            properties = resolve(mapping["Properties"])
            if "ScalingConfig" not in properties:
                continue  # the table's stream
            queue = deployment.resources("AWS::SQS::Queue", stack)[properties["EventSourceArn"][1:].split(".")[0]]
            function = deployment.resources("AWS::Lambda::Function", stack)[properties["FunctionName"].strip("<>")]
            hidden_s = queue["Properties"]["VisibilityTimeout"]
            assert hidden_s > function["Properties"]["Timeout"]
            assert hidden_s * queue["Properties"]["RedrivePolicy"]["maxReceiveCount"] >= 30 * 60
            seen += 1
    assert seen == 3 * len(deployment.settings.regions) + 1


def test_news_that_a_herald_failed_to_tell_come_again_within_half_a_minute(aws: Deployment, region: str) -> None:
    stack = f"Realtime-{region}"
    jobs = aws.resources("AWS::SQS::Queue", stack)[queue_id(aws, stack, "tell")]["Properties"]
    assert jobs["VisibilityTimeout"] == JOB_AGAIN_S_MAX == 30
    pauses = [min(2**times, JOB_AGAIN_S_MAX) for times in range(1, jobs["RedrivePolicy"]["maxReceiveCount"])]
    assert sum(pauses) > 25 * 60, "the hot tier may be away for as long"


def test_only_tls_reaches_any_queue(aws: Deployment, region: str) -> None:
    stack = f"Realtime-{region}"
    policies = aws.resources("AWS::SQS::QueuePolicy", stack).values()
    held = {
        queue["Ref"]
        for policy in policies
        for queue in policy["Properties"]["Queues"]
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Deny" and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    }
    assert held == set(aws.resources("AWS::SQS::Queue", stack))


def test_somebody_is_told_when_jobs_were_put_aside_or_the_stream_runs_ahead(aws: Deployment, region: str) -> None:
    alarms = [
        resolve(alarm["Properties"])
        for alarm in aws.resources("AWS::CloudWatch::Alarm", f"Observability-{region}").values()
    ]
    watched = {dimension["Value"] for alarm in alarms for dimension in alarm.get("Dimensions", [])}
    assert {f"{TABLE}-{name}" for name in ("failed-changes", "erase-failed", "tell-failed")} <= watched
    (behind,) = [alarm for alarm in alarms if alarm.get("MetricName") == "IteratorAge"]
    assert behind["Dimensions"] == [{"Name": "FunctionName", "Value": f"{TABLE}-announcer"}]
    assert behind["Threshold"] == 600_000


# --- what looks the stream up ---------------------------------------------------------------------------------


class Told:
    """What CloudFormation was told, in place of its address; and a table in place of DynamoDB's."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, table: dict[str, Any]) -> None:
        index: Any = importlib.import_module("stacks.constructs.latest_stream.index")
        self.answers: list[dict[str, Any]] = []
        monkeypatch.setattr(index.boto3, "client", lambda _service: self)
        monkeypatch.setattr(index.urllib.request, "urlopen", self._open)
        self._table = table
        self._handler = index.handler

    def describe_table(self, *, TableName: str) -> dict[str, Any]:  # noqa: N803 -- boto3's own
        assert TableName == TABLE
        if not self._table:
            raise RuntimeError("no table")
        return {"Table": self._table}

    def _open(self, request: Any, timeout: float) -> Any:
        assert (request.full_url, request.get_method(), timeout) == ("https://answers.example/1", "PUT", 10)
        self.answers.append(json.loads(request.data))
        return self

    def close(self) -> None:
        """As a response has it."""

    def ask(self, kind: str, **fields: str) -> dict[str, Any]:
        named = {"StackId": "s", "RequestId": "r", "LogicalResourceId": "l", "ResponseURL": "https://answers.example/1"}
        self._handler({"RequestType": kind, "ResourceProperties": {"Table": TABLE}, **named, **fields}, None)
        return self.answers.pop()


def test_it_answers_with_the_streams_arn(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told(monkeypatch, {"LatestStreamArn": "arn:of:the:stream"})
    for kind, fields in (("Create", {}), ("Update", {"PhysicalResourceId": "arn:of:an:older"})):
        assert told.ask(kind, **fields) == {
            "Status": "SUCCESS",
            "StackId": "s",
            "RequestId": "r",
            "LogicalResourceId": "l",
            "PhysicalResourceId": "arn:of:the:stream",
            "Data": {"StreamArn": "arn:of:the:stream"},
        }


def test_a_deletion_takes_nothing_back_and_always_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = Told(monkeypatch, {}).ask("Delete", PhysicalResourceId="arn:of:the:stream")
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", "arn:of:the:stream")


def test_a_table_that_is_not_there_fails_the_stack_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = Told(monkeypatch, {}).ask("Create")
    assert (answer["Status"], answer["Reason"]) == ("FAILED", "RuntimeError: no table")
