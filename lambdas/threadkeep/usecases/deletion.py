"""Deleting a conversation, and asking what has become of it (docs/protocol.md, section 8).

The tombstone is the deletion: it is durable before the reply, every read sees it, and each region's announcer has the
rest done. What happens here beyond it only makes that quicker where the request came in.
"""

from __future__ import annotations

from contextlib import suppress

from threadkeep.domain import times
from threadkeep.domain.commands import DeleteConversation, GetErasure
from threadkeep.domain.erasure import Erasure, Reason, Tombstone
from threadkeep.domain.errors import HotUnavailable, not_found
from threadkeep.domain.model import Caller, ConversationKey
from threadkeep.ports import Gone
from threadkeep.usecases.erasing import bury
from threadkeep.usecases.services import Reply, Services


def delete(services: Services, caller: Caller, command: DeleteConversation) -> Reply:
    """Delete a conversation for good; repeated by whoever might delete it, it is the same erasure, as it now stands.

    One whose retention has run out can be deleted too, as long as it is there: nobody should have to wait for that.
    """
    key = ConversationKey(caller.tenant, command.conversation)
    head = services.warm.read_head(key)
    if head is None:
        raise not_found()
    owner = head.tombstone.owner if isinstance(head, Gone) else head.owner
    _check_owner(caller, owner)
    if not isinstance(head, Gone):
        entomb(services, key, owner=owner, reason="owner" if caller.user == owner else "produce")
    services.owners.forget(key)
    with suppress(HotUnavailable):  # else the herald does it, as soon as it can
        bury(services, key, owner=owner)
    return {"erasure": _read(services, caller, key)}


def get(services: Services, caller: Caller, command: GetErasure) -> Reply:
    """The erasure as it now stands."""
    return {"erasure": _read(services, caller, ConversationKey(caller.tenant, command.erasure))}


def entomb(services: Services, key: ConversationKey, *, owner: str, reason: Reason) -> Tombstone:
    """Put the tombstone, from which on the conversation is gone; the one that stands, if there is one already.

    Raises:
        WarmUnavailable: it may or may not stand; to put it again does no harm.
    """
    terms, now_ms = services.terms, services.clock.now_ms()
    tombstone = Tombstone(
        owner=owner,
        erased_at=times.to_rfc3339(now_ms),
        reason=reason,
        regions=terms.regions,
        pitr_days=terms.pitr_days,
        second_pass_ms=now_ms + terms.second_pass_ms,
    )
    return services.erasures.put_tombstone(key, tombstone) or tombstone


def _read(services: Services, caller: Caller, key: ConversationKey) -> Erasure:
    tombstone, lines = services.erasures.read(key)
    if tombstone is None:
        raise not_found()
    _check_owner(caller, tombstone.owner)
    return Erasure.of(key.conversation, tombstone, lines)


def _check_owner(caller: Caller, owner: str) -> None:
    if owner != caller.user and not caller.produces:
        raise not_found()
