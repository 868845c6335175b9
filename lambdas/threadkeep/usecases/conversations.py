"""Conversations: create, get, update, list, and watch."""

from __future__ import annotations

from contextlib import suppress

import msgspec
from msgspec import UNSET

from threadkeep.domain import frames, ids, times
from threadkeep.domain.bounds import EXPIRED_PAGES_MAX, SUBSCRIPTION_MS
from threadkeep.domain.commands import (
    CreateConversation,
    GetConversation,
    ListConversations,
    Subscribe,
    Unsubscribe,
    UpdateConversation,
)
from threadkeep.domain.errors import HotUnavailable, Refused, not_found
from threadkeep.domain.model import Caller, Conversation, ConversationKey
from threadkeep.domain.streams import Full
from threadkeep.domain.tail import Erased
from threadkeep.usecases.checks import check_metadata, mint_or_check
from threadkeep.usecases.id_claims import claim_id, taken
from threadkeep.usecases.leaf import read_tip
from threadkeep.usecases.live_elsewhere import read_elsewhere
from threadkeep.usecases.services import Reply, Services, authorize, authorize_of, read_own
from threadkeep.usecases.viewers import tell_all


def create(services: Services, caller: Caller, command: CreateConversation) -> Reply:
    """Keep a new conversation of the caller's. Its own, repeated, comes back as it now stands."""
    now_ms = services.clock.now_ms()
    identifier = mint_or_check(command.conversation, now_ms)
    check_metadata(command.metadata)
    new = Conversation(
        id=identifier,
        owner=caller.user,
        title=command.title,
        metadata=command.metadata,
        retention_days=services.terms.retention_of(caller.tenant, command.retention_days),
        created_at=times.to_rfc3339(ids.time_ms(identifier)),
        active_at=times.to_rfc3339(now_ms),
    )
    # An id that was minted just now nobody else can have.
    is_minted = command.conversation is None
    at_ms = now_ms if is_minted else claim_id(services, caller, ConversationKey(caller.tenant, identifier))
    claimed_ms = 0 if services.others is None else at_ms
    existing = services.warm.create_conversation(caller.tenant, new, claimed_ms=claimed_ms)
    if existing is None:
        return {"conversation": new}
    if not isinstance(existing, Conversation) or existing.is_expired(now_ms):
        raise not_found()
    if existing.owner != caller.user:
        raise taken(caller)
    return {"conversation": with_activity(services, caller.tenant, existing), "duplicate": True}


def get(services: Services, caller: Caller, command: GetConversation) -> Reply:
    """The conversation, with its last activity."""
    return {"conversation": with_activity(services, caller.tenant, read_own(services, caller, command.conversation))}


def update(services: Services, caller: Caller, command: UpdateConversation) -> Reply:
    """Change title or metadata, and tell those who watch."""
    if command.metadata is not UNSET:
        check_metadata(command.metadata)
    key, owner = authorize_of(services, caller, command.conversation)
    updated = _update(services, key, command, owner=owner)
    if updated is None and services.others is not None:
        # The owner that is remembered may not be the owner any more.
        key, owner = authorize_of(services, caller, command.conversation, fresh=True)
        updated = _update(services, key, command, owner=owner)
    if updated is None:
        raise not_found()
    updated = with_activity(services, caller.tenant, updated)
    tell_all(services, key, frames.conversation_updated(updated))
    return {"conversation": updated}


def _update(
    services: Services, key: ConversationKey, command: UpdateConversation, *, owner: str
) -> Conversation | None:
    return services.warm.update_conversation(key, owner=owner, title=command.title, metadata=command.metadata)


def list_own(services: Services, caller: Caller, command: ListConversations) -> Reply:
    """The caller's conversations, newest activity first; as many as a frame takes. Expired ones are left out.

    A page that holds nothing but these is passed over, `EXPIRED_PAGES_MAX` of them at most.
    """
    now_ms = services.clock.now_ms()
    limit, cursor = command.limit, command.cursor
    pages = 0
    while True:
        page = services.warm.list_conversations(caller.tenant, caller.user, limit=limit, cursor=cursor)
        own = [conversation for conversation in page.conversations if not conversation.is_expired(now_ms)]
        fitted = frames.fit_conversations(own)
        if len(fitted) < len(own):
            # Asked again, since the store alone knows where a shorter page goes on.
            limit = page.conversations.index(own[len(fitted)])
            continue
        pages += 1
        if fitted or page.cursor is None or pages == EXPIRED_PAGES_MAX:
            return {"items": fitted, "cursor": page.cursor}
        cursor = page.cursor


def subscribe(services: Services, caller: Caller, command: Subscribe) -> Reply:
    """Watch: the viewer is entered first and the leaf read afterwards, so that nothing falls between the two."""
    conversation = read_own(services, caller, command.conversation)
    key = ConversationKey(caller.tenant, conversation.id)
    lease_ms = min(SUBSCRIPTION_MS, caller.expires_at_ms - services.clock.now_ms())
    match services.hot.subscribe(key, caller.connection, lease_ms=lease_ms):
        case Full():
            raise Refused(
                "rate_limited", "This conversation has as many viewers as it may have.", retry_after_ms=lease_ms
            )
        case Erased():
            raise not_found()
    tip = read_tip(services, key)
    elsewhere = read_elsewhere(services, key)
    with suppress(HotUnavailable):
        # It may have lost the newest message, or never have heard of it; and whose the conversation is.
        lives_ms = conversation.lives_ms(services.clock.now_ms())
        services.hot.load(key, (), owner=conversation.owner, newest=tip.settled, lives_ms=lives_ms)
    return {
        "conversation": with_activity(services, caller.tenant, conversation),
        "leaf": tip.leaf,
        "live": [*(msgspec.structs.replace(stream, is_due=False) for stream in tip.live), *elsewhere],
        "lease_ms": lease_ms,
    }


def unsubscribe(services: Services, caller: Caller, command: Unsubscribe) -> Reply:
    """Watch no longer."""
    key = authorize(services, caller, command.conversation)
    services.hot.unsubscribe(key, [caller.connection])
    return {"conversation": command.conversation}


def with_activity(services: Services, tenant: str, conversation: Conversation) -> Conversation:
    """The conversation with its last activity."""
    active_at = services.warm.read_active_at(ConversationKey(tenant, conversation.id))
    return conversation if active_at is None else msgspec.structs.replace(conversation, active_at=active_at)
