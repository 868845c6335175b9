"""Messages: send one, read a page of the path."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

import msgspec
from msgspec import UNSET

from threadkeep.domain import frames, ids
from threadkeep.domain.commands import CreateMessage, ListMessages
from threadkeep.domain.errors import HotUnavailable, Refused, WarmThrottled, conflict, not_found
from threadkeep.domain.json_values import same
from threadkeep.domain.model import Caller, ConversationKey, Message, StoredMessage
from threadkeep.domain.ops import Parts
from threadkeep.usecases.blobs import read_parts
from threadkeep.usecases.checks import check_metadata, check_parts, mint_or_check
from threadkeep.usecases.claiming import claim
from threadkeep.usecases.leaf import read_tip
from threadkeep.usecases.responding import ask
from threadkeep.usecases.services import Reply, Services, authorize
from threadkeep.usecases.viewers import tell


def create(services: Services, caller: Caller, command: CreateMessage) -> Reply:
    """Keep a whole message, under the present leaf unless it forks, and tell those who watch."""
    now_ms = services.clock.now_ms()
    identifier = mint_or_check(command.message, now_ms, parent=command.parent)
    check_metadata(command.metadata)
    check_parts(command.parts)
    _check_scope(caller, command)
    key = authorize(services, caller, command.conversation)
    message = _message(command, identifier, read_parts(services, key, command.parts))
    # Before the put: should it fail, the repeated request does both.
    services.warm.touch(key, now_ms=now_ms)
    existing = claim(services, key, message, fork=command.fork) or _put(services, key, message)
    if existing is not None and not same_content(message, existing.message):
        raise conflict("id_taken", "Another message goes by that id; mint a new one.")
    stands = message if existing is None else existing.message
    # Filled and told again where it is repeated: the first run may have died before it did.
    tell(services, key, _fill(services, key, existing or StoredMessage(message)), frames.message_created(stands))
    if command.reply is not UNSET and services.responder is not None:
        ask(services, caller, parent=stands.id, conversation=stands.conversation, reply=command.reply, fork=False)
    reply: Reply = {"message": frames.fit(stands)}
    return reply if existing is None else reply | {"duplicate": True}


def _put(services: Services, key: ConversationKey, message: Message) -> StoredMessage | None:
    try:
        return services.warm.put_message(key.tenant, StoredMessage(message))
    except WarmThrottled:
        # Refused for certain, so nobody has to wait until the claim is void. After any other failure it may be there.
        with suppress(HotUnavailable):
            services.hot.release(key, message.id)
        raise


def _fill(services: Services, key: ConversationKey, stored: StoredMessage) -> tuple[str, ...]:
    try:
        return services.hot.fill(key, stored)
    except HotUnavailable:
        return ()  # viewers renew their leases, read the leaf then, and catch up


def list_path(services: Services, caller: Caller, command: ListMessages) -> Reply:
    """A page of messages, newest first: the path from a leaf, or every branch. As many as a frame takes.

    The cursor names the message that comes next (path), or the last one read (all).
    """
    key = authorize(services, caller, command.conversation, fresh=True)
    if command.cursor is not None and not ids.is_id(command.cursor):
        raise Refused("bad_request", "`cursor` must be one that a page gave.")
    if command.leaf == "all":
        before = min(filter(None, (command.before, command.cursor)), default=None)
        page = services.warm.read_messages(key, before=before, after=command.after, limit=command.limit)
        found = [stored.message for stored in page.messages]
        fitted = frames.fit_page(found)
        more = page.more or len(fitted) < len(found)
        return {"messages": fitted, "cursor": found[len(fitted) - 1].id if fitted and more else None, "tier": "warm"}
    walk = _walk(services, key, command.cursor or _path_end(services, key, command.leaf), command)
    found = list(islice(walk, command.limit))
    fitted = frames.fit_page(found)
    following = found[len(fitted) - 1].parent if fitted else None
    if command.after is not None and following is not None and following <= command.after:
        following = None
    return {"messages": fitted, "cursor": following, "tier": "warm"}


def _path_end(services: Services, key: ConversationKey, leaf: str | None) -> str | None:
    """The newest settled message of the path to that leaf, or to the present one."""
    if leaf is not None and services.warm.has_message(key, leaf):
        return leaf
    tip = read_tip(services, key)
    if leaf is not None and leaf not in tip.parents:
        raise not_found()
    return tip.path_end(leaf or tip.leaf)


def _walk(services: Services, key: ConversationKey, start: str | None, command: ListMessages) -> Iterator[Message]:
    """The path from a message to its root, newest first, between the bounds (both exclusive)."""
    wanted = start
    while wanted is not None and (command.after is None or wanted > command.after):
        # Siblings lie between the messages of a path, so a page may hold few of it.
        page = services.warm.read_messages(key, before=_after(wanted), after=command.after, limit=command.limit)
        for stored in page.messages:
            message = stored.message
            if message.id != wanted:
                continue
            if command.before is None or message.id < command.before:
                yield message
            wanted = message.parent
        if not page.more or (page.messages and wanted is not None and page.messages[-1].message.id < wanted):
            return  # the path names a message that is not (yet) here


def _after(identifier: str) -> str:
    """The smallest text that sorts behind an id: an exclusive bound that includes it."""
    return identifier + "~"


def _message(command: CreateMessage, identifier: str, parts: Parts) -> Message:
    return Message.new(
        id=identifier,
        conversation=command.conversation,
        parent=command.parent,
        role=command.role,
        status="complete" if command.status is UNSET else command.status,
        parts=parts,
        metadata=command.metadata,
        model=command.model,
        reply=command.reply,
    )


def _check_scope(caller: Caller, command: CreateMessage) -> None:
    if caller.produces:
        return
    if command.role != "user" or command.model is not UNSET or command.status is not UNSET:
        raise Refused("unauthorized", "Only `produce` writes other roles than `user`, a `model` or a `status`.")


def same_content(one: Message, other: Message) -> bool:
    """Whether two messages of one id say the same, however spelled; the spelling shows in an estimate of tokens."""
    return same(msgspec.structs.replace(one, tokens=other.tokens), other)
