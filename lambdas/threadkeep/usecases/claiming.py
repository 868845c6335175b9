"""Claiming a message's place before it is put: of two sends at one instant, one is told that it came second.

The register of the hot tier is asked first. It is a cache: what it refuses, and what it is not sure of, the table
confirms by one strongly consistent query of its newest message before anybody is told no.
"""

from __future__ import annotations

from threadkeep.domain import leaf, streams
from threadkeep.domain.errors import HotUnavailable, Refused, conflict
from threadkeep.domain.model import ConversationKey, Message, StoredMessage
from threadkeep.usecases.services import Services


def claim(services: Services, key: ConversationKey, message: Message, *, fork: bool) -> StoredMessage | None:
    """Claim the place under the message's parent. What already stands under its id is returned instead.

    Raises:
        Refused: ``conflict`` with ``stale_leaf``, ``parent_open``, ``parent_missing`` or ``id_taken``.
    """
    try:
        verdict = services.hot.claim(key, message.id, parent=message.parent, fork=fork)
    except HotUnavailable:
        return _judge_by_table(services, key, message, fork=fork)
    if not isinstance(verdict, leaf.Claimed):
        # An id that exists is judged before everything else.
        existing = services.warm.read_message(key, message.id)
        if existing is not None:
            return existing
        newest = services.warm.newest_id(key)
        verdict = services.hot.claim(key, message.id, parent=message.parent, fork=fork, confirmed=newest)
    match verdict:
        case leaf.Claimed():
            # Under the leaf it is settled for certain; a branch may name any parent.
            if fork and not _has_parent(services, key, message):
                services.hot.release(key, message.id)
                raise _parent_missing()
            return None
        case leaf.ParentPending() | leaf.LeafUnknown():
            raise _parent_missing()
        case streams.StaleLeaf(present):
            raise _stale(present)
        case streams.ParentOpen():
            raise conflict("parent_open", "The parent is still being written; send when it has settled.")
        case leaf.IdTaken():
            raise conflict("id_taken", "A stream goes by that id; mint another.")


def _judge_by_table(services: Services, key: ConversationKey, message: Message, *, fork: bool) -> StoredMessage | None:
    """Without the hot tier two sends at one instant both stand, as branches; neither is lost."""
    existing = services.warm.read_message(key, message.id)
    if existing is not None:
        return existing
    newest = services.warm.newest_id(key)
    if message.parent != newest and not fork:
        raise _stale(newest)
    if not _has_parent(services, key, message):
        raise _parent_missing()
    return None


def _has_parent(services: Services, key: ConversationKey, message: Message) -> bool:
    return message.parent is None or services.warm.has_message(key, message.parent)


def _stale(present: str | None) -> Refused:
    return conflict("stale_leaf", "The conversation has gone on; read on from `leaf`, or fork.", leaf=present)


def _parent_missing() -> Refused:
    return conflict("parent_missing", "The parent is not here (yet); send again in a moment.")
