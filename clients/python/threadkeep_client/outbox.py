"""What a producer has to say, what it has said, and where it stands. No I/O.

Everything is kept until the answer is durable: whatever the service has lost or never got can be said again.
"""

from __future__ import annotations

import copy
from itertools import chain
from typing import Final

from threadkeep_client.errors import TooLargeError
from threadkeep_client.frames import OPS_BYTES_MAX, clean, json_bytes
from threadkeep_client.ops import Assembly, check_op, cut
from threadkeep_client.wire import JsonObject, Op, Part

ANSWER_BYTES_MAX: Final = 8 * 1024 * 1024
"""The ops of a whole answer; the service takes no more, and so no more is kept here."""
_HIGH_HALVES: Final = ("\ud800", "\udbff")


class Outbox:
    """The ops of one answer: gathered, cut into batches, batch by batch accepted.

    Attributes:
        offset: how many batches the service has accepted in this epoch, and so the place of the next one.
        pending_bytes: about what has been gathered and not yet cut.
    """

    def __init__(self) -> None:
        self.offset = 0
        self.pending_bytes = 0
        self._bytes = 0
        self._batches: list[list[Op]] = []
        self._pending: list[Op] = []
        self._halves: dict[int, str] = {}

    # --- gathering -------------------------------------------------------------------------------------------------

    def add_text(self, index: int, text: str) -> None:
        """Append to a part's growing string. A half surrogate at the end waits for its other half."""
        text = self._halves.pop(index, "") + text
        if text and _HIGH_HALVES[0] <= text[-1] <= _HIGH_HALVES[1]:
            self._halves[index] = text[-1]
            text = text[:-1]
        if text:
            self._add(["text", index, clean(text)])

    def begin_part(self, index: int, part: Part) -> None:
        """Begin a part."""
        self._add(["part", index, copy.deepcopy(part)])

    def set_fields(self, index: int, fields: JsonObject) -> None:
        """Merge fields into a part."""
        self.release_halves(index)
        self._add(["set", index, copy.deepcopy(fields)])

    def set_meta(self, fields: JsonObject) -> None:
        """Merge fields into the message's metadata."""
        self._add(["meta", copy.deepcopy(fields)])

    def release_halves(self, index: int | None = None) -> None:
        """The other half will not come any more: what waits for it becomes U+FFFD."""
        for waiting in [index] if index is not None else list(self._halves):
            half = self._halves.pop(waiting, "")
            if half:
                self._add(["text", waiting, clean(half)])

    def _add(self, op: Op) -> None:
        check_op(op)
        size = json_bytes(op)
        if self._bytes + size > ANSWER_BYTES_MAX:
            raise TooLargeError(f"an answer takes at most {ANSWER_BYTES_MAX:,} bytes of ops", reason="answer")
        self._bytes += size
        self.pending_bytes += size
        self._pending.append(op)

    # --- sending ---------------------------------------------------------------------------------------------------

    @property
    def has_unsent(self) -> bool:
        """Whether there is anything that the service has not accepted."""
        return bool(self._pending) or self.offset < len(self._batches)

    @property
    def is_urgent(self) -> bool:
        """Whether a batch waits that nothing can be added to: a full one, or one sent before."""
        return self.offset < len(self._batches) or self.pending_bytes >= OPS_BYTES_MAX

    def next_batch(self) -> list[Op]:
        """What stands at `offset`: the same at every call until it is accepted. Empty (a beat) if nothing waits."""
        if self.offset == self.end():
            self._batches.append([])
        return self._batches[self.offset]

    def end(self) -> int:
        """The place after everything that has been said; nothing is added to a batch after this."""
        self._batches.extend(cut(self._pending))
        self._pending, self.pending_bytes = [], 0
        return len(self._batches)

    def assembly(self) -> Assembly:
        """All that has been said, folded."""
        assembly = Assembly()
        assembly.apply(chain(*self._batches, self._pending))
        return assembly

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
        self._pending = list(chain(*self._batches, self._pending))
        self._batches = []
        self.offset = 0
        self.pending_bytes = self._bytes
