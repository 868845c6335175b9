"""Segments as Athena reads them."""

from __future__ import annotations

import asyncio
from typing import Any, Final
from urllib.parse import urlsplit

from botocore.exceptions import ClientError

from smoke.ground import Ground
from smoke.outcome import Outcome, failed, needs_hours, not_applicable, shown
from smoke.registry import check
from stacks import naming
from threadkeep import schema
from threadkeep.stores.table_keys import encode_name
from threadkeep.stores.zstandard import decompress

_TABLE: Final = "messages"
_SEGMENT_BYTES_MAX: Final = 4 * 1024 * 1024
_QUERY_S: Final = 120.0
_CREATED: Final = "from_unixtime(from_base(substr(replace(id, '-', ''), 1, 12), 16) / 1000.0)"
"""When a message was created: docs/runbook.md, "Reading the archive"."""


@check("athena", seconds_max=180)
async def a_segment_is_counted_as_it_is_read(ground: Ground) -> Outcome:
    """Rows of one segment, against its lines; several frames of Zstandard are one file."""
    bucket = naming.bucket(ground.target.stage, await ground.account(), ground.target.region)
    tenant = encode_name(ground.target.tenant)
    listed = await ground.ask("s3", "list_objects_v2", Bucket=bucket, Prefix=f"{schema.SEGMENTS_PREFIX}{tenant}/")
    small = [found for found in listed.get("Contents", []) if found["Size"] <= _SEGMENT_BYTES_MAX]
    if not small:
        return needs_hours("this tenant has no segment yet: a conversation of its has to have rested first")
    key = max(small, key=lambda found: int(found["Size"]))["Key"]
    content = await ground.ask("s3", "get_object", Bucket=bucket, Key=key)
    lines = decompress(await asyncio.to_thread(content["Body"].read)).count(b"\n")
    # Tenant and key are of our own making: percent-encoded names and hexadecimal digits.
    query = (
        f"SELECT count(*) FROM {naming.catalog(ground.target.stage)}.{_TABLE} "  # noqa: S608
        f"WHERE tenant = '{tenant}' AND \"$path\" = 's3://{bucket}/{key}' AND {_CREATED} <= now() + INTERVAL '1' DAY"
    )
    workgroup = ground.target.athena_workgroup
    try:
        started = await ground.ask("athena", "start_query_execution", QueryString=query, WorkGroup=workgroup)
    except ClientError as error:
        if "output location" in str(error).lower():
            return not_applicable(f"the workgroup {workgroup} has no place for results: name one, ATHENA_WORKGROUP=…")
        raise
    return await _judged(ground, str(started["QueryExecutionId"]), lines)


async def _judged(ground: Ground, query: str, lines: int) -> Outcome:
    async def look() -> dict[str, Any]:
        execution = await ground.ask("athena", "get_query_execution", QueryExecutionId=query)
        ended = execution["QueryExecution"]["Status"]["State"] in {"SUCCEEDED", "FAILED", "CANCELLED"}
        return dict(execution["QueryExecution"]) if ended else {}

    execution = await ground.until(look, _QUERY_S)
    try:
        if execution.get("Status", {}).get("State") != "SUCCEEDED":
            return failed(f"the query ended as {execution.get('Status', {}).get('State', 'unfinished')}")
        results = await ground.ask("athena", "get_query_results", QueryExecutionId=query)
        rows = int(results["ResultSet"]["Rows"][1]["Data"][0]["VarCharValue"])
    finally:
        await _forget(ground, execution.get("ResultConfiguration", {}).get("OutputLocation", ""))
    text = f"a segment of {lines} lines has {rows} rows"
    return shown(text) if rows == lines else failed(text)


async def _forget(ground: Ground, location: str) -> None:
    """Delete the result's two files, where the workgroup keeps any."""
    place = urlsplit(location)
    if place.scheme != "s3":
        return
    for suffix in ("", ".metadata"):
        await ground.ask("s3", "delete_object", Bucket=place.netloc, Key=place.path.lstrip("/") + suffix)
