"""The end of a conversation's retention, where several regions note its activity (docs/decisions/0046)."""

from __future__ import annotations

import msgspec

from threadkeep.domain import ids, times
from threadkeep.domain.model import Conversation, ConversationKey
from threadkeep.usecases.services import Services


def as_known_everywhere(services: Services, key: ConversationKey, head: Conversation) -> Conversation:
    """The conversation, with its last activity as any region knows of it. What our own pulse lacks is noted in it.

    A pulse that another region wrote may not have come yet; and it may never come, since the table keeps of two pulses
    the one that was written last, and our archive writes into it too. So the newest message counts as well, here and
    there.

    Raises:
        WarmUnavailable: a region could not be asked.
    """
    if services.others is None:
        return head
    known = [head.active_at, *(services.others.tables.read_active_at(name, key) for name in services.others.names)]
    newest = services.warm.newest_id(key)
    if newest is not None:
        known.append(times.to_rfc3339(ids.time_ms(newest)))
    now_ms = services.clock.now_ms()
    active_at = min(max(filter(None, known)), times.to_rfc3339(now_ms))  # an id may be ahead of our clock
    if active_at > head.active_at:
        services.warm.touch(key, now_ms=times.from_rfc3339(active_at))
    return msgspec.structs.replace(head, active_at=active_at)
