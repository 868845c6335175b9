"""Stopping: a stop is a seal, set by whoever stops, so it needs nobody who listens (docs/protocol.md, section 3.3)."""

from __future__ import annotations

from threadkeep.domain import frames, streams
from threadkeep.domain.commands import CancelStream
from threadkeep.domain.model import Caller, ConversationKey, Message
from threadkeep.usecases.services import Reply, Services, authorize
from threadkeep.usecases.settling import finish
from threadkeep.usecases.tiers import Tiers


def cancel(services: Services, caller: Caller, command: CancelStream) -> Reply:
    """End one stream, or all live ones, as ``stopped`` with what they have. One that has its end keeps it.

    A stream that is not yet opened has nothing to keep: the seal waits for it, and no message comes back.
    """
    key = authorize(services, caller, command.conversation)
    live = [stream.stream for stream in services.hot.live(key)] if command.stream is None else [command.stream]
    stopped = [message for stream in live if (message := _stop(services, key, stream)) is not None]
    return {"messages": frames.fit_together(stopped)}


def _stop(services: Services, key: ConversationKey, stream: str) -> Message | None:
    verdict = services.hot.stop(key, stream, streams.STOPPED)
    if isinstance(verdict, streams.Sealed):
        return finish(services, key, stream, verdict).message
    stored = Tiers.of(services).read_message(key, stream)
    return None if stored is None else stored.message
