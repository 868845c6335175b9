"""Reading what does not come in one frame: the log of a stream or settled message, page by page (section 6)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Final, cast

from threadkeep_client.connection import Connection
from threadkeep_client.errors import UnavailableError
from threadkeep_client.ops import Assembly
from threadkeep_client.wire import Frame, JsonObject, Message, Op, Part

_WAITS_MAX: Final = 5


@dataclass(frozen=True, slots=True)
class Page:
    """A reply to `stream.resume`.

    Attributes:
        epoch: of the log that was read.
        at: the place where `ops` begin; 0 where another epoch was asked for.
        ops: the page.
        following: the place after it.
        more: whether the log goes on.
        message: the settled message, without parts where it does not fit.
        is_settled: whether the stream is a message by now.
    """

    epoch: int
    at: int
    following: int
    ops: list[Op] = field(default_factory=list)
    more: bool = False
    message: Message | None = None
    is_settled: bool = False

    @classmethod
    def from_frame(cls, frame: Frame) -> Page:
        """Read the reply."""
        return cls(
            epoch=frame["epoch"],
            at=frame["at"],
            following=frame["offset"],
            ops=frame.get("ops") or [],
            more=frame.get("more") is True,
            message=cast("Message | None", frame.get("message")),
            is_settled=frame.get("state") == "settled",
        )


async def read_page(
    connection: Connection, conversation: str, stream: str, *, epoch: int, offset: int, deadline_s: float | None = None
) -> Page:
    """One page from a place; (0, 0) is the start."""
    reply = await connection.request(
        "stream.resume", conversation=conversation, stream=stream, epoch=epoch, offset=offset, deadline_s=deadline_s
    )
    return Page.from_frame(reply)


async def read_parts(connection: Connection, conversation: str, message: str) -> list[Part]:
    """All parts of a settled message.

    Raises:
        WireError: A page was refused; `UnavailableError` where pages do not fit together (the log changed meanwhile).
    """
    assembly = Assembly()
    epoch = offset = 0
    while True:
        page = await read_page(connection, conversation, message, epoch=epoch, offset=offset)
        if page.message is not None and "parts" in page.message:
            return page.message["parts"]
        if page.at != offset or (offset and page.epoch != epoch) or (page.more and page.following <= offset):
            raise UnavailableError("the pages of a message do not fit together", reason="pages", retryable=True)
        assembly.apply(page.ops)
        epoch, offset = page.epoch, page.following
        if not page.more:
            return assembly.parts


async def with_parts(connection: Connection, message: Message) -> Message:
    """The message whole: its parts are read where it came without them."""
    if "parts" in message:
        return message
    parts = await read_parts(connection, message["conversation"], message["id"])
    whole = {name: value for name, value in message.items() if name != "bytes"}
    return cast("Message", whole | {"parts": parts})


async def read_path(
    connection: Connection, conversation: str, leaf: str | None, after: str | None = None, *, page_items: int = 100
) -> AsyncIterator[Message]:
    """Messages from a leaf (None: the present one; `"all"`: every branch) back to `after`, newest first.

    Those that do not fit a frame come without parts: see `with_parts`. What has not come to this region yet is waited
    for, a few times.

    Raises:
        WireError: A page was refused; `UnavailableError` where one leads to itself, or what was waited for does not
            come.
    """
    asked: JsonObject = {"conversation": conversation, "limit": page_items, "leaf": leaf, "after": after}
    asked = {name: value for name, value in asked.items() if value is not None}
    waits = 0
    pauses = connection.settings.repeat.pauses()
    while True:
        reply = await connection.request("message.list", **asked)
        for message in reply["messages"]:
            yield message
        cursor = reply.get("cursor")
        if cursor is None:
            return
        if reply.get("incomplete") is True:
            waits += 1
            if waits > _WAITS_MAX:
                raise UnavailableError("messages are still on their way here", reason="incomplete", retryable=True)
            await asyncio.sleep(next(pauses))
        elif cursor == asked.get("cursor"):
            raise UnavailableError("a page of messages leads to itself", reason="pages", retryable=True)
        else:
            waits = 0
        asked["cursor"] = cursor
