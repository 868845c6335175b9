"""Streams: open, append, close, resume (docs/protocol.md, section 3)."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, Raw

from threadkeep.domain import frames, ops, streams
from threadkeep.domain.bounds import OPS_BYTES_MAX
from threadkeep.domain.commands import AppendStream, CloseStream, OpenStream, ResumeStream
from threadkeep.domain.errors import HotUnavailable, Refused, conflict, not_found
from threadkeep.domain.json_values import JsonObject, encode
from threadkeep.domain.model import Caller, ConversationKey, Message, StoredMessage
from threadkeep.usecases.blobs import read_parts
from threadkeep.usecases.checks import check_end, check_metadata, check_parts, mint_or_check
from threadkeep.usecases.messages import same_content
from threadkeep.usecases.services import Reply, Services, authorize
from threadkeep.usecases.viewers import tell


def open_(services: Services, caller: Caller, command: OpenStream) -> Reply:
    """Begin a message, go on with it, or take it over."""
    stream = mint_or_check(command.message, services.clock.now_ms(), parent=command.parent)
    check_metadata(command.metadata)
    key = authorize(services, caller, command.conversation)
    stored = services.warm.read_message(key, stream)
    if stored is not None:
        raise _closed(stored.message)
    newest = services.warm.newest_id(key)
    facts = streams.Facts(
        parent=command.parent,
        role=command.role,
        model=None if command.model is UNSET else command.model,
        metadata=command.metadata,
    )
    verdict = services.hot.open(
        key,
        stream,
        writer=streams.Writer(caller.user, command.producer),
        facts=facts,
        held=command.epoch,
        takeover=command.takeover,
        fork=command.fork,
        leaf=newest,
        parent_settled=_is_settled(services, key, command.parent, newest),
    )
    match verdict:
        case streams.Opened(epoch, offset, fresh, viewers):
            if fresh:
                frame = frames.stream_opened(
                    command.conversation, stream, epoch=epoch, facts=facts, region=services.region
                )
                tell(services, key, viewers, frame)
            return {"stream": stream, "epoch": epoch, "offset": offset}
        case streams.StaleLeaf(leaf):
            raise conflict("stale_leaf", "The conversation has gone on; read on from `leaf`, or fork.", leaf=leaf)
        case streams.ParentOpen():
            raise conflict("parent_open", "The parent is still being written; open when it has settled.")
        case streams.ParentMissing():
            raise _parent_missing()
        case streams.Held():
            raise conflict("held", "Another run holds this stream; take it over with `takeover`, or let it be.")
        case streams.Full():
            raise Refused("rate_limited", "This conversation has as many live streams as it may have.")
        case streams.Fenced() | streams.Closed():
            raise _refusal(services, key, stream, verdict)


def append(services: Services, caller: Caller, command: AppendStream) -> Reply:
    """Add ops at the end; one step in the hot tier, whatever the answer's length."""
    data = _read_ops(command.ops)
    key = ConversationKey(caller.tenant, command.conversation)
    verdict = services.hot.append(
        key, command.stream, principal=caller.user, epoch=command.epoch, offset=command.offset, ops=data
    )
    match verdict:
        case streams.Accepted(after, viewers) | streams.Duplicate(after, viewers):
            frame = frames.stream_delta(
                command.conversation, command.stream, epoch=command.epoch, at=command.offset, after=after, ops=data
            )
            tell(services, key, viewers, frame)
            return {"offset": after}
        case _:
            raise _refusal(services, key, command.stream, verdict)


def close(services: Services, caller: Caller, command: CloseStream) -> Reply:
    """Seal, store, tell: ``ok`` means that the message stands in the table as it was sealed."""
    check_end(command.usage, command.error)
    key = ConversationKey(caller.tenant, command.conversation)
    seal = streams.Seal(
        status=command.status,
        usage=None if command.usage is UNSET else command.usage,
        error=None if command.error is UNSET else command.error,
    )
    try:
        verdict = services.hot.seal(
            key, command.stream, principal=caller.user, epoch=command.epoch, offset=command.offset, seal=seal
        )
    except HotUnavailable:
        if command.body is UNSET:
            raise
        verdict = streams.Unknown()
    if (
        isinstance(verdict, streams.Unknown)
        and command.body is not UNSET
        and not _is_live(services, key, command.stream)
    ):
        return _close_by_body(services, caller, command, seal)
    if isinstance(verdict, streams.Sealed):
        message = finish(services, key, command.stream, verdict)
        return {"message": frames.fit(message)}
    raise _refusal(services, key, command.stream, verdict)


def finish(services: Services, key: ConversationKey, stream: str, sealed: streams.Sealed) -> Message:
    """Store a sealed stream's message, drop its log, tell its viewers. Whoever finds a seal may do it, as it says.

    Raises:
        Refused: ``closed`` if another message stands under that id.
        WarmUnavailable: it could not be stored; the seal stays, and a repeated close tries again.
    """
    if sealed.settled:
        stored = services.warm.read_message(key, stream)
        if stored is None:
            raise not_found()
        if (stored.epoch, stored.message.status) != (sealed.epoch, sealed.seal.status):
            raise _closed(stored.message)
        return stored.message
    assembly = ops.Assembly(sealed.facts.metadata)
    for element in sealed.log:
        assembly.apply(ops.decode(element))
    message = _settled_message(
        key, stream, facts=sealed.facts, seal=sealed.seal, parts=assembly.parts(), metadata=assembly.metadata
    )
    existing = services.warm.put_message(key.tenant, StoredMessage(message, sealed.epoch))
    stands = message if existing is None else existing.message
    _settle(services, key, stream, stands)
    if not same_content(message, stands):
        raise _closed(stands)
    return stands


