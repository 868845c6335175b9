"""Measuring checks of the smoke pack, against a gateway that has API Gateway's limits, and one that has none.

Behind it are the service's own handlers. The account is told by the test.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from websockets.asyncio.client import ClientConnection

from local.keys import SigningKey
from smoke.checks import lasting, pushes
from smoke.ground import Ground
from smoke.outcome import Outcome, Verdict
from smoke.raw import close_code
from smoke.registry import all_checks
from tests.support.gateway.bulkheads import REGION
from tests.support.gateway.deployment import Deployment, deployed
from tests.support.gateway.limits import Limits
from tests.support.hot import SystemClock
from tests.support.smoke import Answer, ToldGround, target
from threadkeep.stores.hot_memory import HotMemory

NO_LIMITS: Final = Limits(frame_bytes_max=1 << 24, message_bytes_max=1 << 24)
KEY: Final = SigningKey.generate()
ROUTES: Final = [{"RouteKey": "$connect"}, {"RouteKey": "ping", "RouteResponseSelectionExpression": "$default"}]
ARN: Final = "arn:aws:logs:eu-central-1:123456789012:log-group:access"
WITH_ACCESS_LOG: Final = {"apigatewayv2.get_stage": {"StageName": "prod", "AccessLogSettings": {"DestinationArn": ARN}}}
FUNCTION: Final[dict[str, Any]] = {"FunctionName": "f", "Role": "arn:aws:iam::123456789012:role/f"}
ALARM: Final[dict[str, Any]] = {"AlarmName": "a", "StateValue": "OK"}


@asynccontextmanager
async def ground(account: Mapping[str, Any] | None = None, **settings: Any) -> AsyncIterator[tuple[Ground, Deployment]]:
    """The pack's ground before such a gateway."""
    async with deployed(HotMemory(SystemClock(), region=REGION), KEY, **settings) as running:
        of = target(running.gateway.url, key=KEY)
        yield ToldGround(account, of=of), running


async def found(line: str, account: Mapping[str, Any] | None = None, **settings: Any) -> Outcome:
    async with ground(account, **settings) as (standing, _):
        return await all_checks()[line].run(standing)


@pytest.mark.parametrize(
    "line",
    [
        "subprotocol-echo",
        "token-4k",
        "frame-24k",
        "frame-limit",
        "message-limit",
        "order-requests",
        "order-pushes",
        "latency-reply",
        "latency-push",
        "latency-send",
    ],
)
async def test_what_api_gateway_does_is_shown(line: str) -> None:
    outcome = await found(line)
    assert outcome.verdict is Verdict.SHOWN, outcome.detail


@pytest.mark.parametrize("line", ["frame-limit", "message-limit"])
async def test_a_gateway_without_limits_fails(line: str) -> None:
    assert (await found(line, limits=NO_LIMITS)).verdict is Verdict.FAILED


async def test_our_own_largest_frame_has_to_pass() -> None:
    assert (await found("frame-24k", limits=Limits(frame_bytes_max=20_000))).verdict is Verdict.FAILED


async def test_a_throttled_client_is_seen_and_one_that_is_not_fails_the_line() -> None:
    outcome = await found("throttle-frame", limits=Limits(requests_per_s=10, requests_burst=1_000))
    assert outcome.verdict is Verdict.SHOWN, outcome.detail
    assert "gateway ['connectionId', 'message', 'requestId']" in outcome.detail or "closed with" in outcome.detail
    assert (await found("throttle-frame")).verdict is Verdict.FAILED


async def test_a_reply_needs_its_routes_response() -> None:
    for routes, verdict in ((ROUTES, Verdict.SHOWN), ([*ROUTES, {"RouteKey": "stream.open"}], Verdict.FAILED)):
        outcome = await found("route-response", {"apigatewayv2.get_routes": {"Items": routes}})
        assert outcome.verdict is verdict, outcome.detail


