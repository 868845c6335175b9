"""Writing an answer: gathered into few appends, kept until it is durable (protocol, section 3.1).

One task sends, so that one append is in flight. Whatever is said meanwhile waits for the window, or for the reply.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Literal, Self, cast

from threadkeep_client.backoff import Backoff
from threadkeep_client.connection import Connection
from threadkeep_client.errors import (
    ClosedError,
    ConflictError,
    ConnectionEndedError,
    FencedError,
    GapError,
    NotFoundError,
    ThreadkeepError,
    WireError,
)
from threadkeep_client.outbox import Outbox
from threadkeep_client.wire import Frame, JsonObject, Message, Part, Role, Status

_TEXT_CHARS_AT_ONCE: Final = 8_192


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """How long to gather before an append: nothing for the first piece, little for the first second, then more.

    With the defaults a 1,000-token answer of 20 s takes about 100 frames, and a reader sees it begin at once.
    """

    early_s: float = 0.04
    early_for_s: float = 1.0
    late_s: float = 0.25

    def gather_s(self, since_first_s: float) -> float:
        """The least time between two appends, so long after the first one."""
        return self.early_s if since_first_s < self.early_for_s else self.late_s


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings:
    """How a producer waits.

    Attributes:
        window: how long it gathers.
        beat_s: with nothing to say for so long, it says that it lives.
        outage_s: how long one append or close is repeated before the answer is given up.
        farewell_s: how long to try to close an answer whose block raised.
        unsent_bytes_max: when more waits, `text` and its like wait too.
        reopenings_max: in a row, without any append accepted between them.
        reopen: pauses between those.
    """

    window: Window = field(default_factory=Window)
    beat_s: float = 10.0
    outage_s: float = 300.0
    farewell_s: float = 5.0
    unsent_bytes_max: int = 1024 * 1024
    reopenings_max: int = 8
    reopen: Backoff = field(default_factory=lambda: Backoff(base_s=0.1, ceiling_s=5.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How an answer ended.

    Attributes:
        kind: `settled`: as this producer closed it, durably · `closed`: somebody else ended it, e.g. its reader
            stopped it · `fenced`: another producer took it over · `held`: another producer has it.
        message: the stored message, where the service told it; without `parts` if it is larger than a frame.
    """

    kind: Literal["settled", "closed", "fenced", "held"]
    message: Message | None = None


