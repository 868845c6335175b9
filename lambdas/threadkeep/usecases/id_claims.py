"""Ids of conversations, where several regions may be asked for one: it becomes one user's (docs/decisions/0045).

Of two heads under one id the table keeps the one written last, everywhere, and its owner would read what the other
wrote. So a region puts a head only when it has seen that no other one has or claims the id.
"""

from __future__ import annotations

from typing import NamedTuple

from threadkeep.domain.contests import Claim
from threadkeep.domain.errors import Refused, conflict, not_found
from threadkeep.domain.model import Caller, Conversation, ConversationKey
from threadkeep.ports import Gone
from threadkeep.usecases.services import Services


class Claimed(NamedTuple):
    """An id that is the caller's.

    Attributes:
        at_ms: since when; 0 where there is one region.
        standing: the caller's own conversation, where another region has it and ours has not been given it yet.
    """

    at_ms: int
    standing: Conversation | None = None


def claim_id(services: Services, caller: Caller, key: ConversationKey) -> Claimed:
    """See that no other region has given the id to another user, nor is about to.

    Two who ask at one instant each claim it first, in an item that their region alone writes, and look for the other's
    claim then: so one of them at least sees the other, and backs out before there is a head of its own. Both may; then
    the id is nobody's. A claim that came to nothing harms nobody: asked again, its owner goes on from it.

    Raises:
        Refused: another user has it or claims it; or it was deleted.
        WarmUnavailable: a region could not be asked, and it is not evacuated.
    """
    others = services.others
    if others is None:
        return Claimed(0)
    now_ms = services.clock.now_ms()
    if services.warm.read_head(key) is not None:
        return Claimed(now_ms)  # what is known here needs no other region
    for region in others.names:
        head = others.tables.read_head(region, key)
        if isinstance(head, Gone):
            raise not_found()
        if head is not None:
            _check(caller, head.claim)
            return Claimed(head.claimed_ms, head.conversation)
    claim = Claim(caller.user, now_ms)
    claim = others.claims.put(key, claim) or claim
    _check(caller, claim)
    for region in others.names:
        _check(caller, others.tables.read_claim(region, key))
    return Claimed(claim.at_ms)


def taken(caller: Caller) -> Refused:
    """The id is another user's."""
    return conflict("id_taken", "Another user's conversation goes by that id.") if caller.produces else not_found()


def _check(caller: Caller, claim: Claim | None) -> None:
    if claim is not None and claim.owner != caller.user:
        raise taken(caller)
