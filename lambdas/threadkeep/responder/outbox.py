"""What a producer has to say, what it has said, and where it stands. No I/O.

Everything is kept until the answer is durable: whatever the hot tier has lost or never got can be said again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from threadkeep.domain import ops
from threadkeep.domain.bounds import OPS_BYTES_MAX, STREAM_BYTES_MAX
from threadkeep.domain.json_values import encode
from threadkeep.domain.ops import Assembly, GrowText, Op

BEAT: Final = b"[]"
_TEXT_BYTES_MAX: Final = OPS_BYTES_MAX // 2
_HIGH_HALVES: Final = ("\ud800", "\udbff")


class AnswerTooLarge(Exception):  # noqa: N818 -- an end of the answer, not a fault of ours
    """The ops of a whole answer take at most `STREAM_BYTES_MAX`."""


class Outbox:
    """The ops of one answer: gathered, cut into batches, batch by batch accepted.

    Attributes:
        offset: how many batches the service has accepted in this epoch, and so the place of the next one.
    """

    def __init__(self) -> None:
        self.offset = 0
        self._bytes = 0
        self._batches: list[bytes] = []
        self._pending: list[Op] = []
        self._pending_bytes = 0
        self._halves: dict[int, str] = {}

    # --- gathering ------------------------------------------------------------------------------------------------

    def grow(self, index: int, text: str) -> None:
        """Append to a part's growing string. A half surrogate at the end waits for its other half.

        Raises:
            AnswerTooLarge: as `add`.
        """
        text = self._halves.pop(index, "") + text
        if text and _HIGH_HALVES[0] <= text[-1] <= _HIGH_HALVES[1]:
            self._halves[index] = text[-1]
            text = text[:-1]
        for piece in ops.cut_text(clean(text), _TEXT_BYTES_MAX):
            self.add(GrowText(index, piece))

    def add(self, op: Op) -> None:
        """Put an op behind all others; by itself it fits an append.

        Raises:
            AnswerTooLarge: the answer has no room for it, and it was not put.
        """
        size = len(encode(op)) + 1
        if self._bytes + size > STREAM_BYTES_MAX:
            raise AnswerTooLarge
        self._bytes += size
        self._pending_bytes += size
        self._pending.append(op)

    def release_halves(self) -> None:
        """The other halves will not come any more: what waits for them becomes U+FFFD."""
        halves, self._halves = self._halves, {}
        for index, half in halves.items():
            self.add(GrowText(index, clean(half)))

    # --- sending --------------------------------------------------------------------------------------------------

    @property
    def has_unsent(self) -> bool:
        """Whether there is anything that the service has not accepted."""
        return bool(self._pending) or self.offset < len(self._batches)

    @property
    def is_urgent(self) -> bool:
        """Whether a batch waits that nothing can be added to: a full one, or one sent before."""
        return self.offset < len(self._batches) or self._pending_bytes >= OPS_BYTES_MAX

    def next_batch(self) -> bytes:
        """What stands at `offset`: the same at every call until it is accepted. A beat if nothing waits."""
        if self.offset == self.end():
            self._batches.append(BEAT)
        return self._batches[self.offset]

    def end(self) -> int:
        """The place after everything that has been said; nothing is added to a batch after this."""
        self._batches.extend(_cut(self._pending))
        self._pending, self._pending_bytes = [], 0
        return len(self._batches)

    def accept(self) -> None:
        """The batch at `offset` stands."""
        self.offset += 1

    def rewind(self, expected: int) -> bool:
        """Go on from another place; False if there is no such place in what was said."""
        if not 0 <= expected <= len(self._batches):
            return False
        self.offset = expected
        return True

    def restart(self) -> None:
        """Say everything again, into an empty log: in as few batches as it fits, without the beats."""
        self._pending = [*self._said(), *self._pending]
        self._pending_bytes = self._bytes
        self._batches = []
        self.offset = 0

    def drop_unsent(self) -> None:
        """Forget what has not been accepted: the answer ends there."""
        self._batches = self._batches[: self.offset]
        self._pending, self._pending_bytes, self._halves = [], 0, {}

    def assembly(self) -> Assembly:
        """All that has been said, folded."""
        assembly = Assembly()
        assembly.apply(chain(self._said(), self._pending))
        return assembly

    def _said(self) -> Iterator[Op]:
        return chain.from_iterable(ops.decode(batch) for batch in self._batches)


def clean(text: str) -> str:
    """With surrogate pairs that stand as two code points joined, and lone halves as U+FFFD: UTF-8 has no halves."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _cut(pending: Iterable[Op]) -> Iterator[bytes]:
    """Neighbouring pieces of one string joined, then in batches of at most `OPS_BYTES_MAX`."""
    batch: list[bytes] = []
    size = 2
    for op in _pieces(ops.merge(pending)):
        encoded = encode(op)
        if batch and size + len(encoded) + 1 > OPS_BYTES_MAX:
            yield b"[" + b",".join(batch) + b"]"
            batch, size = [], 2
        batch.append(encoded)
        size += len(encoded) + 1
    if batch:
        yield b"[" + b",".join(batch) + b"]"


def _pieces(merged: Iterable[Op]) -> Iterator[Op]:
    for op in merged:
        if isinstance(op, GrowText):
            yield from (GrowText(op.index, piece) for piece in ops.cut_text(op.text, _TEXT_BYTES_MAX))
        else:
            yield op
