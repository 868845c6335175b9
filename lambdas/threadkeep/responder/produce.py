"""The in-process producer: when it sends, in which batches, and what follows from each verdict (protocol, section 3.1).

One append is in flight; what is said meanwhile waits for the window, or for the reply. Nothing here waits by itself but
`open` and `close`: between them whoever produces asks `due_in_s`, reads the model for so long, and calls `send`.
"""

from __future__ import annotations

import uuid
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, Raw

from threadkeep.domain.commands import AppendStream, CloseStream, OpenStream
from threadkeep.domain.errors import Refused, TierUnavailable
from threadkeep.domain.json_values import encode
from threadkeep.domain.streams import STOPPED, Facts, Seal
from threadkeep.responder.outbox import BEAT, AnswerTooLarge, Outbox
from threadkeep.responder.timing import Timing
from threadkeep.responder.transport import Transport

Lost = Literal["closed", "fenced", "held"]
"""How an answer ceases to be this producer's: somebody else ended it, e.g. its reader, who stopped it; another run took
it over; another run has it."""


_DOUBLINGS_MAX: Final = 16


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How a producer waits, in seconds.

    The window: nothing for the first piece, little for the first second, then more, so that a 1,000-token answer of
    20 s takes about 100 frames and its reader sees it begin at once.

    Attributes:
        beat_s: with nothing to say for so long, it says that it lives.
        retry_s, retry_max_s: the pause before something is said again, doubled each time, and its greatest.
        open_patience_s: how long the opening is tried.
        close_patience_s: how long it tries to make the answer durable.
    """

    early_s: float = 0.04
    early_for_s: float = 1.0
    late_s: float = 0.25
    beat_s: float = 1.0
    retry_s: float = 0.1
    retry_max_s: float = 2.0
    open_patience_s: float = 10.0
    close_patience_s: float = 45.0


class Producer:
    """Writes one answer. One thread calls it.

    Args:
        transport: to the use cases.
        conversation: its id.
        stream: the answer's id.
        facts: what the answer is besides its content.
        fork: whether a branch is meant.
        timing: the time.
        pace: how it waits.

    Attributes:
        outbox: fill it, then see when it is `due_in_s`.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        conversation: str,
        stream: str,
        facts: Facts,
        fork: bool,
        timing: Timing,
        pace: Pace,
    ) -> None:
        self.outbox = Outbox()
        self._transport = transport
        self._facts = facts
        self._model = UNSET if facts.model is None else facts.model
        self._opening = OpenStream(
            conversation=conversation,
            message=stream,
            parent=facts.parent,
            role=facts.role,
            producer=str(uuid.uuid4()),
            fork=fork,
            model=self._model,
            metadata=facts.metadata,
        )
        self._conversation = conversation
        self._stream = stream
        self._timing = timing
        self._pace = pace
        self._epoch = 0
        self._first_s: float | None = None
        self._sent_s = 0.0
        self._must_reopen = False
        self._is_unreachable = False
        self._is_kept = False
        self._failures = 0
        self._not_before_s = 0.0

    # --- opening --------------------------------------------------------------------------------------------------

    def open(self) -> Lost | None:
        """Open the stream; None if it is this producer's now.

        Raises:
            Refused: its place is not to be had: ``stale_leaf``, or the conversation is not there.
            TierUnavailable: a store stayed unreachable, or the parent open or missing, for as long as it was tried.
        """
        until_s = self._timing.now_s() + self._pace.open_patience_s
        while True:
            try:
                lost = self._open(self._opening)
            except (Refused, TierUnavailable) as error:
                if isinstance(error, Refused) and not error.retryable:
                    raise
                pause_s = self._note_failure(error)
                if self._timing.now_s() + pause_s > until_s:
                    raise TierUnavailable("the stream could not be opened in time") from error
                self._timing.sleep(pause_s)
            else:
                self._sent_s = self._timing.now_s()
                return lost

    def _open(self, command: OpenStream) -> Lost | None:
        try:
            reply = self._transport.send(command)
        except Refused as refused:
            if refused.code == "closed":
                self._is_kept = bool(refused.detail)
                return "closed"
            if refused.code == "fenced":
                return "fenced"
            if refused.reason == "held":
                return "held"
            raise
        self._epoch = reply["epoch"]
        self._note_success()
        return None

    # --- while it is open -----------------------------------------------------------------------------------------

    def due_in_s(self) -> float:
        """How long until something is to be sent, if only a beat; 0 where it is due."""
        return max(0.0, self._due_s() - self._timing.now_s())

    def _due_s(self) -> float:
        if self._must_reopen or self.outbox.is_urgent:
            return self._not_before_s
        if not self.outbox.has_unsent:
            return self._sent_s + self._pace.beat_s
        if self._first_s is None:
            return 0.0
        is_early = self._sent_s - self._first_s < self._pace.early_for_s
        return self._sent_s + (self._pace.early_s if is_early else self._pace.late_s)

    def send(self) -> Lost | None:
        """Send the next batch, a beat if nothing waits; open again first where that is needed. None: it goes on.

        Raises:
            AnswerTooLarge: the service takes no more of this answer; what it has not taken is forgotten.
            Refused: nothing that a producer can do anything about, such as a conversation that was deleted.
        """
        if self._must_reopen:
            return self._reopen()
        batch = self.outbox.next_batch()
        self._sent_s = self._timing.now_s()
        if self._first_s is None and batch != BEAT:
            self._first_s = self._sent_s
        command = AppendStream(
            conversation=self._conversation,
            stream=self._stream,
            epoch=self._epoch,
            offset=self.outbox.offset,
            ops=Raw(batch),
        )
        try:
            self._transport.send(command)
        except (Refused, TierUnavailable) as error:
            return self._heed(error)
        self.outbox.accept()
        self._note_success()
        return None

    def _reopen(self) -> Lost | None:
        """Begin an empty log in a new epoch and say everything again: whoever knows all of it may."""
        try:
            lost = self._open(msgspec.structs.replace(self._opening, epoch=self._epoch))
        except TierUnavailable as error:
            return self._heed(error)
        except Refused as refused:
            if not refused.retryable:
                raise  # the conversation itself is gone
            return self._heed(refused)
        if lost == "closed" and not self._is_kept:
            return self._keep()
        self._must_reopen = False
        self.outbox.restart()
        return lost

    def _keep(self) -> Lost | None:
        """A stop met a hot tier that had lost the answer, and could keep nothing of it: say what there was."""
        try:
            self._transport.send(self._closing(STOPPED, self._body()))
        except TierUnavailable as error:
            return self._heed(error)  # and opened again, to the same end
        except Refused as refused:
            return self._heed(refused) if refused.retryable else "closed"
        return "closed"

    # --- closing --------------------------------------------------------------------------------------------------

    def close(self, seal: Seal) -> Literal["settled"] | Lost:
        """Send what waits and end the answer; returns when it is durable.

        Raises:
            TierUnavailable: it could not be made durable for as long as it was tried.
            Refused: as `send`.
        """
        until_s = self._timing.now_s() + self._pace.close_patience_s
        self._not_before_s = 0.0
        while True:
            end = self._close_further(seal)
            if end is not None:
                return end
            pause_s = self._not_before_s - self._timing.now_s()
            if self._timing.now_s() + max(0.0, pause_s) > until_s:
                raise TierUnavailable("the answer could not be made durable in time")
            if pause_s > 0:
                self._timing.sleep(pause_s)

    def _close_further(self, seal: Seal) -> Literal["settled"] | Lost | None:
        """The next step towards the end."""
        body = self._body() if self._is_unreachable else None
        if body is None and (self._must_reopen or self.outbox.has_unsent):
            return self.send()
        command = self._closing(seal, body)
        try:
            self._transport.send(command)
        except (Refused, TierUnavailable) as error:
            return self._heed(error)
        return "settled"

    def _closing(self, seal: Seal, body: dict[str, Any] | None) -> CloseStream:
        return CloseStream(
            conversation=self._conversation,
            stream=self._stream,
            epoch=self._epoch,
            # After everything said: if the hot tier is back meanwhile, it answers `gap` and is told the rest, instead
            # of taking what it has for all.
            offset=self.outbox.end(),
            status=seal.status,
            usage=UNSET if seal.usage is None else seal.usage,
            error=UNSET if seal.error is None else seal.error,
            **(body or {}),
        )

    def _body(self) -> dict[str, Any] | None:
        """The whole answer, as the close says it where the hot tier has lost the stream or cannot be reached."""
        assembly = self.outbox.assembly()
        parts = list(assembly.parts())
        if len(encode(parts)) > self._transport.body_bytes_max:
            return None
        return {
            "body": parts,
            "parent": self._facts.parent,
            "role": self._facts.role,
            "model": self._model,
            "metadata": self._facts.metadata | assembly.metadata,
        }

    # --- verdicts -------------------------------------------------------------------------------------------------

    def _heed(self, error: Refused | TierUnavailable) -> Lost | None:
        """Do what a verdict on a reopening, an append or a close asks for."""
        if isinstance(error, TierUnavailable):
            self._is_unreachable = True
            self._note_failure(error)
            return None
        self._is_unreachable = False
        match error.code, error.reason:
            case "closed", _:
                return "closed"
            case "gap", _:
                if not self.outbox.rewind((error.detail or {}).get("expected", -1)):
                    self._must_reopen = True
            case ("not_found" | "fenced", _) | ("conflict", "diverged"):
                self._must_reopen = True
            case "too_large", _:
                self.outbox.drop_unsent()
                raise AnswerTooLarge from error
            case _ if error.retryable:
                pass
            case _:
                raise error
        self._note_failure(error)
        return None

    def _note_failure(self, error: Refused | TierUnavailable) -> float:
        """Put off the next attempt, each time longer, and as long as was asked for; returns for how long."""
        pause_s = min(self._pace.retry_max_s, self._pace.retry_s * 2.0**self._failures)
        if isinstance(error, Refused) and error.retry_after_ms is not None:
            pause_s = max(pause_s, error.retry_after_ms / 1_000)
        self._failures = min(self._failures + 1, _DOUBLINGS_MAX)
        self._not_before_s = self._timing.now_s() + pause_s
        return pause_s

    def _note_success(self) -> None:
        self._failures = 0
        self._not_before_s = 0.0
        self._is_unreachable = False
