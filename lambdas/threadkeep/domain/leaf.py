"""The leaf register: which message comes last in a conversation (docs/protocol.md, section 2, "Turns").

Messages of different ids never conflict in the table. So whoever wants to add one claims its place here first, by
compare-and-set, puts it, and then has the claim filled; a put that failed for good gives the claim back. The register
is a cache: it may be lost at any instant, and what it refuses by is confirmed by the table.

This is the reference. Valkey runs the same rules in its scripts; one contract suite holds both to the same answers.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec
from msgspec import UNSET, UnsetType

from threadkeep.domain.streams import ParentOpen, StaleLeaf


class Register(msgspec.Struct):
    """What the hot tier knows of a conversation's settled messages and of those about to be. Mutable: the record.

    The present leaf is the newest of all of these and of the live streams, each of which holds its place from its
    opening to its settling.

    Attributes:
        settled: the newest message known to be in the table; None if there is none; UNSET while nobody has asked the
            table, since the register was lost.
        claims: messages that are claimed and not yet seen in the table, and when each was claimed (ms).
    """

    settled: str | UnsetType | None = UNSET
    claims: dict[str, int] = {}

    def is_sure(self, *, now_ms: int, void_ms: int) -> bool:
        """Whether it can be judged by without asking the table: it was asked once, and no claim is overdue."""
        return self.settled is not UNSET and all(since + void_ms > now_ms for since in self.claims.values())

    def confirm(self, newest: str | None, *, now_ms: int, void_ms: int) -> None:
        """Correct it by what the table was just seen to hold: an overdue claim that is not there is void."""
        self._advance(newest)
        self.claims = {
            message: since for message, since in self.claims.items() if message != newest and since + void_ms > now_ms
        }

    def present(self, live: Collection[str]) -> str | None:
        """The present leaf, with the conversation's live streams."""
        settled = [self.settled] if isinstance(self.settled, str) else []
        return max([*settled, *self.claims, *live], default=None)

    def end(self) -> str | UnsetType | None:
        """The newest settled message, for readers; UNSET where a newer one may be in the table: claimed, not filled."""
        if self.settled is UNSET or any(self.settled is None or message > self.settled for message in self.claims):
            return UNSET
        return self.settled

    def awaits(self, message: str) -> bool:
        """Whether it is claimed, and may not be in the table yet."""
        is_behind = isinstance(self.settled, str) and message <= self.settled
        return message in self.claims and not is_behind

    def holds(self, message: str) -> bool:
        """Whether its claim, or the message itself, is known: claimed again, it is a retry."""
        return message in self.claims or message == self.settled

    def claim(self, message: str, *, now_ms: int) -> None:
        """Give it its place; one that is settled keeps it."""
        if message != self.settled:
            self.claims[message] = now_ms

    def fill(self, message: str, *, now_ms: int) -> None:
        """The message is in the table, even where its claim was lost in between: the leaf advances to it.

        While the table has not been asked, a newer one may be there: it then counts as a claim until that is done.
        """
        if self.settled is UNSET:
            self.claims[message] = now_ms
            return
        self.claims.pop(message, None)
        self._advance(message)

    def release(self, message: str) -> None:
        """Give the claim back."""
        self.claims.pop(message, None)

    def _advance(self, message: str | None) -> None:
        if not isinstance(self.settled, str) or (message is not None and message > self.settled):
            self.settled = message


# --- verdicts -------------------------------------------------------------------------------------------------


class Claimed(msgspec.Struct, frozen=True):
    """The message may be put there."""


class ParentPending(msgspec.Struct, frozen=True):
    """The parent is about to be put, and was not yet seen in the table."""


class LeafUnknown(msgspec.Struct, frozen=True):
    """The register is not sure of the leaf: claim again with the newest message that the table holds."""


class IdTaken(msgspec.Struct, frozen=True):
    """A live stream goes by that id."""


ClaimVerdict = Claimed | StaleLeaf | ParentOpen | ParentPending | LeafUnknown | IdTaken


def judge_claim(
    register: Register, live: Collection[str], *, parent: str | None, fork: bool
) -> Claimed | StaleLeaf | ParentOpen | ParentPending:
    """Whether a new message may stand under that parent. Stale first: repeating does not cure it.

    A live stream's message that the table was seen to hold is a parent as any other, settled here or not.
    """
    present = register.present(live)
    if parent != present and not fork:
        return StaleLeaf(present)
    if parent is not None and parent in live and parent != register.settled:
        return ParentOpen()
    if parent is not None and register.awaits(parent):
        return ParentPending()
    return Claimed()
