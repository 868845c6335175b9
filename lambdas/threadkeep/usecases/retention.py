"""The end of a conversation's retention, where several regions note its activity (docs/decisions/0046)."""

from __future__ import annotations

import msgspec

from threadkeep import telemetry
from threadkeep.domain import ids, times
from threadkeep.domain.model import Conversation, ConversationKey
from threadkeep.usecases.erasing import bury
from threadkeep.usecases.services import Services


def as_known_everywhere(services: Services, key: ConversationKey, head: Conversation) -> Conversation:
    """The conversation, with its last activity as any region knows of it. What our own pulse lacks is noted in it.

    A pulse that another region wrote may not have come yet, and of two that were written at once the table keeps one.
    So the newest message counts as well, here and there.

    Raises:
        WarmUnavailable: a region could not be asked.
    """
    if services.others is None:
        return head
    told = [head.active_at, *(services.others.tables.read_active_at(name, key) for name in services.others.names)]
    newest = services.warm.newest_id(key)
    if newest is not None:
        told.append(times.to_rfc3339(ids.time_ms(newest)))
    now_ms = services.clock.now_ms()
    active_at = min(max(filter(None, told)), times.to_rfc3339(now_ms))  # an id may be ahead of our clock
    known = msgspec.structs.replace(head, active_at=active_at)
    if active_at > head.active_at:
        services.warm.touch(key, now_ms=times.from_rfc3339(active_at), ends_ms=known.expires_ms)
    return known


def standing(services: Services, key: ConversationKey) -> Conversation | None:
    """The conversation under a stream, for who writes or ends that past the end that was known at its opening.

    None where there is none any more. Where its retention has ended all that is hot of it goes: nobody will store what
    was still being said. Deleted, its erasure does that.

    Raises:
        HotUnavailable: as `bury`.
        WarmUnavailable: the table could not be read, or as `as_known_everywhere`.
    """
    head, now_ms = services.warm.read_head(key), services.clock.now_ms()
    if not isinstance(head, Conversation):
        return None
    if head.is_expired(now_ms):
        head = as_known_everywhere(services, key, head)
    if not head.is_expired(now_ms):
        return head
    telemetry.count("StreamsExpired")
    services.owners.forget(key)
    bury(services, key, owner=head.owner)
    return None
