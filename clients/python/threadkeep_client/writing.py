"""How an answer is written, and how it may end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, cast

from threadkeep_client.backoff import Backoff
from threadkeep_client.errors import ClosedError
from threadkeep_client.wire import Message


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
        moves_max: regions that name another for the stream, in a row.
        reopen: pauses between those.
    """

    window: Window = field(default_factory=Window)
    beat_s: float = 10.0
    patience_s: float = 20.0
    outage_s: float = 300.0
    farewell_s: float = 5.0
    unsent_bytes_max: int = 1024 * 1024
    reopenings_max: int = 8
    moves_max: int = 4
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


class Over(Exception):  # noqa: N818 -- an end, not an error; it never leaves what writes
    """The answer has ended."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.kind)
        self.outcome = outcome

    @classmethod
    def closed(cls, error: ClosedError) -> Over:
        """Somebody else ended it."""
        return cls(Outcome(kind="closed", message=told_message(error.detail.get("settled"))))


def told_message(value: object) -> Message | None:
    """The message that a reply tells, if it does."""
    return cast("Message", value) if isinstance(value, dict) else None
