"""Ids of conversations, where several regions may be asked for one: it becomes one user's (docs/decisions/0045).

Of two heads under one id the table keeps the one written last, everywhere, and its owner would read what the other
wrote. So a region puts a head only when it has seen that no other one has or claims the id.
"""

from __future__ import annotations

from typing import Final

import msgspec

from threadkeep.domain.bounds import REPLICATION_POLL_MS, REPLICATION_WAIT_MS
from threadkeep.domain.contests import Claim
from threadkeep.domain.errors import Refused, conflict, not_found
from threadkeep.domain.model import Caller, Conversation, ConversationKey
from threadkeep.ports import Gone
from threadkeep.usecases.services import OtherRegions, Services

_LOOKS: Final = REPLICATION_WAIT_MS // REPLICATION_POLL_MS


def claim_id(services: Services, caller: Caller, key: ConversationKey) -> int:
    """See that no other region has given the id to another user, nor is about to; since when it is the caller's (ms).

    Two who ask at one instant each claim it first, in an item that their region alone writes, and look for the other's
    claim then: so one of them at least sees the other, and backs out before there is a head of its own. Both may; then
    the id is nobody's. A claim that came to nothing harms nobody: asked again, its owner goes on from it.

    What the caller has in another region is waited for. To put it here as it stands there would be a later write, which
    takes the place of what is changed there meanwhile; and the one that comes is as good as there.

    Raises:
        Refused: another user has it or claims it; or it was deleted, or its retention has ended there; or
            ``unavailable`` where it is the caller's there, and has not come yet.
        WarmUnavailable: a region could not be asked, and it is not evacuated.
    """
    others = services.others
    if others is None:
        return 0
    now_ms = services.clock.now_ms()
    if services.warm.read_head(key) is not None:
        return now_ms  # what is known here needs no other region
    for region in others.names:
        head = others.tables.read_head(region, key)
        if isinstance(head, Gone):
            raise not_found()
        if head is not None:
            _check(caller, head.claim)
            _check_lives(others, region, key, head.conversation, now_ms)
            _await_head(services, key)
            return now_ms
    claim = Claim(caller.user, now_ms)
    claim = others.claims.put(key, claim) or claim
    _check(caller, claim)
    for region in others.names:
        _check(caller, others.tables.read_claim(region, key))
    return claim.at_ms


def _await_head(services: Services, key: ConversationKey) -> None:
    """Wait briefly until the head has come that stands in another region."""
    for _ in range(_LOOKS):
        services.sleep(REPLICATION_POLL_MS / 1_000)
        if services.warm.read_head(key) is not None:
            return
    raise Refused("unavailable", "It stands in another region and has not come here yet; ask again in a moment.")


def taken(caller: Caller) -> Refused:
    """The id is another user's."""
    return conflict("id_taken", "Another user's conversation goes by that id.") if caller.produces else not_found()


def _check(caller: Caller, claim: Claim | None) -> None:
    if claim is not None and claim.owner != caller.user:
        raise taken(caller)


def _check_lives(
    others: OtherRegions, region: str, key: ConversationKey, conversation: Conversation, now_ms: int
) -> None:
    """See that its retention has not ended, as that region knows of its activity."""
    if conversation.retention_days is None:
        return
    active_at = others.tables.read_active_at(region, key) or conversation.active_at
    if msgspec.structs.replace(conversation, active_at=active_at).is_expired(now_ms):
        raise not_found()
