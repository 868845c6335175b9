"""A socket without the client's patience: what the gateway does to it is what is to be seen."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

OPEN_S: Final = 60.0
REPLY_S: Final = 60.0
"""A check's own time is the bound; where a slow answer is a wrong one, it measures."""
ABNORMAL: Final = 1006
"""No close frame came (RFC 6455, section 7.1.5)."""
_LOG: Final = logging.getLogger("smoke.socket")
_LOG.setLevel(logging.INFO)  # at DEBUG, websockets logs headers, and tokens are there


@asynccontextmanager
async def dial(
    url: str,
    token: str,
    *,
    subprotocols: Sequence[str] = (),
    in_header: bool = True,
    agent: str = "threadkeep-smoke",
) -> AsyncIterator[ClientConnection]:
    """Connect; the token goes in the `Authorization` header, or where `subprotocols` have it. No keep-alive pings.

    Raises:
        websockets.exceptions.InvalidStatus: the handshake was refused.
    """
    async with connect(
        url,
        additional_headers={"Authorization": f"Bearer {token}"} if in_header else {},
        subprotocols=[Subprotocol(name) for name in subprotocols] or None,
        user_agent_header=agent,
        open_timeout=OPEN_S,
        close_timeout=2,
        ping_interval=None,
        max_size=4 * 1024 * 1024,
        logger=_LOG,
    ) as socket:
        yield socket


def frame(action: str, **fields: Any) -> str:
    """A request as text."""
    return json.dumps({"action": action, **fields}, separators=(",", ":"))


async def exchange(socket: ClientConnection, text: str, *, patience_s: float = REPLY_S) -> dict[str, Any]:
    """Send, and take the next frame for the reply.

    Raises:
        TimeoutError: none came.
    """
    await socket.send(text)
    return await heard(socket, patience_s)


async def heard(socket: ClientConnection, patience_s: float) -> dict[str, Any]:
    """The next frame; what is no JSON object comes as the `text` of one.

    Raises:
        TimeoutError: none came.
    """
    async with asyncio.timeout(patience_s):
        text = await socket.recv()
    try:
        read = json.loads(text)
    except ValueError:
        read = None
    return dict(read) if isinstance(read, Mapping) else {"text": str(text)}


async def fate(socket: ClientConnection, message: str | Iterable[str], *, patience_s: float = 20) -> int | str:
    """What becomes of a message: the code of a close, or what was answered, or `silence`. A list goes in fragments."""
    try:
        await socket.send(message)
        reply = await heard(socket, patience_s)
    except ConnectionClosed as closed:
        return ABNORMAL if closed.rcvd is None else closed.rcvd.code
    except TimeoutError:
        return "silence"
    return str(reply.get("code") or reply.get("type") or reply.get("message") or "a frame of another kind")


async def close_code(socket: ClientConnection, patience_s: float) -> int | None:
    """The code with which it is closed from the other side; None if it is not in that time."""
    try:
        async with asyncio.timeout(patience_s):
            await socket.wait_closed()
    except TimeoutError:
        return None
    return ABNORMAL if socket.close_code is None else socket.close_code
