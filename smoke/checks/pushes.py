"""`@connections` as whoever runs the pack: what a push may hold, and what a connection hears that is deleted."""

from __future__ import annotations

import json
import time
import uuid
from typing import Any, Final

from botocore.exceptions import ClientError

from smoke.checks.observing import access_log_group
from smoke.ground import Ground
from smoke.outcome import Outcome, failed, held, shown
from smoke.raw import close_code, heard
from smoke.registry import check

_KIB: Final = 1024
_LARGE_BYTES: Final = 100 * _KIB
_TOO_LARGE_BYTES: Final = 129 * _KIB
_NAMES_MAX: Final = 100
_GONE: Final = "GoneException"
_TOO_LARGE: Final = {"PayloadTooLargeException", "413"}


@check("push-payload-limit", seconds_max=200)
async def a_push_beyond_128_kib_is_refused(ground: Ground) -> Outcome:
    """One of 100 KiB arrives, one of 129 KiB does not."""
    agent = f"threadkeep-smoke/{uuid.uuid4()}"
    async with ground.socket(agent=agent) as socket:
        connection = await _own_connection(ground, agent)
        if connection is None:
            return failed("the own connection was not found in the access log")
        await ground.connections("post_to_connection", ConnectionId=connection, Data=b'"' + b"a" * _LARGE_BYTES + b'"')
        arrived = len((await heard(socket, 20)).get("text", ""))
        try:
            await ground.connections("post_to_connection", ConnectionId=connection, Data=b"a" * _TOO_LARGE_BYTES)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            faults = [] if code in _TOO_LARGE else [f"129 KiB were refused with {code}"]
        else:
            faults = ["129 KiB were taken"]
    if arrived < _LARGE_BYTES:
        faults.append(f"of 100 KiB {arrived} bytes arrived")
    return held("100 KiB arrived, 129 KiB were refused", faults, shows=True)


@check("connection-deleted", seconds_max=200)
async def a_deleted_connection_is_gone(ground: Ground) -> Outcome:
    """Which code its client sees, and what the next push to it is told."""
    agent = f"threadkeep-smoke/{uuid.uuid4()}"
    async with ground.socket(agent=agent) as socket:
        connection = await _own_connection(ground, agent)
        if connection is None:
            return failed("the own connection was not found in the access log")
        await ground.connections("delete_connection", ConnectionId=connection)
        code = await close_code(socket, 20)
    if code is None:
        return failed("the connection stayed open for 20 s")
    try:
        await ground.connections("post_to_connection", ConnectionId=connection, Data=b"{}")
    except ClientError as error:
        told = error.response["Error"]["Code"]
        text = f"the client saw {code}, the next push {told}"
        return shown(text, close_code=code) if told in {_GONE, "410"} else failed(text)
    return failed(f"the client saw {code}, and the next push was taken")


async def _own_connection(ground: Ground, agent: str) -> str | None:
    """The id of the connection that came with that `User-Agent`.

    No frame tells a client its id, so it is found among the newest of the access log, each asked who it is: a push to
    a wrong one would reach somebody else.
    """
    group = await access_log_group(ground)
    if group is None:
        return None
    since_ms = int((time.time() - 30) * 1000)
    asked: set[str] = set()

    async def look() -> str | None:
        for line in await ground.log_lines(group, since_ms, '"CONNECT"'):
            name = _field_of(line, "connection")
            if name and name not in asked and len(asked) < _NAMES_MAX:
                asked.add(name)
                if await _agent_of(ground, name) == agent:
                    return name
        return None

    return await ground.until(look, ground.late(150))


async def _agent_of(ground: Ground, connection: str) -> str | None:
    try:
        known: dict[str, Any] = await ground.connections("get_connection", ConnectionId=connection)
    except ClientError:
        return None  # it is gone already
    return (known.get("Identity") or {}).get("UserAgent")


def _field_of(line: str, name: str) -> str:
    """A text field of an access log's line; empty where it has none."""
    try:
        read = json.loads(line)
    except ValueError:
        return ""
    return str(read.get(name, "")) if isinstance(read, dict) else ""
