"""What a client sees that asks too fast."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from contextlib import AsyncExitStack
from typing import Any, Final

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from smoke.ground import Ground
from smoke.outcome import Outcome, failed, shown
from smoke.raw import ABNORMAL, frame
from smoke.registry import check

_SOCKETS: Final = 4
_PINGS: Final = 500
"""On each: together four times the burst that a route may have (`stacks.constructs.gateway.DEFAULT_THROTTLE`)."""
_SILENT_S: Final = 5.0


@check("throttle-frame", seconds_max=90, turn="last")
async def what_a_throttled_client_sees(ground: Ground) -> Outcome:
    """2,000 pings at once; for a second, pings of others may be refused too."""
    async with AsyncExitStack() as stack:
        sockets = [await stack.enter_async_context(ground.socket()) for _ in range(_SOCKETS)]
        sending = (asyncio.create_task(_send(socket)) for socket in sockets)
        seen = sum([await listening for listening in [*sending]], Counter[str]())
    answered = seen.pop("ping.ok", 0)
    text = f"of {_SOCKETS * _PINGS} pings {answered} answered; besides: {dict(seen) or 'nothing'}"
    of_gateway = [name for name in seen if name.startswith(("gateway", "closed"))]
    return shown(text, answered=answered) if of_gateway else failed(text, answered=answered)


async def _send(socket: ClientConnection) -> Counter[str]:
    """Send them all, and count what comes of them by its kind."""
    seen = Counter[str]()
    listening = asyncio.create_task(_listen(socket, seen))
    try:
        for number in range(_PINGS):
            await socket.send(frame("ping", ref=str(number)))
    except ConnectionClosed:
        pass  # the listener counts it
    await listening
    return seen


async def _listen(socket: ClientConnection, seen: Counter[str]) -> None:
    try:
        while seen.total() < _PINGS:
            async with asyncio.timeout(_SILENT_S):
                seen[_kind(json.loads(await socket.recv()))] += 1
    except TimeoutError:
        seen["without an answer"] += _PINGS - seen.total()
    except ConnectionClosed as closed:
        seen[f"closed with {ABNORMAL if closed.rcvd is None else closed.rcvd.code}"] += 1


def _kind(read: dict[str, Any]) -> str:
    """Replies of ours by type and code; a frame of the gateway's own by its fields and its message."""
    if "type" in read:
        return str(read.get("code") or read["type"])
    return f"gateway {sorted(read)}: {read.get('message')}"
