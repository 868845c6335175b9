"""An answer as a viewer holds it: what it has, and its place in the stream. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from threadkeep_client.ops import Assembly
from threadkeep_client.wire import Op, Part


class Verdict(Enum):
    """What to do with a frame (protocol, section 4)."""

    APPLY = "apply"
    IGNORE = "ignore"
    RESUME = "resume"


class Answer:
    """A message being written.

    Attributes:
        id: of the message, and so of its stream.
        parent: the message that it answers; None where it is a root, or not known yet.
        role: `assistant`, as a rule.
        epoch: of the log that the parts come from; 0 when nothing is known.
        offset: how many appends of that log the parts hold.
        heard_at: when a frame of it last came, by the event loop's clock.
        due: when to resume it, if that is to be tried again.
        missing_since: since when the service answers that it does not know the stream.
        shown: whether the consumer has been told of it.
        endpoint: of the region that streams it; None where that is the viewer's own, as far as is known.
    """

    def __init__(self, stream: str, *, heard_at: float, parent: str | None = None, role: str = "assistant") -> None:
        self.id = stream
        self.parent = parent
        self.role = role
        self.epoch = 0
        self.offset = 0
        self.heard_at = heard_at
        self.due: float | None = None
        self.missing_since: float | None = None
        self.shown = True
        self.endpoint: str | None = None
        self._assembly = Assembly()

    @property
    def parts(self) -> list[Part]:
        """The parts as they stand."""
        return self._assembly.parts

    @property
    def text(self) -> str:
        """The text as it stands."""
        return self._assembly.text

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been shown of it."""
        return self.offset == 0

    def judge(self, epoch: int, at: int) -> Verdict:
        """What to do with a delta of that epoch that begins at that place."""
        if epoch < self.epoch:
            return Verdict.IGNORE
        if epoch > self.epoch:
            # The first delta of a log is whole by itself: where nothing is held, nothing is to be asked for.
            return Verdict.APPLY if self.epoch == 0 and at == 0 else Verdict.RESUME
        if at == self.offset:
            return Verdict.APPLY
        return Verdict.RESUME if at > self.offset else Verdict.IGNORE

    def take(self, ops: Sequence[Op], *, epoch: int, following: int) -> None:
        """Apply a delta, or a page; `following` is the place after it."""
        self.epoch = epoch
        self.offset = following
        self._assembly.apply(ops)

    def restart(self, epoch: int) -> None:
        """Drop what is held: another log begins."""
        self.epoch = epoch
        self.offset = 0
        self._assembly = Assembly()
