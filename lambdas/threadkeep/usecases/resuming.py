"""Resuming: a page of a message from a place in it, live or settled (docs/protocol.md, sections 4 and 6)."""

from __future__ import annotations

from threadkeep.domain import ops, streams
from threadkeep.domain.bounds import SETTLED_LOG_MS
from threadkeep.domain.commands import ResumeStream
from threadkeep.domain.errors import HotUnavailable, not_found
from threadkeep.domain.model import Caller, ConversationKey
from threadkeep.usecases.live_elsewhere import check_elsewhere
from threadkeep.usecases.services import Reply, Services, authorize
from threadkeep.usecases.settled_log import SettledLog
from threadkeep.usecases.settling import finish_due
from threadkeep.usecases.tiers import Tiers


def resume(services: Services, caller: Caller, command: ResumeStream) -> Reply:
    """A page of a message from a place in it, live or settled."""
    key = authorize(services, caller, command.conversation, fresh=True)
    try:
        verdict = services.hot.resume(
            key, command.stream, epoch=command.epoch, offset=command.offset, connection=caller.connection
        )
        if isinstance(verdict, streams.Resumed) and verdict.is_due and finish_due(services, key, command.stream):
            verdict = streams.Unknown()  # to the hot tier: it has settled
    except HotUnavailable:
        settled = _settled_page(services, key, command)
        if settled is None:
            check_elsewhere(services, key, command.stream)
            raise  # it may well live: better to ask again than to be told that it does not
        return settled
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
    settled = _settled_page(services, key, command)
    if settled is None:
        check_elsewhere(services, key, command.stream)
        raise not_found()
    return settled


def _settled_page(services: Services, key: ConversationKey, command: ResumeStream) -> Reply | None:
    """A page of the settled message; None where there is none."""
    now_ms = services.clock.now_ms()
    log = services.last_log.get(key, command.stream, now_ms=now_ms)
    if log is None:
        stored = Tiers.of(services).read_message(key, command.stream)
        if stored is None:
            return None
        log = SettledLog.from_stored(stored)
        until_ms = None if services.others is None else now_ms + SETTLED_LOG_MS
        services.last_log.note(key, command.stream, log, until_ms=until_ms)
    return log.page(epoch=command.epoch, offset=command.offset)
