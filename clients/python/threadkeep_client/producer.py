"""Writing an answer: gathered into few appends, kept until it is durable (protocol, section 3.1)."""

from __future__ import annotations

import asyncio
import uuid
from types import TracebackType
from typing import Any, Final, Literal, Self

from threadkeep_client.connection import Connection
from threadkeep_client.errors import ThreadkeepError
from threadkeep_client.regions import Regions
from threadkeep_client.stream_writer import StreamWriter
from threadkeep_client.wire import JsonObject, Part, Role, Status
from threadkeep_client.writing import Outcome, ProducerSettings

_TEXT_CHARS_AT_ONCE: Final = 8_192


class StreamEndedError(ThreadkeepError):
    """The answer can no longer be written to; `outcome` says why. Stop generating."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(f"the answer has ended: {outcome.kind}")
        self.outcome = outcome


class Producer:
    """Writes one answer; one task calls it.

    As a context manager it opens the stream and, at the end of the block, closes it as `complete`: afterwards the
    answer is durable and `outcome` is set. If the block raises, the answer is closed as `failed`, or as `interrupted`
    where its task is cancelled. A `StreamEndedError` that a write in the block raises ends the block and no more: that
    a reader stops an answer is an ordinary end, to be looked up in `outcome`.

    Args:
        connection: with scope `produce`.
        conversation: its id.
        message: the answer's id, minted by the caller and greater than its parent's.
        parent: the message that it answers; None makes it a root.
        role: as a rule `assistant`.
        model: its name.
        metadata: of the message.
        fork: the parent is not the conversation's present leaf, and a branch is meant.
        settings: how it waits.
        regions: where connections to other regions come from, should one of them have the stream; absent, the producer
            has its own.

    Attributes:
        id: of the answer.
    """

    def __init__(
        self,
        connection: Connection,
        conversation: str,
        *,
        message: str,
        parent: str | None,
        role: Role = "assistant",
        model: str | None = None,
        metadata: JsonObject | None = None,
        fork: bool = False,
        settings: ProducerSettings | None = None,
        regions: Regions | None = None,
    ) -> None:
        self.id = message
        self._settings = settings or ProducerSettings()
        opening: JsonObject = {
            "conversation": conversation,
            "message": message,
            "parent": parent,
            "role": role,
            "producer": str(uuid.uuid4()),
            **({"fork": True} if fork else {}),
            **({"model": model} if model is not None else {}),
            **({"metadata": metadata} if metadata else {}),
        }
        self._writer = StreamWriter(regions or Regions(connection), opening, self._settings)
        self._kinds: list[str] = []  # the type of every part begun

    @property
    def epoch(self) -> int:
        """Of the log that is written; 0 before the stream is open."""
        return self._writer.epoch

    @property
    def outcome(self) -> Outcome | None:
        """How the answer ended; None while it has not."""
        return self._writer.outcome

    @property
    def parts(self) -> list[Part]:
        """All that has been said, sent or not."""
        return self._writer.outbox.assembly().parts

    # --- life ------------------------------------------------------------------------------------------------------

    async def open(self) -> Self:
        """Open the stream.

        Raises:
            StreamEndedError: The answer is there already, or another producer's.
            WireError: It was refused: `ConflictError` with `stale_leaf` if the parent is not the leaf.
        """
        await self._writer.start()
        if self._writer.outcome is not None:
            raise StreamEndedError(self._writer.outcome)
        return self

    async def close(
        self, status: Status = "complete", *, usage: JsonObject | None = None, error: JsonObject | None = None
    ) -> Outcome:
        """Send what waits, end the answer, and return when it is durable. Again: the same outcome.

        Raises:
            WireError: It could not be made durable within `outage_s`.
        """
        fields: JsonObject = {"status": status, "usage": usage, "error": error}
        await self._writer.close({name: value for name, value in fields.items() if value is not None})
        if self._writer.failed is not None:
            raise self._writer.failed
        if self._writer.outcome is None:
            raise RuntimeError("an answer is opened before it is closed")
        return self._writer.outcome

    async def abandon(self) -> None:
        """Stop sending at once. The service ends the answer as `interrupted` when its lease runs out."""
        await self._writer.stop()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        try:
            if error is None:
                await self.close()
            elif isinstance(error, StreamEndedError) and error.outcome is self.outcome:
                return True
            elif not self._writer.is_over:
                await self._close_after(error)
        finally:
            await self.abandon()
        return False

    async def _close_after(self, error: BaseException) -> None:
        """Close an answer whose block raised; what it raised goes on, whether that succeeds or not."""
        try:
            async with asyncio.timeout(self._settings.farewell_s):
                status: Status = "failed" if isinstance(error, Exception) else "interrupted"
                await self.close(status, error={"code": type(error).__name__})
        except (ThreadkeepError, TimeoutError) as reason:
            error.add_note(f"The answer could not be closed ({reason}); the service ends it when its lease runs out.")

    # --- saying ----------------------------------------------------------------------------------------------------

    async def text(self, piece: str) -> None:
        """Append to the answer's text; begins a text part where the newest part is none.

        Raises:
            StreamEndedError: The answer has ended.
            TooLargeError: The whole answer would take over 8 MiB.
            WireError: Sending failed for good.
        """
        await self._grow("text", piece)

    async def reasoning(self, piece: str) -> None:
        """Append to the reasoning; begins a reasoning part where the newest part is none. Raises as `text`."""
        await self._grow("reasoning", piece)

    async def begin(self, part: Part) -> int:
        """Begin a part of any type, e.g. a tool call; returns its index for `append` and `set`.

        Raises as `text`; `TooLargeError` also where the part takes over 16 KiB: begin it with a short string and
        `append` the rest.
        """
        await self._ready()
        index = len(self._kinds)
        self._writer.outbox.begin_part(index, part)
        self._kinds.append(str(part.get("type", "")))
        self._writer.wake()
        return index

    async def append(self, index: int, piece: str) -> None:
        """Append to a part's growing string: `arguments` of a tool call, `output` of a tool result, else `text`.

        Raises as `text`, and `IndexError` where there is no such part.
        """
        self._check_begun(index)
        for start in range(0, len(piece), _TEXT_CHARS_AT_ONCE):
            await self._ready()
            self._writer.outbox.add_text(index, piece[start : start + _TEXT_CHARS_AT_ONCE])
            self._writer.wake()

    async def set(self, index: int, **fields: Any) -> None:
        """Merge fields into a part, e.g. a tool call's `state`. Raises as `append`."""
        self._check_begun(index)
        await self._ready()
        self._writer.outbox.set_fields(index, fields)
        self._writer.wake()

    async def meta(self, **fields: Any) -> None:
        """Merge fields into the message's metadata. Raises as `begin`."""
        await self._ready()
        self._writer.outbox.set_meta(fields)
        self._writer.wake()

    async def flush(self) -> None:
        """Send what waits without gathering further, and return when the service has it. Raises as `text`."""
        self._check()
        await self._writer.flush()
        self._check()

    async def _grow(self, kind: Literal["text", "reasoning"], piece: str) -> None:
        self._check()
        if not piece:
            return
        if not self._kinds or self._kinds[-1] != kind:
            await self.begin({"type": kind, "text": ""})
        await self.append(len(self._kinds) - 1, piece)

    async def _ready(self) -> None:
        """Wait while too much waits already."""
        outbox = self._writer.outbox
        if outbox.pending_bytes > self._settings.unsent_bytes_max:
            await self._writer.until(lambda: outbox.pending_bytes <= self._settings.unsent_bytes_max)
        self._check()

    def _check_begun(self, index: int) -> None:
        if not 0 <= index < len(self._kinds):
            raise IndexError(f"part {index} has not been begun")

    def _check(self) -> None:
        if self._writer.failed is not None:
            raise self._writer.failed
        if self._writer.outcome is not None:
            raise StreamEndedError(self._writer.outcome)
        if not self._writer.takes_more:
            raise RuntimeError("an answer is written to between open and close")
