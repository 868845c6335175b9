"""Streams, for those who write them: open, append, close (docs/protocol.md, section 3.1)."""

from __future__ import annotations

from functools import partial
from typing import get_args

import msgspec
from msgspec import UNSET, Raw

from threadkeep.domain import frames, ops, streams
from threadkeep.domain.bounds import OPS_BYTES_MAX, STREAMS_AGAIN_MS
from threadkeep.domain.commands import AppendStream, CloseStream, OpenStream
from threadkeep.domain.errors import HotUnavailable, Refused, conflict, not_found
from threadkeep.domain.json_values import complaint, encode
from threadkeep.domain.model import Caller, ConversationKey, Message, StoredMessage
from threadkeep.domain.tail import Erased
from threadkeep.usecases.blobs import keep_named, read_parts
from threadkeep.usecases.checks import check_end, check_metadata, check_parts, mint_or_check
from threadkeep.usecases.leaf import has_parent, is_ahead, parent_missing, parent_open, stale_leaf
from threadkeep.usecases.limits import lease_stream, release_stream
from threadkeep.usecases.live_elsewhere import check_elsewhere, check_elsewhere_for, tell_live
from threadkeep.usecases.messages import same_content
from threadkeep.usecases.retention import standing
from threadkeep.usecases.roots import note_root
from threadkeep.usecases.services import Reply, Services, authorize_of, check_standing
from threadkeep.usecases.settling import Finished, closed, finish, finish_due, settled_message, store
from threadkeep.usecases.tiers import Tiers
from threadkeep.usecases.viewers import tell


def open_(services: Services, caller: Caller, command: OpenStream) -> Reply:
    """Begin a message, go on with it, or take it over."""
    stream = mint_or_check(command.message, services.clock.now_ms(), parent=command.parent)
    check_metadata(command.metadata)
    key, owner = authorize_of(services, caller, command.conversation)
    tiers = Tiers.of(services)
    stored = tiers.read_message(key, stream)
    if stored is not None:
        raise closed(stored.message)
    check_elsewhere(services, key, stream)
    newest = tiers.newest_id(key)
    if newest is None:
        # Nothing was said yet, as it seems: or it was deleted, and the hot tier has lost the gravestone that says so.
        check_standing(services, key)
    facts = streams.Facts(
        parent=command.parent,
        role=command.role,
        model=None if command.model is UNSET else command.model,
        metadata=command.metadata,
        owner=owner,
        ends_ms=services.owners.ends_ms(key),
    )
    parent_settled = command.parent == newest or has_parent(services, key, command.parent)
    # Before the opening: whatever becomes of this run, its message is going to be put.
    may_fork = command.fork or command.epoch is not None
    note_root(services, key, stream, parent=command.parent, role=command.role, may_fork=may_fork)
    lease_stream(services, key, owner, stream)
    try:
        # The index first: the other way round a crash in between leaves a stream that nobody ever ends.
        services.hot.file(key, stream)
        verdict = services.hot.open(
            key,
            stream,
            writer=streams.Writer(caller.user, command.producer),
            facts=facts,
            held=command.epoch,
            takeover=command.takeover,
            fork=command.fork,
            leaf=newest,
            parent_settled=parent_settled,
        )
    except HotUnavailable:  # should it have been opened all the same, the repeated request leases it again
        release_stream(services, key, owner, stream)
        raise
    if not isinstance(verdict, streams.Opened | streams.Fenced | streams.Held | streams.PlaceDiffers):
        release_stream(services, key, owner, stream)  # it has ended, or nothing came of it
    match verdict:
        case streams.Opened(epoch, offset, fresh, viewers):
            tell_live(services, key, stream, epoch=epoch, facts=facts)
            if fresh:
                frame = frames.stream_opened(
                    command.conversation,
                    stream,
                    epoch=epoch,
                    parent=facts.parent,
                    role=facts.role,
                    region=services.region,
                )
                tell(services, key, viewers, frame)
            return {"stream": stream, "epoch": epoch, "offset": offset}
        case streams.Fenced() | streams.Closed():
            raise _refusal(services, key, stream, verdict)
        case streams.PlaceDiffers():
            raise conflict("place", "The stream was opened with another `parent` or `role`; it keeps these.")
        case streams.StaleLeaf(present) if not parent_settled and is_ahead(services, command.parent, present):
            raise parent_missing()
        case _:
            raise _no_room(verdict)


def _no_room(
    verdict: streams.StaleLeaf | streams.ParentOpen | streams.ParentMissing | streams.Held | streams.Full | Erased,
) -> Refused:
    """Why a stream may not be opened there, or not by this run."""
    match verdict:
        case streams.StaleLeaf(leaf):
            return stale_leaf(leaf)
        case streams.ParentOpen():
            return parent_open()
        case streams.ParentMissing():
            return parent_missing()
        case streams.Held():
            return conflict("held", "Another run holds this stream; take it over with `takeover`, or let it be.")
        case streams.Full():
            return Refused(
                "rate_limited",
                "This conversation has as many live streams as it may have.",
                retry_after_ms=STREAMS_AGAIN_MS,
            )
        case Erased():
            return not_found()