class StreamEndedError(ThreadkeepError):
    """The answer can no longer be written to; `outcome` says why. Stop generating."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(f"the answer has ended: {outcome.kind}")
        self.outcome = outcome


class Producer:
    """Writes one answer.

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

    Attributes:
        id: of the answer.
        epoch: of the log that is written; 0 before the stream is open.
        outcome: how it ended; None while it has not.
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
    ) -> None:
        self.id = message
        self.epoch = 0
        self.outcome: Outcome | None = None
        self._connection = connection
        self._settings = settings or ProducerSettings()
        self._opening: JsonObject = {
            "conversation": conversation,
            "message": message,
            "parent": parent,
            "role": role,
            "producer": str(uuid.uuid4()),
            **({"fork": True} if fork else {}),
            **({"model": model} if model is not None else {}),
            **({"metadata": metadata} if metadata else {}),
        }
        self._place = {"conversation": conversation, "stream": message}
        self._outbox = Outbox()
        self._parts: list[str] = []  # the type of every part begun
        self._closing: JsonObject | None = None
        self._hurry = False
        self._first_at: float | None = None
        self._sent_at = 0.0
        self._reopenings = 0
        self._wake = asyncio.Event()
        self._moved = asyncio.Condition()
        self._failed: Exception | None = None
        self._task: asyncio.Task[None] | None = None

    # --- life ------------------------------------------------------------------------------------------------------

    async def open(self) -> Self:
        """Open the stream.

        Raises:
            StreamEndedError: The answer is there already, or another producer's.
            WireError: It was refused: `ConflictError` with `stale_leaf` if the parent is not the leaf.
        """
        try:
            await self._open()
        except _Over as over:
            self.outcome = over.outcome
            raise StreamEndedError(over.outcome) from None
        self._sent_at = self._now()
        self._task = asyncio.create_task(self._run(), name="threadkeep producer")
        return self

    async def close(
        self, status: Status = "complete", *, usage: JsonObject | None = None, error: JsonObject | None = None
    ) -> Outcome:
        """Send what waits, end the answer, and return when it is durable. Again: the same outcome.

        Raises:
            WireError: It could not be made durable within `outage_s`.
        """
        if self._closing is None:
            self._outbox.release_halves()
            self._closing = {
                "status": status,
                **({"usage": usage} if usage is not None else {}),
                **({"error": error} if error is not None else {}),
            }
            self._wake.set()
        if self._task is not None:
            await asyncio.shield(self._task)
        if self._failed is not None:
            raise self._failed
        if self.outcome is None:
            raise RuntimeError("an answer is opened before it is closed")
        return self.outcome

    async def abandon(self) -> None:
        """Stop sending at once. The service ends the answer as `interrupted` when its lease runs out."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

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
            elif not self._is_over:
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
        """Begin a part of any type, e.g. a tool call; returns its index for `append` and `set`. Raises as `text`.

        Raises:
            TooLargeError: The part takes over 16 KiB: begin it with a short string and `append` the rest.
        """
        await self._ready()
        index = len(self._parts)
        self._outbox.begin_part(index, part)
        self._parts.append(str(part.get("type", "")))
        self._wake.set()
        return index

    async def append(self, index: int, piece: str) -> None:
        """Append to a part's growing string: `arguments` of a tool call, `output` of a tool result, else `text`."""
        if not 0 <= index < len(self._parts):
            raise IndexError(f"part {index} has not been begun")
        for start in range(0, len(piece), _TEXT_CHARS_AT_ONCE):
            await self._ready()
            self._outbox.add_text(index, piece[start : start + _TEXT_CHARS_AT_ONCE])
            self._wake.set()

    async def set(self, index: int, **fields: Any) -> None:
        """Merge fields into a part, e.g. a tool call's `state`. Raises as `begin`."""
        if not 0 <= index < len(self._parts):
            raise IndexError(f"part {index} has not been begun")
        await self._ready()
        self._outbox.set_fields(index, fields)
        self._wake.set()

    async def meta(self, **fields: Any) -> None:
        """Merge fields into the message's metadata. Raises as `begin`."""
        await self._ready()
        self._outbox.set_meta(fields)
        self._wake.set()

    async def flush(self) -> None:
        """Send what waits without gathering further, and return when the service has it. Raises as `text`."""
        self._hurry = self._outbox.has_unsent
        self._wake.set()
        async with self._moved:
            await self._moved.wait_for(lambda: not self._outbox.has_unsent or self._is_over)
        self._check()

    async def _grow(self, kind: Literal["text", "reasoning"], piece: str) -> None:
        if not piece:
            self._check()
            return
        if not self._parts or self._parts[-1] != kind:
            await self.begin({"type": kind, "text": ""})
        await self.append(len(self._parts) - 1, piece)

    async def _ready(self) -> None:
        """Wait while too much waits already."""
        if self._outbox.pending_bytes > self._settings.unsent_bytes_max:
            async with self._moved:
                await self._moved.wait_for(
                    lambda: self._outbox.pending_bytes <= self._settings.unsent_bytes_max or self._is_over
                )
        self._check()

    @property
    def _is_over(self) -> bool:
        return self._failed is not None or self.outcome is not None

    def _check(self) -> None:
        if self._failed is not None:
            raise self._failed
        if self.outcome is not None:
            raise StreamEndedError(self.outcome)
        if self._task is None or self._closing is not None:
            raise RuntimeError("an answer is written to between open and close")

    # --- sending: the one task -------------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            while self.outcome is None:
                await self._gather()
                if self._closing is not None and not self._outbox.has_unsent:
                    await self._close(self._closing)
                else:
                    await self._append()
                await self._tell()
        except _Over as over:
            self.outcome = over.outcome
        except asyncio.CancelledError:
            self._failed = ConnectionEndedError("the answer was abandoned")
            raise
        except Exception as error:  # noqa: BLE001 -- raised again by every later call, `close` included
            self._failed = error
        finally:
            await self._tell()

    async def _tell(self) -> None:
        if not self._outbox.has_unsent:
            self._hurry = False
        async with self._moved:
            self._moved.notify_all()

    async def _gather(self) -> None:
        """Wait until it is time to send something, if only a beat."""
        while True:
            due = self._due()
            if due <= self._now():
                return
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._wake.wait()

    def _due(self) -> float:
        if self._closing is not None or self._outbox.is_urgent:
            return 0.0
        if not self._outbox.has_unsent:
            return self._sent_at + self._settings.beat_s
        if self._first_at is None or self._hurry:
            return 0.0
        return self._sent_at + self._settings.window.gather_s(self._sent_at - self._first_at)

    async def _append(self) -> None:
        batch = self._outbox.next_batch()
        self._sent_at = self._now()
        if batch and self._first_at is None:
            self._first_at = self._sent_at
        try:
            await self._send("stream.append", ops=batch)
        except WireError as error:
            await self._heed(error)
        else:
            self._outbox.accept()
            self._reopenings = 0

    async def _close(self, closing: JsonObject) -> None:
        try:
            reply = await self._send("stream.close", **closing)
        except WireError as error:
            await self._heed(error)
        else:
            self.outcome = Outcome(kind="settled", message=_message(reply.get("message")))

    async def _send(self, action: str, **fields: Any) -> Frame:
        place = {**self._place, "epoch": self.epoch, "offset": self._outbox.offset}
        return await self._connection.request(action, **place, **fields, deadline_s=self._settings.outage_s)

    async def _heed(self, error: WireError) -> None:
        """Do what a verdict on an append or close asks for.

        Raises:
            _Over: The answer has ended.
            WireError: The error is no verdict.
        """
        match error:
            case ClosedError():
                raise _Over.closed(error)
            case GapError():
                expected = error.detail.get("expected")
                if not isinstance(expected, int) or not self._outbox.rewind(expected):
                    await self._reopen(error)
            case NotFoundError() | FencedError() | ConflictError(reason="diverged"):
                await self._reopen(error)
            case _:
                raise error

    async def _reopen(self, error: WireError) -> None:
        """Begin an empty log in a new epoch and say everything again: whoever knows all of it may."""
        self._reopenings += 1
        if self._reopenings > self._settings.reopenings_max:
            raise error
        if self._reopenings > 1:
            await asyncio.sleep(self._pause_s())
        await self._open()
        self._outbox.restart()

    def _pause_s(self) -> float:
        pauses = self._settings.reopen.pauses()
        return [next(pauses) for _ in range(self._reopenings)][-1]

    async def _open(self) -> None:
        """Open, or open again with the epoch held.

        Raises:
            _Over: The answer has ended, or is another's.
        """
        held = {"epoch": self.epoch} if self.epoch else {}
        try:
            reply = await self._connection.request(
                "stream.open", **self._opening, **held, deadline_s=self._settings.outage_s if held else None
            )
        except ClosedError as error:
            raise _Over.closed(error) from None
        except FencedError:
            raise _Over(Outcome(kind="fenced")) from None
        except ConflictError as error:
            if error.reason != "held":
                raise
            raise _Over(Outcome(kind="held")) from None
        self.epoch = reply["epoch"]

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


class _Over(Exception):  # noqa: N818 -- an end, not an error; it never leaves this module
    """The answer has ended."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.kind)
        self.outcome = outcome

    @classmethod
    def closed(cls, error: ClosedError) -> _Over:
        return cls(Outcome(kind="closed", message=_message(error.detail.get("settled"))))


def _message(value: object) -> Message | None:
    return cast("Message", value) if isinstance(value, dict) else None