async def closed_by_time(line: str, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    """What the check finds where the gateway's clock goes on as soon as it is connected, ten minutes at each step."""
    connected = asyncio.Event()

    async def waiting(socket: ClientConnection, patience_s: float) -> int | None:
        connected.set()
        return await close_code(socket, patience_s)

    monkeypatch.setattr(lasting, "close_code", waiting)
    async with ground() as (standing, running):
        looking = asyncio.create_task(all_checks()[line].run(standing))
        await connected.wait()
        while not looking.done():
            await asyncio.sleep(0.02)
            running.gateway.clock.advance(600)
        return await looking


async def test_a_connection_that_time_closes_is_seen_and_one_closed_too_early_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for line, limit in (("idle-limit", "_IDLE_S"), ("lifetime-limit", "_LIFETIME_S")):
        monkeypatch.setattr(lasting, limit, 0)
        outcome = await closed_by_time(line, monkeypatch)
        assert outcome.verdict is Verdict.SHOWN, outcome.detail
        monkeypatch.setattr(lasting, limit, 1_000)
        assert (await closed_by_time(line, monkeypatch)).verdict is Verdict.FAILED


async def test_the_access_log_is_read_and_may_hold_nothing_but_what_is_declared() -> None:
    for fields, verdict in (({}, Verdict.SHOWN), ({"authorization": "Bearer x"}, Verdict.FAILED)):
        lines = [{"message": json.dumps({"route": "ping", "integration_ms": "7"} | fields)}]
        outcome = await found("access-logs", WITH_ACCESS_LOG | {"logs.filter_log_events": {"events": lines}})
        assert outcome.verdict is verdict, outcome.detail
        assert "Bearer" not in outcome.detail
    assert (await found("access-logs", WITH_ACCESS_LOG | {"logs.filter_log_events": {"events": []}})).verdict is (
        Verdict.FAILED
    )
    assert (await found("access-logs", {"apigatewayv2.get_stage": {"StageName": "prod"}})).verdict is Verdict.FAILED


@pytest.mark.parametrize(
    ("line", "call", "something", "nothing"),
    [
        ("emf-metrics", "cloudwatch.get_metric_statistics", {"Datapoints": [{"Sum": 9.0}]}, {"Datapoints": []}),
        (
            "concurrency",
            "cloudwatch.get_metric_statistics",
            {"Datapoints": [{"Maximum": 1.0}, {"Maximum": 7.0}]},
            {"Datapoints": [{"Maximum": 1.0}]},
        ),
        ("xray-trace", "xray.get_trace_summaries", {"TraceSummaries": [{"Id": "1"}]}, {"TraceSummaries": []}),
        ("log-rights", "logs.filter_log_events", {"events": [{"message": "x"}]}, {"events": []}),
        (
            "evalsha-latency",
            "logs.filter_log_events",
            {"events": [{"message": "REPORT RequestId: 1 Duration: 4.25 ms Billed Duration: 5 ms"}] * 40},
            {"events": [{"message": "REPORT RequestId: 1 Duration: 4.25 ms"}] * 3},
        ),
    ],
)
async def test_what_comes_late_is_shown_when_it_comes_and_fails_when_it_does_not(
    line: str, call: str, something: dict[str, Any], nothing: dict[str, Any]
) -> None:
    for answer, verdict in ((something, Verdict.SHOWN), (nothing, Verdict.FAILED)):
        outcome = await found(line, {"lambda.get_function_configuration": FUNCTION, call: answer})
        assert outcome.verdict is verdict, outcome.detail


async def test_an_alarm_has_to_go_off_after_the_error_and_one_that_is_raised_is_left_alone() -> None:
    states: list[str] = []

    def alarms(**_: Any) -> dict[str, Any]:
        states.append("asked")
        return {"MetricAlarms": [ALARM | {"StateValue": "OK" if len(states) < 3 else "ALARM"}]}

    failing = {"lambda.invoke": {"StatusCode": 200, "FunctionError": "Unhandled"}}
    call = "cloudwatch.describe_alarms_for_metric"
    assert (await found("alarms-fire", {call: alarms} | failing)).verdict is Verdict.SHOWN
    assert (await found("alarms-fire", {call: {"MetricAlarms": [ALARM]}} | failing)).verdict is Verdict.FAILED
    assert (await found("alarms-fire", {call: {"MetricAlarms": []}})).verdict is Verdict.FAILED
    raised = {call: {"MetricAlarms": [ALARM | {"StateValue": "ALARM"}]}}
    assert (await found("alarms-fire", raised)).verdict is Verdict.NOT_APPLICABLE


def test_a_field_of_an_access_log_is_read_or_empty() -> None:
    assert pushes._field_of('{"connection": "abc="}', "connection") == "abc="
    assert [pushes._field_of(line, "connection") for line in ("", "no JSON", "[]", "{}")] == [""] * 4


async def test_the_table_under_a_key_is_written_and_read_by_roles_without_rights_on_keys() -> None:
    policy = {"Statement": [{"Effect": "Allow", "Action": ["dynamodb:GetItem"], "Resource": "*"}]}
    account: dict[str, Answer] = {
        "dynamodb.describe_table": {"Table": {"SSEDescription": {"Status": "ENABLED", "SSEType": "KMS"}}},
        "lambda.get_function_configuration": FUNCTION,
        "iam.list_role_policies": {"PolicyNames": ["p"]},
        "iam.get_role_policy": {"RoleName": "f", "PolicyName": "p", "PolicyDocument": policy},
    }
    assert (await found("table-key-rights", account)).verdict is Verdict.SHOWN
    policy["Statement"][0]["Action"] = ["kms:Decrypt"]
    assert (await found("table-key-rights", account)).verdict is Verdict.FAILED
    account["dynamodb.describe_table"] = {"Table": {"TableName": "threadkeep-prod"}}
    assert (await found("table-key-rights", account)).verdict is Verdict.FAILED


async def test_an_open_stream_shows_the_login_by_iam_and_nothing_shows_it_without() -> None:
    for settings, verdict in (({"THREADKEEP_HOT_AUTH": "iam"}, Verdict.SHOWN), ({}, Verdict.NOT_APPLICABLE)):
        told = {"lambda.get_function_configuration": FUNCTION | {"Environment": {"Variables": settings}}}
        outcome = await found("valkey-login", told)
        assert outcome.verdict is verdict, outcome.detail


async def test_pushes_from_a_vpc_need_ipv6_to_be_the_only_way_out() -> None:
    vpc = {"VpcId": "vpc-1", "SubnetIds": ["subnet-1"], "Ipv6AllowedForDualStack": True}
    six = {"DestinationIpv6CidrBlock": "::/0", "EgressOnlyInternetGatewayId": "eigw-1"}
    four = {"DestinationCidrBlock": "0.0.0.0/0", "NatGatewayId": "nat-1"}
    for routes, verdict in (([six], Verdict.SHOWN), ([six, four], Verdict.FAILED), ([four], Verdict.FAILED)):
        told: dict[str, Answer] = {
            "lambda.get_function_configuration": FUNCTION | {"VpcConfig": vpc},
            "ec2.describe_route_tables": {"RouteTables": [{"Routes": routes}]},
        }
        outcome = await found("push-over-ipv6", told)
        assert outcome.verdict is verdict, outcome.detail


async def test_what_was_made_is_deleted_and_what_cannot_be_is_told() -> None:
    async with ground() as (standing, running):
        async with standing.user() as user:
            kept = await standing.conversation(user)
        assert await standing.erase() == []
        async with standing.user() as user:
            assert (await user.get_erasure(kept))["reason"] == "owner"
        standing._made.append(kept)
        assert await standing.erase() == [], "again"
        unreachable = ToldGround(of=target("ws://127.0.0.1:1/none", key=KEY))
        unreachable._made.append(kept)
        assert await unreachable.erase() == [kept]
        assert running.gateway.url == standing.target.url