def append(services: Services, caller: Caller, command: AppendStream) -> Reply:
    """Add ops at the end; one step in the hot tier, whatever the answer's length."""
    said, data = _read_ops(command.ops)
    key = ConversationKey(caller.tenant, command.conversation)
    if named := tuple(ops.blobs(said)):
        check_standing(services, key)  # what is kept stays for good, and only an erasure takes it
        keep_named(services, key, named)
    write = partial(
        services.hot.append,
        key,
        command.stream,
        principal=caller.user,
        epoch=command.epoch,
        offset=command.offset,
        ops=data,
    )
    verdict = write()
    if isinstance(verdict, streams.PastEnd) and (head := standing(services, key)) is not None:
        verdict = write(ends_ms=head.expires_ms)
    match verdict:
        case streams.Accepted(after, viewers) | streams.Duplicate(after, viewers):
            frame = frames.stream_delta(
                command.conversation, command.stream, epoch=command.epoch, at=command.offset, after=after, ops=data
            )
            tell(services, key, viewers, frame, stream=command.stream)
            return {"offset": after}
        case _:
            if isinstance(verdict, streams.Unknown):
                check_elsewhere_for(services, caller, command.conversation, command.stream)
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
    if isinstance(verdict, streams.Unknown):
        check_elsewhere_for(services, caller, command.conversation, command.stream)
    if (
        isinstance(verdict, streams.Unknown)
        and command.body is not UNSET
        and not _is_live(services, key, command.stream)
    ):
        return _close_by_body(services, caller, command, seal)
    if isinstance(verdict, streams.Sealed):
        return _as_sealed(finish(services, key, command.stream, verdict))
    raise _refusal(services, key, command.stream, verdict)


def _read_ops(data: Raw) -> tuple[list[ops.Op], bytes]:
    """The ops, and the one form of them by which appends are compared."""
    try:
        decoded = ops.decode(data)
    except msgspec.DecodeError as error:
        raise Refused("bad_request", f"`ops`: {complaint(error, of=get_args(ops.Op))}") from error
    canonical = encode(decoded)
    if len(canonical) > OPS_BYTES_MAX:
        raise Refused("too_large", f"The ops of one append take at most {OPS_BYTES_MAX} bytes; send them in several.")
    check_parts(ops.fields_said(decoded))
    return decoded, canonical


def _is_live(services: Services, key: ConversationKey, stream: str) -> bool:
    try:
        return any(live.stream == stream for live in services.hot.live(key))
    except HotUnavailable:
        return False


def _close_by_body(services: Services, caller: Caller, command: CloseStream, seal: streams.Seal) -> Reply:
    """The hot tier has lost the stream: its producer still holds the whole answer, and says all of it here."""
    if command.body is UNSET or command.parent is UNSET or command.role is UNSET:
        raise Refused("bad_request", "A `body` comes with `parent` and `role`, as the stream was opened.")
    mint_or_check(command.stream, services.clock.now_ms(), parent=command.parent)
    check_metadata(command.metadata)
    check_parts(command.body)
    key, owner = authorize_of(services, caller, command.conversation, fresh=True)
    if not has_parent(services, key, command.parent):
        raise parent_missing()
    facts = streams.Facts(
        parent=command.parent,
        role=command.role,
        model=None if command.model is UNSET else command.model,
        metadata=command.metadata,
        owner=owner,
    )
    message = settled_message(
        key,
        command.stream,
        facts=facts,
        seal=seal,
        parts=read_parts(services, key, command.body),
        metadata=facts.metadata,
    )
    # What was archived the put would not find, and a second message would stand under its id.
    archived = Tiers.of(services).read_archived(key, command.stream)
    if archived is not None:
        return _as_sealed(Finished(archived.message, same_content(message, archived.message)))
    note_root(services, key, message.id, parent=message.parent, role=message.role, may_fork=True)
    return _as_sealed(store(services, key, StoredMessage(message, command.epoch), owner=owner))


def _as_sealed(finished: Finished) -> Reply:
    """``ok`` only for the message that was sealed; if another one stands there, ``closed`` with it."""
    if not finished.as_sealed:
        raise closed(finished.message)
    return {"message": frames.fit(finished.message)}


def _refusal(
    services: Services,
    key: ConversationKey,
    stream: str,
    verdict: streams.Unknown
    | streams.PastEnd
    | streams.Fenced
    | streams.Closed
    | streams.Diverged
    | streams.Gap
    | streams.TooLarge,
) -> Refused:
    """The error that a verdict stands for."""
    match verdict:
        case streams.Unknown() | streams.PastEnd():
            return not_found()
        case streams.Fenced():
            return Refused("fenced", "Another run writes this stream now; `stream.open` it anew with your epoch.")
        case streams.Closed():
            stored = services.warm.read_message(key, stream)
            # A seal that nobody finished is finished by whoever finds it, once it is old.
            return closed(finish_due(services, key, stream) if stored is None else stored.message)
        case streams.TooLarge():
            return closed(_end_too_large(services, key, stream))
        case streams.Diverged():
            return conflict("diverged", "Something else stands at that offset; open again and send everything.")
        case streams.Gap(expected):
            return Refused("gap", "Appends before this one are missing; go on there.", detail={"expected": expected})


def _end_too_large(services: Services, key: ConversationKey, stream: str) -> Message | None:
    """An answer that outgrows `STREAM_BYTES_MAX` ends there, what it has kept."""
    verdict = services.hot.stop(key, stream, streams.TOO_LARGE)
    return finish(services, key, stream, verdict).message if isinstance(verdict, streams.Sealed) else None
