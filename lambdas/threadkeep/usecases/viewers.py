"""Telling those who watch."""

from __future__ import annotations

from collections.abc import Sequence

from threadkeep.domain.errors import HotUnavailable
from threadkeep.domain.frames import stream_lag
from threadkeep.domain.model import ConversationKey
from threadkeep.usecases.services import Services


def tell(
    services: Services, key: ConversationKey, viewers: Sequence[str], frame: bytes, *, stream: str | None = None
) -> None:
    """Send the frame to the viewers; the gone ones are removed, the late ones get nothing more until they resume.

    Late for a frame of a ``stream`` they are told so, without waiting for it: their silence says the same 15 s later.
    Never fails: what is kept does not hang on it.
    """
    if not viewers:
        return
    delivery = services.push.send(viewers, frame)
    try:
        if delivery.gone:
            services.hot.unsubscribe(key, delivery.gone)
        if delivery.late:
            services.hot.mark_lagging(key, delivery.late)
            if stream is not None:
                services.push.hint(delivery.late, stream_lag(key.conversation, stream))
    except HotUnavailable:
        return  # their leases end by themselves


def tell_all(services: Services, key: ConversationKey, frame: bytes) -> None:
    """Send the frame to everybody who watches the conversation; with the hot tier away nobody is known to."""
    try:
        viewers = services.hot.viewers(key)
    except HotUnavailable:
        return  # viewers renew their leases, read the leaf then, and catch up
    tell(services, key, viewers, frame)
