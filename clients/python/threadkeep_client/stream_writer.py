"""The one task that sends an answer: when, in which batches, and what follows from each verdict (section 3.1).

One append is in flight; what is said meanwhile waits for the window, or for the reply.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

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
from threadkeep_client.place import Place
from threadkeep_client.regions import Regions
from threadkeep_client.whole_answer import WholeAnswer
from threadkeep_client.wire import Frame, JsonObject
from threadkeep_client.writing import Outcome, Over, ProducerSettings, told_message


class StreamWriter:
    """Sends what an outbox gathers, until it is closed or ends otherwise.

    Args:
        regions: whose home is a connection with scope `produce`.
        opening: the fields of `stream.open`, which every repeat and every reopening says again.
        settings: how it waits.

    Attributes:
        outbox: fill it, then `wake`.
        epoch: of the log that is written; 0 before the stream is open.
        outcome: how the answer ended; None while it has not.
        failed: what ended the task otherwise.
    """

    def __init__(self, regions: Regions, opening: JsonObject, settings: ProducerSettings) -> None:
        self.outbox = Outbox()
        self.epoch = 0
        self.outcome: Outcome | None = None
        self.failed: Exception | None = None
        self._place = Place(regions, settings=settings)
        self._opening = opening
        self._whole = WholeAnswer(opening, self.outbox)
        self._settings = settings
        self._closing: JsonObject | None = None
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
        except Over as over:
            self.outcome = over.outcome
        finally:
            if not self.epoch:
                await self._place.return_home()
        if self.outcome is not None:
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
        except Over as over:
            self.outcome = over.outcome
        except Exception as error:  # noqa: BLE001 -- raised again by every later call, `close` included
            self.failed = error
        finally:
            await self._tell()
            await self._place.return_home()

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
            self.outcome = Outcome(kind="settled", message=told_message(reply.get("message")))

    async def _send(self, action: str, **fields: Any) -> Frame:
        place = {
            "conversation": self._opening["conversation"],
            "stream": self._opening["message"],
            "epoch": self.epoch,
            "offset": self.outbox.offset,
        }
        return await self._place.request(action, **place | fields, deadline_s=self._settings.patience_s)

    # --- closing -----------------------------------------------------------------------------------------------------

    async def _what_closes(self) -> JsonObject | None:
        """The fields of the close; None if something else is to be said before it."""
        if self._closing is None:
            return None
        if self._trouble_since is not None:
            whole = await self._whole.closing(self._place.connection, self._closing)
            if whole is not None:
                return whole
        return None if self.outbox.has_unsent else self._closing

    # --- verdicts ----------------------------------------------------------------------------------------------------

    async def _heed(self, error: WireError) -> None:
        """Do what a verdict on an append or close asks for.

        Raises:
            Over: The answer has ended.
            WireError: The error is no verdict, or the service has been away for too long.
        """
        if not error.retryable:
            self._trouble_since = None
        match error:
            case ClosedError():
                raise Over.closed(error)
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
        except Over as over:
            raise await self._kept(over) from None
        self.outbox.restart()

    async def _kept(self, over: Over) -> Over:
        """How it ended. A stop that met a hot tier that had lost the answer could keep nothing of it: we can.

        Raises:
            WireError: There is something to keep, and the service is unavailable.
        """
        if over.outcome != Outcome(kind="closed"):
            return over
        whole = await self._whole.closing(self._place.connection, {"status": "stopped"})
        if whole is None:
            return over
        try:
            reply = await self._send("stream.close", **whole)
        except ClosedError as error:
            return Over.closed(error)
        except WireError as error:
            if error.retryable:
                raise
            return over  # it is not lost: whoever sealed it keeps it
        return Over(Outcome(kind="closed", message=told_message(reply.get("message"))))

    async def _open(self) -> None:
        """Open, or open again with the epoch held.

        Raises:
            Over: The answer has ended, or is another's.
        """
        held = {"epoch": self.epoch} if self.epoch else {}
        deadline_s = self._settings.outage_s if self.epoch else None
        try:
            reply = await self._place.request("stream.open", deadline_s=deadline_s, **self._opening | held)
        except ClosedError as error:
            raise Over.closed(error) from None
        except FencedError:
            raise Over(Outcome(kind="fenced")) from None
        except ConflictError as error:
            if error.reason != "held":
                raise
            raise Over(Outcome(kind="held")) from None
        self.epoch = reply["epoch"]

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
