"""Stopping: a stop is a seal, set by whoever stops, so it needs nobody who listens (docs/protocol.md, section 3.3)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Raw

from threadkeep.domain import frames, streams
from threadkeep.domain.commands import CancelStream
from threadkeep.domain.model import Caller, ConversationKey, Message
from threadkeep.usecases.live_elsewhere import check_elsewhere, read_elsewhere
from threadkeep.usecases.services import Reply, Services, authorize
from threadkeep.usecases.settling import finish
from threadkeep.usecases.tiers import Tiers


def cancel(services: Services, caller: Caller, command: CancelStream) -> Reply:
    """End one stream, or all live ones, as ``stopped`` with what they have. One that has its end keeps it.

    A stream that is not yet opened has nothing to keep: the seal waits for it, and no message comes back. One that
    lives in another region is stopped there alone: of all, those are named.
    """
    # Its owner of a moment ago would end, and be shown, another's answer.
    key = authorize(services, caller, command.conversation, fresh=services.others is not None)
    if command.stream is not None:
        check_elsewhere(services, key, command.stream)
        return {"messages": _stop_all(services, key, [command.stream])}
    live = [stream.stream for stream in services.hot.live(key)]
    reply: Reply = {"messages": _stop_all(services, key, live)}
    elsewhere = [told for told in read_elsewhere(services, key) if told.stream not in live]
    if elsewhere:
        reply["elsewhere"] = [
            {"stream": told.stream, "region": told.region, "endpoint": told.endpoint} for told in elsewhere
        ]
    return reply


def _stop_all(services: Services, key: ConversationKey, streams_: Sequence[str]) -> list[Raw]:
    stopped = [message for stream in streams_ if (message := _stop(services, key, stream)) is not None]
    return frames.fit_together(stopped)


def _stop(services: Services, key: ConversationKey, stream: str) -> Message | None:
    verdict = services.hot.stop(key, stream, streams.STOPPED)
    if isinstance(verdict, streams.Sealed):
        return finish(services, key, stream, verdict).message
    stored = Tiers.of(services).read_message(key, stream)
    return None if stored is None else stored.message
