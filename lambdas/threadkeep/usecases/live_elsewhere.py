"""Streams that live in other regions: what a region says of its own, and what it makes of what the others say.

A stream is opened, taken over and settled in one region, whose hot tier alone has it. So that the others know where to
send its viewers and its producer, the region writes it into the table before its opening is answered. Where there is
one region nothing of this is written or read.
"""

from __future__ import annotations

from contextlib import suppress

from threadkeep.domain.bounds import LIVE_ELSEWHERE_MS
from threadkeep.domain.errors import HotUnavailable, Refused, TierUnavailable, WarmUnavailable, conflict
from threadkeep.domain.model import Caller, ConversationKey, LiveStream, StoredMessage
from threadkeep.domain.streams import Facts
from threadkeep.usecases.services import Services, authorize


def tell_live(services: Services, key: ConversationKey, stream: str, *, epoch: int, facts: Facts) -> None:
    """Say in the table that the stream lives here; again, and it is said again.

    Raises:
        WarmUnavailable: it may or may not be known elsewhere; the repeated opening says it again.
    """
    if services.others is None:
        return
    live = LiveStream(
        stream=stream,
        epoch=epoch,
        offset=0,
        parent=facts.parent,
        role=facts.role,
        region=services.region,
        endpoint=services.others.endpoint,
    )
    services.others.live.put(key, live, until_ms=services.clock.now_ms() + LIVE_ELSEWHERE_MS)


def tell_ended(services: Services, key: ConversationKey, stream: str) -> bool:
    """Say that it lives here no more; False where that cannot be said now: the sweeper says it later."""
    if services.others is None:
        return True
    with suppress(TierUnavailable):
        services.others.live.remove(key, stream)
        return True
    return False


def read_elsewhere(services: Services, key: ConversationKey) -> tuple[LiveStream, ...]:
    """The streams that live in other regions, as far as is known here; none of a region that is evacuated.

    Raises:
        WarmUnavailable: the table could not be read.
    """
    others = services.others
    if others is None:
        return ()
    told = others.live.read_others(key, now_ms=services.clock.now_ms())
    return tuple(live for live in told if live.region in others.names)


def goes_on_elsewhere(services: Services, key: ConversationKey, stream: str, *, epoch: int) -> bool:
    """Whether a stream that this region has in that epoch was begun anew in another one. The later epoch goes on.

    Raises:
        WarmUnavailable: the table could not be read.
    """
    here = (epoch, services.region)
    told = read_elsewhere(services, key)
    return any(live.stream == stream and (live.epoch, live.region) > here for live in told)


def settled_elsewhere(services: Services, key: ConversationKey, stream: str) -> StoredMessage | None:
    """The message of a stream, in page form, where another region's table has it and ours has not been given it yet.

    Asked for what nobody writes any more, so seldom.

    Raises:
        WarmUnavailable: a region could not be asked, and none of the others has it.
    """
    unasked: WarmUnavailable | None = None
    others = services.others
    if others is None:
        return None
    for region in others.names:
        try:
            stored = others.tables.read_message(region, key, stream)
        except WarmUnavailable as error:
            unasked = error
            continue
        if stored is not None:
            return stored
    if unasked is not None:
        raise unasked
    return None


def check_elsewhere(services: Services, key: ConversationKey, stream: str) -> None:
    """See that a stream which has not settled lives in no other region.

    Where both say that they have it (each was opened before the other was heard of), ours goes on: of two refusals
    neither producer would ever come to an end.

    Raises:
        Refused: ``conflict``/``elsewhere`` with its ``region`` and ``endpoint``.
    """
    found = [live for live in read_elsewhere(services, key) if live.stream == stream]
    if found and not _is_live_here(services, key, stream) and not services.warm.has_message(key, stream):
        raise _elsewhere(found[0])


def check_elsewhere_for(services: Services, caller: Caller, conversation: str, stream: str) -> None:
    """As `check_elsewhere`, for whoever has not been seen to have a right on the conversation.

    Raises:
        Refused: as `check_elsewhere`; ``not_found`` as `authorize`.
    """
    if services.others is not None:
        check_elsewhere(services, authorize(services, caller, conversation, fresh=True), stream)


def _is_live_here(services: Services, key: ConversationKey, stream: str) -> bool:
    try:
        return any(live.stream == stream for live in services.hot.live(key))
    except HotUnavailable:
        return False


def _elsewhere(live: LiveStream) -> Refused:
    return conflict(
        "elsewhere",
        "The stream lives in another region; go on at its `endpoint`.",
        region=live.region,
        endpoint=live.endpoint,
    )
