"""What calls before users do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.infra.synthesized import Deployment, resolve
from threadkeep import schema

REGIONS = ("eu-central-1", "us-east-1")
FUNCTIONS = (*schema.ROUTES, "authorizer", "sweeper", "responder", "announcer", "eraser", "herald", "exporter")
AT_HOME = ("planner", "archiver")


@pytest.fixture(params=REGIONS)
def stack(request: pytest.FixtureRequest) -> str:
    return f"Observability-{request.param}"


@pytest.fixture
def alarms(aws: Deployment, stack: str) -> list[dict[str, Any]]:
    return [resolve(alarm["Properties"]) for alarm in aws.resources("AWS::CloudWatch::Alarm", stack).values()]


@pytest.mark.parametrize("metric", ["Errors", "Throttles"])
def test_the_first_error_or_throttle_of_each_function_calls(
    alarms: list[dict[str, Any]], stack: str, metric: str
) -> None:
    found = [alarm for alarm in alarms if alarm.get("MetricName") == metric]
    names = (*FUNCTIONS, *AT_HOME) if stack.endswith(REGIONS[0]) else FUNCTIONS
    assert sorted(alarm["Dimensions"][0]["Value"] for alarm in found) == sorted(
        f"threadkeep-prod-{name}" for name in names
    )
    assert {(alarm["Threshold"], alarm["Period"], alarm["Statistic"]) for alarm in found} == {(1, 60, "Sum")}


def test_sixty_percent_of_the_gateways_quota_calls(alarms: list[dict[str, Any]]) -> None:
    (alarm,) = [alarm for alarm in alarms if "Metrics" in alarm]
    assert alarm["Threshold"] == 6_000 * 60
    summed = {
        (metric["MetricStat"]["Metric"]["MetricName"], metric["MetricStat"]["Stat"], metric["MetricStat"]["Period"])
        for metric in alarm["Metrics"]
        if "MetricStat" in metric
    }
    assert summed == {("MessageCount", "Sum", 60), ("ConnectCount", "Sum", 60)}


def test_three_quarters_of_the_caches_memory_calls(alarms: list[dict[str, Any]]) -> None:
    (alarm,) = [alarm for alarm in alarms if alarm.get("Namespace") == "AWS/ElastiCache"]
    assert alarm["MetricName"] == "BytesUsedForCache"
    assert alarm["Threshold"] == 7_500_000_000
    assert alarm["Dimensions"] == [{"Name": "clusterId", "Value": "threadkeep-prod-public"}]


def test_the_first_that_ends_in_a_queue_for_what_failed_calls(
    aws: Deployment, stack: str, alarms: list[dict[str, Any]]
) -> None:
    """Answers, jobs, and changes of the table: every queue that nothing consumes."""
    consumed = {
        resolve(mapping["Properties"])["EventSourceArn"].strip("<>").removesuffix(".Arn")
        for mapping in aws.resources("AWS::Lambda::EventSourceMapping").values()
    }
    region = stack.removeprefix("Observability-")
    stacks = [f"Realtime-{region}", *(["Archive"] if region == REGIONS[0] else [])]
    failed = sorted(
        queue["Properties"]["QueueName"]
        for name in stacks
        for logical_id, queue in aws.resources("AWS::SQS::Queue", name).items()
        if logical_id not in consumed
    )
    found = [alarm for alarm in alarms if alarm.get("MetricName") == "ApproximateNumberOfMessagesVisible"]
    assert sorted(alarm["Dimensions"][0]["Value"] for alarm in found) == failed
    assert "threadkeep-prod-failed-answers" in failed
    assert {(alarm["Statistic"], alarm["Threshold"]) for alarm in found} == {("Maximum", 1)}


def test_a_minute_without_traffic_is_no_alarm(alarms: list[dict[str, Any]]) -> None:
    assert {alarm["TreatMissingData"] for alarm in alarms} == {"notBreaching"}
    assert {alarm["ComparisonOperator"] for alarm in alarms} == {"GreaterThanOrEqualToThreshold"}


def test_the_dashboard_shows_every_alarm(aws: Deployment, stack: str, alarms: list[dict[str, Any]]) -> None:
    body = resolve(aws.only("AWS::CloudWatch::Dashboard", stack)["Properties"]["DashboardBody"])
    (status,) = [widget for widget in json.loads(body)["widgets"] if widget["type"] == "alarm"]
    assert len(status["properties"]["alarms"]) == len(alarms)
