"""A stream's rules once more, from docs/protocol.md section 3.1 and not from our code, in as few words as they take.

Epochs are numbered 1, 2, … in the order in which they are given out, whatever a store's clock makes of them.
"""

from __future__ import annotations

import msgspec

Verdict = tuple[object, ...]


class Model(msgspec.Struct):
    """What a faultless hot tier knows of one stream: nothing, where ``epoch`` is 0."""

    given: int = 0
    epoch: int = 0
    principal: str = ""
    run: str = ""
    log: list[bytes] = []
    end: int | None = None
    settled: bool = False

    def open(self, principal: str, run: str, held: int | None, *, takeover: bool) -> Verdict:
        if self.end is not None:
            return ("closed",)
        is_mine = (principal, run) == (self.principal, self.run)
        if self.epoch and is_mine and held is None:
            return ("opened", self.epoch, len(self.log), False)
        if self.epoch and not is_mine:
            if held is not None and self.epoch > held:
                return ("fenced",)
            if held is None and not takeover:
                return ("held",)
        keeps = bool(self.epoch) and held is None
        self.given += 1
        self.epoch, self.principal, self.run = self.given, principal, run
        self.log = self.log if keeps else []
        return ("opened", self.epoch, len(self.log), not keeps)

    def append(self, principal: str, epoch: int, offset: int, ops: bytes) -> Verdict:
        refusal = self._refuse(principal, epoch)
        if refusal:
            return refusal
        if self.end is not None:
            return ("closed",)
        if offset > len(self.log):
            return ("gap", len(self.log))
        if offset < len(self.log):
            return ("duplicate", offset + 1) if self.log[offset] == ops else ("diverged",)
        self.log.append(ops)
        return ("accepted", offset + 1)

    def close(self, principal: str, epoch: int, offset: int) -> Verdict:
        refusal = self._refuse(principal, epoch)
        if refusal:
            return refusal
        if self.end is not None and offset != self.end:
            return ("closed",)
        if self.end is None and offset != len(self.log):
            return ("gap", len(self.log)) if offset > len(self.log) else ("diverged",)
        self.end = offset
        return ("sealed", () if self.settled else tuple(self.log), self.settled)

    def settle(self) -> None:
        if self.end is None:
            self.lose()
        else:
            self.settled = True

    def lose(self) -> None:
        """All but what no store may forget: the epochs it has given out."""
        self.epoch, self.principal, self.run, self.log, self.end, self.settled = 0, "", "", [], None, False

    def resume(self, epoch: int, offset: int) -> Verdict:
        if not self.epoch or self.settled:
            return ("unknown",)
        at = offset if epoch == self.epoch and offset <= len(self.log) else 0
        return ("resumed", self.epoch, at, tuple(self.log[at:]), self.end is not None)

    def _refuse(self, principal: str, epoch: int) -> Verdict | None:
        if not self.epoch or epoch > self.epoch or principal != self.principal:
            return ("unknown",)
        return ("fenced",) if epoch < self.epoch else None
