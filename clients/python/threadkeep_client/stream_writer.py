"""The one task that sends an answer: when, in which batches, and what follows from each verdict (section 3.1).

One append is in flight; what is said meanwhile waits for the window, or for the reply.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from threadkeep_client.backoff import Backoff
from threadkeep_client.connection import Connection
from threadkeep_client.errors import (
    ClosedError,
    ConflictError,
    ConnectionEndedError,
    FencedError,
    GapError,
    NotFoundError,
    WireError,
)
from threadkeep_client.outbox import Outbox
from threadkeep_client.uploading import fits_frame, upload_parts
from threadkeep_client.wire import Frame, JsonObject, Message


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
        patience_s: how long one request is repeated before it is asked whether another would serve better.
        outage_s: how long the service may be unavailable before the answer is given up.
        farewell_s: how long to try to close an answer whose block raised.
        unsent_bytes_max: when more waits, `text` and its like wait too.
        reopenings_max: in a row, without any append accepted between them.
        reopen: pauses between those.
    """

    window: Window = field(default_factory=Window)
    beat_s: float = 10.0
    patience_s: float = 20.0
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


class StreamWriter:
    """Sends what an outbox gathers, until it is closed or ends otherwise.

    Args:
        connection: with scope `produce`.
        opening: the fields of `stream.open`, which every repeat and every reopening says again.
        settings: how it waits.

    Attributes:
        outbox: fill it, then `wake`.
        epoch: of the log that is written; 0 before the stream is open.
        outcome: how the answer ended; None while it has not.
        failed: what ended the task otherwise.
    """

    def __init__(self, connection: Connection, opening: JsonObject, settings: ProducerSettings) -> None:
        self.outbox = Outbox()
        self.epoch = 0
        self.outcome: Outcome | None = None
        self.failed: Exception | None = None
        self._connection = connection
        self._opening = opening
        self._settings = settings
        self._closing: JsonObject | None = None
        self._uploaded: JsonObject | None = None
        self._hurry = False
        self._first_at: float | None = None
        self._sent_at = 0.0
        self._reopenings = 0
        self._trouble_since: float | None = None
        self._wake = asyncio.Event()
        self._moved = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None

    # --- what the producer calls -------------------------------------------------------------------------------------

    @property
    def takes_more(self) -> bool:
        """Whether it is open, and nothing has ended it, nor is about to."""
        return self._task is not None and self._closing is None and not self.is_over

    @property
    def is_over(self) -> bool:
        """Whether nothing more will be sent."""
        return self.failed is not None or self.outcome is not None

    async def start(self) -> None:
        """Open the stream; `outcome` is set if that ended it.

        Raises:
            WireError: It was refused.
        """
        try:
            await self._open()
        except _Over as over:
            self.outcome = over.outcome
            return
        self._sent_at = self._now()
        self._task = asyncio.create_task(self._run(), name="threadkeep producer")

    def wake(self) -> None:
        """Look again: something was put into the outbox."""
        self._wake.set()

    async def flush(self) -> None:
        """Send without gathering further; return when all is accepted, or it is over."""
        self._hurry = self.outbox.has_unsent
        self._wake.set()
        await self.until(lambda: not self.outbox.has_unsent)

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait until something holds, or it is over."""
        async with self._moved:
            await self._moved.wait_for(lambda: reached() or self.is_over)

    async def close(self, fields: JsonObject) -> None:
        """Send what waits and close with these fields; again: wait for the first to be done."""
        if self._closing is None:
            self.outbox.release_halves()
            self._closing = fields
            self._wake.set()
        if self._task is not None:
            await asyncio.shield(self._task)

    async def stop(self) -> None:
        """Stop at once."""
        if not self.is_over:
            self.failed = ConnectionEndedError("the answer was abandoned")
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    # --- the task ----------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            while self.outcome is None:
                await self._gather()
                closing = await self._what_closes()
                if closing is None:
                    await self._append()
                else:
                    await self._close(closing)
                await self._tell()
        except _Over as over:
            self.outcome = over.outcome
        except Exception as error:  # noqa: BLE001 -- raised again by every later call, `close` included
            self.failed = error
        finally:
            await self._tell()

    async def _tell(self) -> None:
        if not self.outbox.has_unsent:
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
        if self._closing is not None or self.outbox.is_urgent:
            return 0.0
        if not self.outbox.has_unsent:
            return self._sent_at + self._settings.beat_s
        if self._first_at is None or self._hurry:
            return 0.0
        return self._sent_at + self._settings.window.gather_s(self._sent_at - self._first_at)

    async def _append(self) -> None:
        batch = self.outbox.next_batch()
        self._sent_at = self._now()
        if batch and self._first_at is None:
            self._first_at = self._sent_at
        try:
            await self._send("stream.append", ops=batch)
        except WireError as error:
            await self._heed(error)
        else:
            self.outbox.accept()
            self._reopenings = 0
            self._trouble_since = None

    async def _close(self, closing: JsonObject) -> None:
        try:
            reply = await self._send("stream.close", **closing)
        except WireError as error:
            await self._heed(error)
        else:
            self.outcome = Outcome(kind="settled", message=_message(reply.get("message")))

    async def _send(self, action: str, **fields: Any) -> Frame:
        place = {
            "conversation": self._opening["conversation"],
            "stream": self._opening["message"],
            "epoch": self.epoch,
            "offset": self.outbox.offset,
        }
        return await self._connection.request(action, **place | fields, deadline_s=self._settings.patience_s)

    # --- closing -----------------------------------------------------------------------------------------------------

    async def _what_closes(self) -> JsonObject | None:
        """The fields of the close; None if something else is to be said before it."""
        if self._closing is None:
            return None
        if self._trouble_since is not None:
            whole = self._closing | self._body()
            if fits_frame(whole) or await self._upload_body(whole):
                return whole
        return None if self.outbox.has_unsent else self._closing

    async def _upload_body(self, whole: JsonObject) -> bool:
        """Put the body where the table's side can read it, once, and name it; whether that worked."""
        if self._uploaded is None:
            try:
                self._uploaded = await upload_parts(self._connection, self._opening["conversation"], whole["body"])
            except WireError as error:
                if not error.retryable:
                    raise
                return False  # then by way of the hot tier, which may be back
        whole["body"] = self._uploaded
        return True

    def _body(self) -> JsonObject:
        """The whole answer, as the close says it where the hot tier is away: that needs the table alone.

        At the place after everything said: if the hot tier is back meanwhile, it answers `gap` and is told the rest,
        instead of taking what it has for all.
        """
        assembly = self.outbox.assembly()
        metadata = {**self._opening.get("metadata", {}), **assembly.metadata}
        body: JsonObject = {name: self._opening[name] for name in ("parent", "role", "model") if name in self._opening}
        body |= {"offset": self.outbox.end(), "body": assembly.parts}
        return body | ({"metadata": metadata} if metadata else {})

    # --- verdicts ----------------------------------------------------------------------------------------------------

    async def _heed(self, error: WireError) -> None:
        """Do what a verdict on an append or close asks for.

        Raises:
            _Over: The answer has ended.
            WireError: The error is no verdict, or the service has been away for too long.
        """
        if not error.retryable:
            self._trouble_since = None
        match error:
            case ClosedError():
                raise _Over.closed(error)
            case GapError():
                expected = error.detail.get("expected")
                if not isinstance(expected, int) or not self.outbox.rewind(expected):
                    await self._reopen(error)
            case NotFoundError() | FencedError() | ConflictError(reason="diverged"):
                await self._reopen(error)
            case WireError(retryable=True):
                self._trouble_since = self._trouble_since or self._now()
                if self._now() - self._trouble_since > self._settings.outage_s:
                    raise error
            case _:
                raise error

    async def _reopen(self, error: WireError) -> None:
        """Begin an empty log in a new epoch and say everything again: whoever knows all of it may."""
        self._reopenings += 1
        if self._reopenings > self._settings.reopenings_max:
            raise error
        if self._reopenings > 1:
            pauses = self._settings.reopen.pauses()
            await asyncio.sleep([next(pauses) for _ in range(self._reopenings)][-1])
        try:
            await self._open()
        except _Over as over:
            raise await self._kept(over) from None
        self.outbox.restart()

    async def _kept(self, over: _Over) -> _Over:
        """How it ended. A stop that met a hot tier that had lost the answer could keep nothing of it: we can.

        Raises:
            WireError: There is something to keep, and the service is unavailable.
        """
        if over.outcome != Outcome(kind="closed"):
            return over
        whole: JsonObject = {"status": "stopped"} | self._body()
        if not (fits_frame(whole) or await self._upload_body(whole)):
            return over
        try:
            reply = await self._send("stream.close", **whole)
        except ClosedError as error:
            return _Over.closed(error)
        except WireError as error:
            if error.retryable:
                raise
            return over  # it is not lost: whoever sealed it keeps it
        return _Over(Outcome(kind="closed", message=_message(reply.get("message"))))

    async def _open(self) -> None:
        """Open, or open again with the epoch held.

        Raises:
            _Over: The answer has ended, or is another's.
        """
        held = {"epoch": self.epoch, "deadline_s": self._settings.outage_s} if self.epoch else {}
        try:
            reply = await self._connection.request("stream.open", **self._opening | held)
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
