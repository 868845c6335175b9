"""Resuming: a page of a message from a place in it, live or settled (docs/protocol.md, sections 4 and 6)."""

from __future__ import annotations

from msgspec import UNSET, Raw

from threadkeep.domain import frames, ops, streams
from threadkeep.domain.commands import ResumeStream
from threadkeep.domain.errors import HotUnavailable, not_found
from threadkeep.domain.json_values import encode
from threadkeep.domain.model import Caller, StoredMessage
from threadkeep.usecases.services import Reply, Services, authorize
from threadkeep.usecases.settling import finish_due


def resume(services: Services, caller: Caller, command: ResumeStream) -> Reply:
    """A page of a message from a place in it, live or settled."""
    key = authorize(services, caller, command.conversation)
    try:
        verdict = services.hot.resume(
            key, command.stream, epoch=command.epoch, offset=command.offset, connection=caller.connection
        )
        if isinstance(verdict, streams.Resumed) and verdict.is_due and finish_due(services, key, command.stream):
            verdict = streams.Unknown()  # to the hot tier: it has settled
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
