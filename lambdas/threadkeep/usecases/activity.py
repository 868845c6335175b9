"""Activity: a message that is new. What was refused, or is repeated, is none (docs/protocol.md, section 8)."""

from __future__ import annotations

from threadkeep.domain import ids
from threadkeep.domain.bounds import PULSE_EVERY_MS
from threadkeep.domain.model import ConversationKey
from threadkeep.usecases.services import Services


def note_activity(services: Services, key: ConversationKey, message: str) -> None:
    """Note that a message is about to be put, unless one stands under its id already.

    Before the put: should that fail, the repeated request does both. Afterwards, a crash in between would leave a
    message that nobody counts, or the repetition would have to count again.

    Raises:
        WarmUnavailable: it may or may not be noted.
    """
    now_ms = services.clock.now_ms()
    if not _stands(services, key, message, now_ms):
        services.warm.touch(key, now_ms=now_ms)


def _stands(services: Services, key: ConversationKey, message: str, now_ms: int) -> bool:
    """Whether it was stored before. Within the minute that activity is told to, it may be: that is not asked for."""
    return ids.time_ms(message) < now_ms - PULSE_EVERY_MS and services.warm.has_message(key, message)
