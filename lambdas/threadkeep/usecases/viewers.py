"""Telling those who watch."""

from __future__ import annotations

from collections.abc import Sequence

from threadkeep.domain.errors import HotUnavailable
from threadkeep.domain.model import ConversationKey
from threadkeep.usecases.services import Services


def tell(services: Services, key: ConversationKey, viewers: Sequence[str], frame: bytes) -> None:
    """Send the frame to the viewers and remove the gone ones. Never fails: what is kept does not hang on it."""
    gone = services.push.send(viewers, frame) if viewers else ()
    if gone:
        try:
            services.hot.unsubscribe(key, gone)
        except HotUnavailable:
            return  # their leases end by themselves


def tell_all(services: Services, key: ConversationKey, frame: bytes) -> None:
    """Send the frame to everybody who watches the conversation; with the hot tier away nobody is known to."""
    try:
        viewers = services.hot.viewers(key)
    except HotUnavailable:
        return  # viewers renew their leases, read the leaf then, and catch up
    tell(services, key, viewers, frame)
