"""What an operator sees: access logs, traces, metrics, alarms."""

from __future__ import annotations

import datetime as dt
import json
import time
from typing import Any, Final

from botocore.exceptions import ClientError

from smoke.ground import Ground
from smoke.outcome import Outcome, failed, held, not_applicable, shown
from smoke.raw import exchange, frame
from smoke.registry import check
from stacks import naming

_FIELDS: Final = {
    "connection",
    "error",
    "event",
    "integration_error",
    "integration_ms",
    "request",
    "route",
    "status",
    "time",
}
FAILING: Final = "announcer"
"""It fails on an empty event, and no client waits for it."""
_PINGS: Final = 10


async def access_log_group(ground: Ground) -> str | None:
    """The log group of the gateway's access logs; None where it writes none."""
    stage = await ground.ask("apigatewayv2", "get_stage", ApiId=await ground.api_id(), StageName=ground.target.stage)
    arn = stage.get("AccessLogSettings", {}).get("DestinationArn", "")
    return arn.partition("log-group:")[2].removesuffix(":*") or None


async def _ping(ground: Ground) -> None:
    async with ground.socket() as socket:
        for number in range(_PINGS):
            await exchange(socket, frame("ping", ref=str(number)))


@check("access-logs", seconds_max=340)
async def access_logs_say_what_and_not_who(ground: Ground) -> Outcome:
    """Our own pings are in it, with the declared fields and no others."""
    group = await access_log_group(ground)
    if group is None:
        return failed("the stage has no access log")
    since_ms = int(time.time() * 1000)
    await _ping(ground)

    async def look() -> list[dict[str, Any]]:
        return [json.loads(line) for line in await ground.log_lines(group, since_ms, '"ping"')]

    lines = await ground.until(look, ground.late(300))
    if not lines:
        return failed("no line of a ping came in time")
    odd = {name for line in lines for name in line} - _FIELDS
    text = f"{len(lines)} lines, integration {lines[-1].get('integration_ms')} ms"
    return held(text, [f"fields that are not declared: {sorted(odd)}"] if odd else [], shows=True)


@check("xray-trace", seconds_max=340)
async def a_function_is_traced(ground: Ground) -> Outcome:
    """One outside any VPC: the authorizer, which runs at every handshake."""
    return await _traced(ground, "authorizer")


@check("xray-trace-vpc", seconds_max=340)
async def a_function_in_the_vpc_is_traced(ground: Ground) -> Outcome:
    """It has no way to X-Ray of its own; Lambda sends its traces."""
    if not (await ground.function("connection")).get("VpcConfig", {}).get("VpcId"):
        return not_applicable("no function of this deployment stands in a VPC")
    return await _traced(ground, "connection")


async def _traced(ground: Ground, bulkhead: str) -> Outcome:
    name = naming.function(ground.target.stage, bulkhead)
    begun = dt.datetime.now(dt.UTC)

    async def look() -> int:
        await _ping(ground)  # one request a second is sampled for certain, of the rest one in twenty
        answer = await ground.ask(
            "xray",
            "get_trace_summaries",
            StartTime=begun - dt.timedelta(seconds=5),
            EndTime=dt.datetime.now(dt.UTC),
            FilterExpression=f'service("{name}")',
        )
        return len(answer["TraceSummaries"])

    count = await ground.until(look, ground.late(300))
    return shown(f"{count} traces of {bulkhead}") if count else failed(f"no trace of {bulkhead} in time")


@check("emf-metrics", seconds_max=340)
async def printed_metrics_are_counted(ground: Ground) -> Outcome:
    """Our own pings, among everybody's."""
    begun = dt.datetime.now(dt.UTC)
    await _ping(ground)
    counted = await ground.until(lambda: _sum(ground, begun), ground.late(300))
    return shown(f"{counted:.0f} pings counted") if counted else failed("no ping was counted in time")


async def _sum(ground: Ground, begun: dt.datetime) -> float:
    dimensions = {"service": "connection", "action": "ping", "outcome": "ok"}
    answer = await ground.ask(
        "cloudwatch",
        "get_metric_statistics",
        Namespace="Threadkeep",
        MetricName="Requests",
        Dimensions=[{"Name": name, "Value": value} for name, value in dimensions.items()],
        StartTime=begun.replace(second=0, microsecond=0),
        EndTime=dt.datetime.now(dt.UTC) + dt.timedelta(minutes=1),
        Period=60,
        Statistics=["Sum"],
    )
    return float(sum(point["Sum"] for point in answer["Datapoints"]))


@check("alarms-fire", seconds_max=420)
async def an_error_raises_its_alarm(ground: Ground) -> Outcome:
    """A function is given an event that is none: it fails, and its alarm of errors goes off."""
    function = naming.function(ground.target.stage, FAILING)
    alarm = await _alarm_of(ground, function)
    if alarm is None:
        return failed("there is no alarm of the function's errors")
    if alarm["StateValue"] == "ALARM":
        return not_applicable("the alarm is raised already: somebody should look at it")
    answer = await ground.ask("lambda", "invoke", FunctionName=function, Payload=b"{}")
    if "FunctionError" not in answer:
        return failed("the function took an empty event without an error")
    begun = time.monotonic()

    async def look() -> bool:
        seen = await _alarm_of(ground, function)
        return seen is not None and seen["StateValue"] == "ALARM"

    raised = await ground.until(look, ground.late(400))
    seconds = time.monotonic() - begun
    return shown(f"raised {seconds:.0f} s after the error") if raised else failed(f"not raised in {seconds:.0f} s")


async def _alarm_of(ground: Ground, function: str) -> dict[str, Any] | None:
    try:
        answer = await ground.ask(
            "cloudwatch",
            "describe_alarms_for_metric",
            Namespace="AWS/Lambda",
            MetricName="Errors",
            Statistic="Sum",
            Period=60,
            Dimensions=[{"Name": "FunctionName", "Value": function}],
        )
    except ClientError as error:
        if error.response["Error"]["Code"] == "ResourceNotFound":
            return None
        raise
    return dict(answer["MetricAlarms"][0]) if answer["MetricAlarms"] else None
