"""The table's stream and its one consumer."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

from smoke.ground import Ground
from smoke.outcome import Outcome, failed, held, needs_hours, shown
from smoke.registry import check
from stacks import naming
from threadkeep import schema

_DAY_S: Final = 24 * 60 * 60


async def _mapping(ground: Ground) -> dict[str, Any]:
    """The announcer's mapping to the stream.

    Raises:
        LookupError: there is none, or more than one.
    """
    name = naming.function(ground.target.stage, "announcer")
    listed = await ground.ask("lambda", "list_event_source_mappings", FunctionName=name)
    (mapping,) = listed["EventSourceMappings"] or [{}]
    if not mapping:
        raise LookupError("the announcer has no event source")
    return dict(mapping)


@check("stream-retries")
async def a_failed_batch_comes_again(ground: Ground) -> Outcome:
    """For a day, then its place goes to a queue."""
    mapping = await _mapping(ground)
    faults = []
    if mapping.get("MaximumRecordAgeInSeconds") != _DAY_S:
        faults.append(f"records are tried for {mapping.get('MaximumRecordAgeInSeconds')} s")
    if mapping.get("MaximumRetryAttempts", -1) != -1:
        faults.append(f"only {mapping['MaximumRetryAttempts']} times")
    destination = mapping.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination", "")
    if not destination.endswith(naming.failed_changes(ground.target.stage)):
        faults.append("no queue for what failed")
    return held("again and again for a day, then a queue", faults, shows=False)


@check("stream-partial-answers")
async def only_what_failed_comes_again(ground: Ground) -> Outcome:
    """The mapping takes partial answers."""
    kinds = (await _mapping(ground)).get("FunctionResponseTypes", [])
    return held("the mapping takes them", [] if kinds == ["ReportBatchItemFailures"] else [f"{kinds}"], shows=False)


@check("stream-bisecting")
async def a_failed_batch_is_halved(ground: Ground) -> Outcome:
    """The mapping halves."""
    halves = (await _mapping(ground)).get("BisectBatchOnFunctionError")
    return held("the mapping halves", [] if halves is True else [f"bisecting: {halves}"], shows=False)


@check("event-source-rights", seconds_max=120)
async def a_deletion_runs_by_stream_and_queues(ground: Ground) -> Outcome:
    """Its receipt has a first pass in every store: the announcer read the stream, eraser and herald their queues."""
    async with ground.user() as user:
        conversation = await ground.conversation(user)
        await user.delete_conversation(conversation)

        async def look() -> list[str]:
            lines = (await user.get_erasure(conversation))["lines"]
            return [f"{line['store']} in {line['region']}" for line in lines] if all(map(_begun, lines)) else []

        passed = await ground.until(look, 100)
    return shown(f"a first pass of {', '.join(passed)}") if passed else failed("no first pass of every store in time")


def _begun(line: dict[str, Any]) -> bool:
    return int(line["passes"]) >= 1


@check("ttl-records")
async def expired_items_are_deleted(ground: Ground) -> Outcome:
    """DynamoDB counts what it deletes by TTL; that exports expire after a day is what there is to count."""
    told = await ground.ask("dynamodb", "describe_time_to_live", TableName=ground.table_name)
    told = told["TimeToLiveDescription"]
    if (told.get("TimeToLiveStatus"), told.get("AttributeName")) != ("ENABLED", schema.TTL_ATTRIBUTE):
        return failed(f"TTL is {told}")
    now = dt.datetime.now(dt.UTC)
    answer = await ground.ask(
        "cloudwatch",
        "get_metric_statistics",
        Namespace="AWS/DynamoDB",
        MetricName="TimeToLiveDeletedItemCount",
        Dimensions=[{"Name": "TableName", "Value": ground.table_name}],
        StartTime=now - dt.timedelta(days=7),
        EndTime=now,
        Period=_DAY_S,
        Statistics=["Sum"],
    )
    deleted = sum(point["Sum"] for point in answer["Datapoints"])
    if deleted:
        return shown(f"{deleted:.0f} items deleted by TTL in the last 7 days")
    return needs_hours("TTL is on; nothing was deleted by it in 7 days: make an export and ask again two days later")
