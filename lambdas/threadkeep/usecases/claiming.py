"""Claiming a message's place before it is put: of two sends at one instant, one is told that it came second.

The register of the hot tier is asked first. It is a cache: what it refuses, and what it is not sure of, the table
confirms by one strongly consistent query of its newest message before anybody is told no.
"""

from __future__ import annotations

from threadkeep.domain import leaf, streams
from threadkeep.domain.errors import HotUnavailable, Refused, conflict, not_found
from threadkeep.domain.model import ConversationKey, Message, StoredMessage
from threadkeep.domain.tail import Erased
from threadkeep.usecases.leaf import has_parent, is_ahead, parent_missing, parent_open, stale_leaf
from threadkeep.usecases.services import Services, check_standing
from threadkeep.usecases.tiers import Tiers


def claim(services: Services, key: ConversationKey, message: Message, *, fork: bool) -> StoredMessage | None:
    """Claim the place under the message's parent. What already stands under its id is returned instead.

    Raises:
        Refused: ``conflict`` with ``stale_leaf``, ``parent_open``, ``parent_missing`` or ``id_taken``; ``not_found``
            where the conversation was deleted.
    """
    tiers = Tiers.of(services)
    # An id that exists is judged before everything else; and one that was archived the put would not find.
    archived = tiers.read_archived(key, message.id)
    if archived is not None:
        check_standing(services, key)
        return archived
    try:
        verdict = services.hot.claim(key, message.id, parent=message.parent, fork=fork)
    except HotUnavailable:
        return _judge_by_table(services, key, message, fork=fork)
    if isinstance(verdict, leaf.LeafUnknown):
        # A tier that has lost the register may have lost a gravestone too, and who may write is a while remembered.
        check_standing(services, key)
    if not isinstance(verdict, leaf.Claimed | Erased):
        existing = services.warm.read_message(key, message.id)
        if existing is not None:
            return existing
        newest = tiers.newest_id(key)
        verdict = services.hot.claim(key, message.id, parent=message.parent, fork=fork, confirmed=newest)
    if isinstance(verdict, streams.StaleLeaf) and is_ahead(services, message.parent, verdict.leaf):
        if not has_parent(services, key, message.parent):
            raise parent_missing()
        newest = tiers.newest_id(key)  # it may have come while it was waited for
        verdict = services.hot.claim(key, message.id, parent=message.parent, fork=fork, confirmed=newest)
    if not isinstance(verdict, leaf.Claimed):
        raise _refusal(verdict)
    # Under the leaf it is settled for certain; a branch may name any parent.
    if fork and not has_parent(services, key, message.parent):
        services.hot.release(key, message.id)
        raise parent_missing()
    return None


def _refusal(
    verdict: streams.StaleLeaf | streams.ParentOpen | leaf.ParentPending | leaf.LeafUnknown | leaf.IdTaken | Erased,
) -> Refused:
    """The error that a verdict stands for."""
    match verdict:
        case leaf.ParentPending() | leaf.LeafUnknown():
            return parent_missing()
        case streams.StaleLeaf(present):
            return stale_leaf(present)
        case streams.ParentOpen():
            return parent_open()
        case leaf.IdTaken():
            return conflict("id_taken", "A stream goes by that id; mint another.")
        case Erased():
            return not_found()


def _judge_by_table(services: Services, key: ConversationKey, message: Message, *, fork: bool) -> StoredMessage | None:
    """Without the hot tier two sends at one instant both stand, as branches; neither is lost.

    Nor is there a gravestone to refuse them, so the tombstone is looked for.
    """
    check_standing(services, key)
    existing = services.warm.read_message(key, message.id)
    if existing is not None:
        return existing
    newest = Tiers.of(services).newest_id(key)
    if message.parent != newest and not fork and not is_ahead(services, message.parent, newest):
        raise stale_leaf(newest)
    if not has_parent(services, key, message.parent):
        raise parent_missing()
    return None