def resume(services: Services, caller: Caller, command: ResumeStream) -> Reply:
    """A page of a message from a place in it, live or settled."""
    key = authorize(services, caller, command.conversation)
    try:
        verdict = services.hot.resume(key, command.stream, epoch=command.epoch, offset=command.offset)
    except HotUnavailable:
        stored = services.warm.read_message(key, command.stream)
        if stored is None:
            raise  # it may well live: better to ask again than to be told that it does not
        return _resume_settled(stored, command)
    if isinstance(verdict, streams.Resumed):
        merged = ops.merge(op for element in verdict.log for op in ops.decode(element))
        return {
            "epoch": verdict.epoch,
            "at": verdict.at,
            "ops": merged,
            "offset": verdict.offset,
            "more": verdict.more,
            "state": "live",
        }
    stored = services.warm.read_message(key, command.stream)
    if stored is None:
        raise not_found()
    return _resume_settled(stored, command)


def _resume_settled(stored: StoredMessage, command: ResumeStream) -> Reply:
    """A settled message is a log of its own, one epoch above its stream's last; whole where it fits a frame."""
    epoch = stored.epoch + 1
    whole = encode(stored.message)
    log = list(ops.pieces(() if stored.message.parts is UNSET else stored.message.parts))
    reply: Reply = {"epoch": epoch, "state": "settled"}
    if len(whole) <= frames.MESSAGE_BYTES_MAX:
        return reply | {"at": len(log), "ops": [], "offset": len(log), "more": False, "message": Raw(whole)}
    room = frames.MESSAGE_BYTES_MAX - len(encode(stored.message.without_parts()))
    if len(encode(log[-1])) > room:
        log.append([])  # so that there is a page with room for the message
    at = command.offset if command.epoch == epoch and command.offset <= len(log) else 0
    page, after = (log[at], at + 1) if at < len(log) else ([], at)
    if len(encode(page)) <= room:
        reply["message"] = stored.message.without_parts()
    return reply | {"at": at, "ops": page, "offset": after, "more": after < len(log)}


def _read_ops(data: Raw) -> bytes:
    try:
        decoded = ops.decode(data)
    except msgspec.DecodeError as error:
        raise Refused("bad_request", f"`ops`: {error}") from error
    canonical = encode(decoded)
    if len(canonical) > OPS_BYTES_MAX:
        raise Refused("too_large", f"The ops of one append take at most {OPS_BYTES_MAX} bytes; send them in several.")
    return canonical


def _is_settled(services: Services, key: ConversationKey, parent: str | None, newest: str | None) -> bool:
    return parent is None or parent == newest or services.warm.has_message(key, parent)


def _is_live(services: Services, key: ConversationKey, stream: str) -> bool:
    try:
        return any(live.stream == stream for live in services.hot.live(key))
    except HotUnavailable:
        return False


def _settled_message(
    key: ConversationKey,
    stream: str,
    *,
    facts: streams.Facts,
    seal: streams.Seal,
    parts: ops.Parts,
    metadata: JsonObject,
) -> Message:
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


def _settle(services: Services, key: ConversationKey, stream: str, message: Message) -> None:
    # Before the seal is done with: should it fail, the repeated close does all of this again.
    services.warm.touch(key, now_ms=services.clock.now_ms())
    try:
        viewers = services.hot.settle(key, stream)
    except HotUnavailable:
        viewers = ()  # the message is durable; viewers find it when they resume or renew
    tell(services, key, viewers, frames.message_created(message))


def _close_by_body(services: Services, caller: Caller, command: CloseStream, seal: streams.Seal) -> Reply:
    """The hot tier has lost the stream: its producer still holds the whole answer, and says all of it here."""
    if command.body is UNSET or command.parent is UNSET or command.role is UNSET:
        raise Refused("bad_request", "A `body` comes with `parent` and `role`, as the stream was opened.")
    mint_or_check(command.stream, services.clock.now_ms(), parent=command.parent)
    check_metadata(command.metadata)
    check_parts(command.body)
    key = authorize(services, caller, command.conversation)
    if command.parent is not None and not services.warm.has_message(key, command.parent):
        raise _parent_missing()
    facts = streams.Facts(
        parent=command.parent,
        role=command.role,
        model=None if command.model is UNSET else command.model,
        metadata=command.metadata,
    )
    message = _settled_message(
        key,
        command.stream,
        facts=facts,
        seal=seal,
        parts=read_parts(services, key, command.body),
        metadata=facts.metadata,
    )
    existing = services.warm.put_message(caller.tenant, StoredMessage(message, command.epoch))
    stands = message if existing is None else existing.message
    _settle(services, key, command.stream, stands)
    if not same_content(message, stands):
        raise _closed(stands)
    return {"message": frames.fit(stands)}


def _refusal(
    services: Services,
    key: ConversationKey,
    stream: str,
    verdict: streams.Unknown | streams.Fenced | streams.Closed | streams.Diverged | streams.Gap,
) -> Refused:
    """The error that a verdict stands for."""
    match verdict:
        case streams.Unknown():
            return not_found()
        case streams.Fenced():
            return Refused("fenced", "Another run writes this stream now; `stream.open` it anew with your epoch.")
        case streams.Closed():
            stored = services.warm.read_message(key, stream)
            return _closed(None if stored is None else stored.message)
        case streams.Diverged():
            return conflict("diverged", "Something else stands at that offset; open again and send everything.")
        case streams.Gap(expected):
            return Refused("gap", "Appends before this one are missing; go on there.", detail={"expected": expected})


def _parent_missing() -> Refused:
    return conflict("parent_missing", "The parent is not here (yet); ask again in a moment.")


def _closed(message: Message | None) -> Refused:
    detail = None if message is None else {"settled": frames.fit(message)}
    return Refused("closed", "The stream has its end; nothing is added to it.", detail=detail)
