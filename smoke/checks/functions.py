"""Functions as Lambda runs them."""

from __future__ import annotations

import asyncio
import datetime as dt
from contextlib import AsyncExitStack
from typing import Final

from smoke.ground import Ground
from smoke.outcome import Outcome, failed, held, not_applicable, read_back, shown
from smoke.raw import exchange, frame
from smoke.registry import check
from stacks import naming
from stacks.bulkheads import AUTHORIZER, ROUTE_BULKHEADS

_AT_ONCE: Final = 12
_ROUNDS: Final = 5
_RUNTIME: Final = "python3.14"


@check("concurrency", seconds_max=340)
async def one_function_runs_at_many_places_at_once(ground: Ground) -> Outcome:
    """Pings on a dozen connections; Lambda counts how many of its executions overlapped."""
    begun = dt.datetime.now(dt.UTC)
    async with AsyncExitStack() as stack:
        sockets = [await stack.enter_async_context(ground.socket()) for _ in range(_AT_ONCE)]
        for number in range(_ROUNDS):
            await asyncio.gather(*(exchange(socket, frame("ping", ref=str(number))) for socket in sockets))
    most = await ground.until(lambda: _most_at_once(ground, begun), ground.late(300))
    if most > 1:
        return shown(f"{most:.0f} executions of one function at once", executions=most)
    return failed(f"at most {most:.0f} executions of one function at once")


async def _most_at_once(ground: Ground, begun: dt.datetime) -> float:
    name = naming.function(ground.target.stage, "connection")
    answer = await ground.ask(
        "cloudwatch",
        "get_metric_statistics",
        Namespace="AWS/Lambda",
        MetricName="ConcurrentExecutions",
        Dimensions=[{"Name": "FunctionName", "Value": name}],
        StartTime=begun.replace(second=0, microsecond=0),
        EndTime=dt.datetime.now(dt.UTC) + dt.timedelta(minutes=1),
        Period=60,
        Statistics=["Maximum"],
    )
    return max((float(point["Maximum"]) for point in answer["Datapoints"]), default=0.0)


@check("reserved-concurrency")
async def every_bulkhead_has_its_share(ground: Ground) -> Outcome:
    """Where the setting `lambda_concurrency` reserves any."""
    shares = {}
    for bulkhead in (*ROUTE_BULKHEADS, AUTHORIZER):
        name = naming.function(ground.target.stage, bulkhead.name)
        answer = await ground.ask("lambda", "get_function_concurrency", FunctionName=name)
        shares[bulkhead.name] = answer.get("ReservedConcurrentExecutions")
    if not any(shares.values()):
        return not_applicable("`lambda_concurrency` is not set: nothing is reserved")
    lacking = sorted(name for name, share in shares.items() if not share)
    return failed(f"none for {', '.join(lacking)}") if lacking else read_back(f"{shares}")


@check("runtime")
async def the_code_runs_on_the_runtime_that_it_is_bundled_for(ground: Ground) -> Outcome:
    """The label of every function, and an answer of one of them."""
    faults = []
    for bulkhead in (*ROUTE_BULKHEADS, AUTHORIZER):
        config = await ground.function(bulkhead.name)
        if (config["Runtime"], config.get("Architectures")) != (_RUNTIME, ["arm64"]):
            faults.append(f"{bulkhead.name}: {config['Runtime']} on {config.get('Architectures')}")
    async with ground.socket() as socket:
        reply = await exchange(socket, frame("ping", ref="smoke"))
    if reply.get("type") != "ping.ok":
        faults.append(f"a ping was answered with {reply.get('code')}")
    return held(f"{_RUNTIME} on arm64, and it answers", faults, shows=True)


@check("aliases")
async def the_gateway_calls_the_functions_themselves(ground: Ground) -> Outcome:
    """With an alias in between, a deployment would have to be seen to move it; and so would SnapStart."""
    called = await ground.listed("apigatewayv2", "get_integrations", "Items", ApiId=await ground.api_id())
    functions = [item["IntegrationUri"].partition(":function:")[2] for item in called]
    qualified = [name for name in functions if ":" in name.partition("/invocations")[0]]
    snapping = []
    for bulkhead in ROUTE_BULKHEADS:
        config = await ground.function(bulkhead.name)
        if config.get("SnapStart", {}).get("ApplyOn", "None") != "None":
            snapping.append(bulkhead.name)
    if qualified or snapping:
        return failed(f"not looked into by this pack: {len(qualified)} aliases or versions, SnapStart on {snapping}")
    return not_applicable("no function is behind an alias, none has SnapStart")
