"""Messages: send one."""

from __future__ import annotations

from contextlib import suppress

import msgspec
from msgspec import UNSET

from threadkeep.domain import frames
from threadkeep.domain.commands import CreateMessage
from threadkeep.domain.errors import HotUnavailable, Refused, WarmThrottled, WarmUnavailable, conflict
from threadkeep.domain.json_values import same
from threadkeep.domain.model import Caller, ConversationKey, Message, StoredMessage
from threadkeep.domain.ops import Parts
from threadkeep.usecases.activity import note_activity
from threadkeep.usecases.blobs import read_parts
from threadkeep.usecases.checks import check_metadata, check_parts, mint_or_check
from threadkeep.usecases.claiming import claim
from threadkeep.usecases.responding import ask
from threadkeep.usecases.roots import note_root
from threadkeep.usecases.services import Reply, Services, authorize
from threadkeep.usecases.viewers import tell


def create(services: Services, caller: Caller, command: CreateMessage) -> Reply:
    """Keep a whole message, under the present leaf unless it forks, and tell those who watch."""
    identifier = mint_or_check(command.message, services.clock.now_ms(), parent=command.parent)
    check_metadata(command.metadata)
    check_parts(command.parts)
    _check_scope(caller, command)
    key = authorize(services, caller, command.conversation)
    message = _message(command, identifier, read_parts(services, key, command.parts))
    existing = claim(services, key, message, fork=command.fork)
    if existing is None:
        # Behind the claim, since what is refused is no activity. Before the put: should it fail, the repeated request
        # does both; afterwards, a crash in between would leave a message that nobody counts.
        _note(services, key, message, fork=command.fork)
        existing = _put(services, key, message)
    if existing is not None and not same_content(message, existing.message):
        raise conflict("id_taken", "Another message goes by that id; mint a new one.")
    stands = message if existing is None else existing.message
    # Filled and told again where it is repeated: the first run may have died before it did.
    tell(services, key, _fill(services, key, existing or StoredMessage(message)), frames.message_created(stands))
    # What says how it ended is told of what has been: its answer was asked for then.
    if command.reply is not UNSET and command.status is UNSET and services.responder is not None:
        ask(services, caller, parent=stands.id, conversation=stands.conversation, reply=command.reply, fork=False)
    reply: Reply = {"message": frames.fit(stands)}
    return reply if existing is None else reply | {"duplicate": True}


def _note(services: Services, key: ConversationKey, message: Message, *, fork: bool) -> None:
    """What the table has to say beside the message: that there was activity, and that it is not the only root."""
    try:
        note_root(services, key, message.id, parent=message.parent, role=message.role, may_fork=fork)
        # A claim does not tell whether it stands: the newest message, and one that forks, get their place again.
        note_activity(services, key, message.id)
    except WarmUnavailable:
        _release(services, key, message.id)  # nothing was put, so nobody has to wait until the claim is void
        raise


def _put(services: Services, key: ConversationKey, message: Message) -> StoredMessage | None:
    try:
        return services.warm.put_message(key.tenant, StoredMessage(message))
    except WarmThrottled:
        # Refused for certain, so nobody has to wait until the claim is void. After any other failure it may be there.
        _release(services, key, message.id)
        raise


def _release(services: Services, key: ConversationKey, message: str) -> None:
    with suppress(HotUnavailable):
        services.hot.release(key, message)


def _fill(services: Services, key: ConversationKey, stored: StoredMessage) -> tuple[str, ...]:
    try:
        return services.hot.fill(key, stored)
    except HotUnavailable:
        return ()  # viewers renew their leases, read the leaf then, and catch up


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
