"""What is neither a tier nor ours: the clock, connections, whoever answers, whoever signs tokens, queues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Protocol

import msgspec
from msgspec import Meta

from threadkeep.domain.commands import Id


class Clock(Protocol):
    """The time, so that tests can own it."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        ...


class Delivery(msgspec.Struct, frozen=True):
    """What became of a frame.

    Attributes:
        gone: connections that are closed for good.
        late: connections that it did not reach within the bound, for whatever reason; some may get it yet.
    """

    gone: tuple[str, ...] = ()
    late: tuple[str, ...] = ()


class Push(Protocol):
    """Frames to viewers, past the request that caused them."""

    def send(self, connections: Sequence[str], frame: bytes) -> Delivery:
        """Send to all within `FAN_OUT_WAIT_MS`. Never raises."""
        ...

    def hint(self, connections: Sequence[str], frame: bytes) -> None:
        """Send without waiting, and without being told what became of it: for what a viewer can do without.

        A Lambda function freezes after its reply, so it may arrive late or never. Never raises.
        """
        ...


class AnswerRequest(msgspec.Struct, frozen=True, kw_only=True, tag_field="internal", tag="threadkeep.answer"):
    """An answer that is wanted; also the event that the responder's function is invoked with.

    Attributes:
        user: who asked; the answer is written as their own.
        parent: the message to be answered.
        reply: the answer's id, minted by who asked.
        fork: the parent is not the conversation's present leaf, and a branch is meant.
    """

    tenant: Annotated[str, Meta(min_length=1)]
    user: Annotated[str, Meta(min_length=1)]
    conversation: Id
    parent: Id
    reply: Id
    fork: bool = False


class Responder(Protocol):
    """What calls a model and streams its answer into the conversation."""

    def start(self, request: AnswerRequest) -> None:
        """Have it answered; returns once that is taken on. Started twice, it is answered once.

        Raises:
            TierUnavailable: it could not be taken on.
        """
        ...


class JobQueue(Protocol):
    """Work for later, done at least once and in any order. Raises `WarmUnavailable`."""

    def send(self, job: msgspec.Struct, *, delay_s: int = 0) -> None:
        """Queue a job (as JSON), to be taken up after a delay of at most `QUEUE_DELAY_S_MAX`."""
        ...

    def put_back(self, receipt: str, *, delay_s: int) -> None:
        """Have a job that was taken and not done be given again after so long, whatever the queue says of all jobs."""
        ...


class TokenRefused(Exception):  # noqa: N818 -- an answer, not a fault of ours
    """A token does not hold. The message is a reason for the log, and says nothing of the token."""


class TokenVerifier(Protocol):
    """Checks a token's signature, issuer, audience and expiry."""

    def claims(self, token: str) -> dict[str, Any]:
        """The claims of a token that holds. Raises `TokenRefused`."""
        ...
