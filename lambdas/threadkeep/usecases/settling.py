"""Settling: from a seal to the one stored message (docs/protocol.md, section 3.3)."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from threadkeep import telemetry
from threadkeep.domain import frames, ops, streams
from threadkeep.domain.errors import HotUnavailable, Refused, WarmUnavailable, not_found
from threadkeep.domain.json_values import JsonObject
from threadkeep.domain.model import ConversationKey, Message, StoredMessage
from threadkeep.usecases.activity import note_activity
from threadkeep.usecases.limits import release_stream
from threadkeep.usecases.live_elsewhere import goes_on_elsewhere, settled_elsewhere, tell_ended
from threadkeep.usecases.messages import same_content
from threadkeep.usecases.retention import standing
from threadkeep.usecases.services import Services
from threadkeep.usecases.viewers import tell


class Finished(msgspec.Struct, frozen=True):
    """The message that stands under a stream's id; ``as_sealed`` unless another one had been stored there before."""

    message: Message
    as_sealed: bool


def finish(services: Services, key: ConversationKey, stream: str, sealed: streams.Sealed) -> Finished:
    """Store a sealed stream's message, drop its log, tell its viewers. Whoever finds a seal may do it, as it says.

    Raises:
        Refused: ``not_found`` if the stream had settled and its message was erased since, or if the conversation's
            retention has ended: then the stream is dropped.
        WarmUnavailable: it could not be stored; the seal stays, and whoever comes next tries again.
    """
    if _is_dropped(services, key, sealed.facts):
        raise not_found()
    if sealed.settled:
        stored = services.warm.read_message(key, stream)
        if stored is None:
            raise not_found()
        as_sealed = (stored.epoch, stored.message.status) == (sealed.epoch, sealed.seal.status)
        return Finished(stored.message, as_sealed)
    assembly = ops.Assembly(sealed.facts.metadata)
    for element in sealed.log:
        assembly.apply(ops.decode(element))
    message = settled_message(
        key, stream, facts=sealed.facts, seal=sealed.seal, parts=assembly.parts(), metadata=assembly.metadata
    )
    return store(services, key, StoredMessage(message, sealed.epoch), owner=sealed.facts.owner)


def finish_due(services: Services, key: ConversationKey, stream: str) -> Message | None:
    """End a stream whose time has run out, or whose seal nobody finished; None where there is nothing to end."""
    verdict = services.hot.expire(key, stream)
    return end_due(services, key, stream, verdict) if isinstance(verdict, streams.Sealed) else None


def end_due(services: Services, key: ConversationKey, stream: str, sealed: streams.Sealed) -> Message | None:
    """End a stream whose time has run out with what it has; None where that has to wait for another region.

    The stream may have been begun anew in another one, which took this one for gone or had not heard of it. What that
    one has settled stands; what it still writes is waited for. Of two messages under one id the table would keep the
    later one, without a word: what is left here must not take the place of what was acknowledged there. So a region
    that counts and cannot be asked is waited for too; whoever stops the stream does not have to wait.

    Where the conversation's retention has ended meanwhile there is nothing to wait for: the stream is dropped.

    Raises:
        WarmUnavailable: as `finish`.
    """
    if services.others is None:
        return None if _is_dropped(services, key, sealed.facts) else finish(services, key, stream, sealed).message
    try:
        if _is_dropped(services, key, sealed.facts):
            return None
        stored = services.warm.read_message(key, stream) or settled_elsewhere(services, key, stream)
    except WarmUnavailable:
        telemetry.count("StreamsAwaited")
        return None
    if stored is not None:
        let_go(services, key, stored, owner=sealed.facts.owner)
        return stored.message
    if goes_on_elsewhere(services, key, stream, epoch=sealed.epoch):
        return None
    return finish(services, key, stream, sealed).message


def _is_dropped(services: Services, key: ConversationKey, facts: streams.Facts) -> bool:
    """Whether the conversation's retention has ended under its stream, which then goes with all that is hot of it.

    To store the message would be activity, and bring back what every request has called `not_found`. The table is
    asked only where the end that was known at the opening has come: what was said since then puts it off, wherever.

    Raises:
        HotUnavailable, WarmUnavailable: as `standing`; whoever finds the seal next tries again.
    """
    if facts.ends_ms is None or services.clock.now_ms() < facts.ends_ms:
        return False
    return standing(services, key) is None


def store(services: Services, key: ConversationKey, stored: StoredMessage, *, owner: str | None) -> Finished:
    """Put a stream's message, let go of the stream and of its owner's lease, tell its viewers.

    Raises:
        WarmUnavailable: it could not be stored, and the stream stays as it is.
    """
    note_activity(services, key, stored.message.id)
    kept = services.warm.put_message(key.tenant, stored) or stored
    # Only then the seal is done with: should either fail, the repeated close does all of this again.
    let_go(services, key, kept, owner=owner)
    return Finished(kept.message, same_content(stored.message, kept.message))


def let_go(services: Services, key: ConversationKey, kept: StoredMessage, *, owner: str | None) -> None:
    """Let go of a stream whose message the table has, and of its owner's lease; tell its viewers, and other regions."""
    try:
        viewers = services.hot.settle(key, kept)
    except HotUnavailable:
        viewers = ()  # the message is durable; viewers find it when they resume or renew
    release_stream(services, key, owner, kept.message.id)
    tell(services, key, viewers, frames.message_created(kept.message))
    tell_ended(services, key, kept.message.id)


def settled_message(
    key: ConversationKey,
    stream: str,
    *,
    facts: streams.Facts,
    seal: streams.Seal,
    parts: ops.Parts,
    metadata: JsonObject,
) -> Message:
    """What a stream comes to: a message as it is stored, its parts and metadata settled."""
    return Message.new(
        id=stream,
        conversation=key.conversation,
        parent=facts.parent,
        role=facts.role,
        status=seal.status,
        parts=ops.settled(parts),
        metadata=ops.settled_metadata(metadata),
        usage=UNSET if seal.usage is None else seal.usage,
        error=UNSET if seal.error is None else seal.error,
        model=UNSET if facts.model is None else facts.model,
    )


def closed(message: Message | None) -> Refused:
    """The answer to whoever writes on behind the end: the message as it stands, where it does."""
    detail = None if message is None else {"settled": frames.fit(message)}
    return Refused("closed", "The stream has its end; nothing is added to it.", detail=detail)
