"""Contests: which of two stands, where two regions gave one item different contents without knowing of each other.

A global table keeps the one written last, in silence. So that all regions come to the same one, and to the right one,
each rule is an order: a region in which the better one has been replaced puts it back, and what is put back is replaced
by nothing that ranks behind it. Where neither ranks before the other the table's own rule holds: the later stands.
"""

from __future__ import annotations

import msgspec

from threadkeep.domain.model import Conversation


class Claim(msgspec.Struct, frozen=True):
    """Who claimed a conversation's id, and when (ms, the server's clock; 0 where that was not noted: long ago)."""

    owner: str
    at_ms: int

    def ranks_before(self, other: Claim) -> bool:
        """Whether another owner's head must not take this one's place: the earlier claim, of one instant any one."""
        return self.owner != other.owner and (self.at_ms, self.owner) < (other.at_ms, other.owner)


class Head(msgspec.Struct, frozen=True):
    """A conversation as its head has it, and when its id was claimed (ms)."""

    conversation: Conversation
    claimed_ms: int

    @property
    def claim(self) -> Claim:
        """By whom it was."""
        return Claim(self.conversation.owner, self.claimed_ms)


class Ending(msgspec.Struct, frozen=True):
    """How a message came to its end: whether it is complete, and the epoch of its stream (0: there was none)."""

    is_complete: bool
    epoch: int

    def ranks_before(self, other: Ending) -> bool:
        """Whether the other one must not take this one's place: what is complete comes first, then the later epoch."""
        return (self.is_complete, self.epoch) > (other.is_complete, other.epoch)
