"""Roots: a conversation has one as a rule, and then its first message is what every path of it begins with.

Where its beginning is forked there are several, and which one is a path's is known at the path's end only. So that
nobody else has to go there, it is said once, before the second root is put: where none of the roots is a system message
it makes no difference to a context, and nothing is said.
"""

from __future__ import annotations

from contextlib import suppress

from threadkeep.domain.errors import HotUnavailable
from threadkeep.domain.model import ConversationKey, Role
from threadkeep.domain.tail import Several
from threadkeep.usecases.leaf import read_live
from threadkeep.usecases.services import Services
from threadkeep.usecases.tiers import History, Tiers


def note_root(
    services: Services, key: ConversationKey, message: str, *, parent: str | None, role: Role, may_fork: bool
) -> None:
    """Say that a message is about to be put which is one of several roots, if it is, where a context has to know.

    Nothing is asked of one that has a parent, or that may not stand beside others.

    Raises:
        WarmUnavailable: the table could not be asked or told; the message must not be put.
    """
    if parent is not None or not may_fork:
        return
    history = History(Tiers.of(services), key, batch=1)
    first = history.first()
    if not isinstance(first, Several):
        if first is None:
            # What is still written is in no table; of what no bucket gives, nobody knows what it is.
            others = [live.role for live in read_live(services, key) if live.parent is None and live.stream != message]
            is_known = not history.damaged_in(before=None, down_to=None)
        else:
            others = [first.message.role] if first.message.id != message else []
            is_known = True
        if is_known and (not others or "system" not in (role, *others)):
            return
        services.warm.note_several(key)
    note_several(services, key)


def note_several(services: Services, key: ConversationKey) -> None:
    """Tell the hot tier what the table says; again, where an attempt at it broke off."""
    with suppress(HotUnavailable):
        services.hot.note_several(key)
