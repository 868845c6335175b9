"""A path from its newest message on: out of the hot tier where it is there, and else put there by one of its readers.

The others wait for that one, a bounded while, and then read for themselves. With the hot tier away everybody does.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Final, NamedTuple

from msgspec import UNSET, UnsetType

from threadkeep.domain.bounds import PAGE_ITEMS_MAX, TAIL_MESSAGES_MAX, TAIL_POLL_MS, TAIL_WAIT_MS
from threadkeep.domain.errors import HotUnavailable, Refused, not_found
from threadkeep.domain.model import Caller, Conversation, ConversationKey, StoredMessage
from threadkeep.domain.tail import Erased, Several, Tail
from threadkeep.usecases.leaf import Tip, read_live
from threadkeep.usecases.live_elsewhere import read_elsewhere
from threadkeep.usecases.roots import note_several
from threadkeep.usecases.services import Services, read_own
from threadkeep.usecases.tiers import History, Tiers

_LOOKS: Final = TAIL_WAIT_MS // TAIL_POLL_MS


class Opened(NamedTuple):
    """A path that is being read: newest first, as it is asked for; and what is read for it.

    Attributes:
        first: as `History.first`, read when it is asked for; None where that is not to be had.
    """

    messages: Iterator[StoredMessage]
    history: History
    first: Callable[[], StoredMessage | Several | None] = lambda: None


class Wanted(NamedTuple):
    """What is asked of a path.

    Attributes:
        leaf: where it begins; None: at the present leaf.
        limit: so many messages at most.
        after: an exclusive bound.
        is_enough: whether these messages, the newest of the path, leave no room for any older one.
        first: whether the conversation's first message is going to be asked for, should the path not reach its root.
    """

    leaf: str | None
    limit: int
    is_enough: Callable[[Sequence[StoredMessage]], bool]
    after: str | None = None
    first: bool = False

    def is_answered_by(self, tail: Tail) -> bool:
        """Whether it needs no table. A tail without a message never does: who is told of nothing takes it for new."""
        if not tail.is_known or not tail.messages:
            return False
        is_at_end = tail.following is None or (self.after is not None and tail.following <= self.after)
        return is_at_end or len(tail.messages) >= self.held_max or self.is_enough(tail.messages)

    @property
    def held_max(self) -> int:
        """How much of it the hot tier could hold."""
        return min(self.limit, TAIL_MESSAGES_MAX)


def open_newest(services: Services, caller: Caller, conversation: str, wanted: Wanted) -> Opened:
    """The path from its newest settled message.

    Raises:
        Refused: ``not_found`` for the conversation, or for a leaf that it does not have.
    """
    key = ConversationKey(caller.tenant, conversation)
    history = History(Tiers.of(services), key, batch=min(wanted.limit, PAGE_ITEMS_MAX))
    # First without a claim to load: whoever may not read this conversation must not keep those waiting who may.
    tail = look(services, key, wanted)
    head = None
    if tail is None or tail.owner is None:
        head = read_own(services, caller, conversation)
    elif tail.owner != caller.user and not caller.produces:
        raise not_found()
    reader = None
    if tail is not None and not wanted.is_answered_by(tail):
        reader = secrets.token_hex(8)
        tail = _await_load(services, key, wanted, reader)
    if tail is not None and wanted.is_answered_by(tail):
        if head is not None:
            _load(services, key, (), head)  # so that the next one need not ask the table whose it is
        history.note(tail.messages)
        path = history.path(tail.messages[0].message.id, after=wanted.after)
        return Opened(path, history, partial(_read_first, services, caller, history, tail, head))
    try:
        start, newest = _begin(services, history, wanted, tail)
    except Refused:
        if reader is not None:
            # Others may be waiting for what we were going to read.
            _load(services, key, (), head or read_own(services, caller, conversation), reader=reader)
        raise
    if tail is not None and not tail.is_loading:
        for _ in islice(history.path(start, after=wanted.after), wanted.held_max):
            pass
        known = {stored.message.id for stored in tail.messages}
        newest_known = islice(history.known_path(start), TAIL_MESSAGES_MAX)
        held = tuple(stored for stored in newest_known if stored.message.id not in known)
        _load(services, key, held, head or read_own(services, caller, conversation), newest=newest, reader=reader)
    path = history.path(start, after=wanted.after)
    return Opened(path, history, partial(_read_first, services, caller, history, tail, head))


def look(services: Services, key: ConversationKey, wanted: Wanted, reader: str | None = None) -> Tail | None:
    """What the hot tier holds of it; None where that cannot be reached."""
    try:
        tail = services.hot.read_tail(
            key, leaf=wanted.leaf, limit=wanted.held_max, reader=reader, wants_first=wanted.first
        )
    except HotUnavailable:
        return None
    if isinstance(tail, Erased):
        raise not_found()
    return tail


def _await_load(services: Services, key: ConversationKey, wanted: Wanted, reader: str) -> Tail | None:
    """What it holds once nobody loads any more, or for as long as one waits. ``is_loading`` False: we are to load."""
    tail = look(services, key, wanted, reader)
    for _ in range(_LOOKS):
        if tail is None or not tail.is_loading or wanted.is_answered_by(tail):
            break
        services.sleep(TAIL_POLL_MS / 1_000)
        tail = look(services, key, wanted, reader)
    return tail


def _begin(
    services: Services, history: History, wanted: Wanted, tail: Tail | None
) -> tuple[str | None, str | UnsetType | None]:
    """The newest settled message of the path; and that of the conversation where the stores were asked for it."""
    if tail is not None and tail.is_known and (tail.messages or tail.following is not None):
        history.note(tail.messages)
        start = tail.messages[0].message.id if tail.messages else tail.following
        if start == wanted.leaf and wanted.leaf is not None and not _may_be_here(history, wanted.leaf):
            raise not_found()
        if start is not None and wanted.leaf is None and not tail.messages:
            return _newest_seen(services, history, start)
        return start, UNSET
    return end_of_path(services, history, wanted.leaf)


def _newest_seen(services: Services, history: History, start: str) -> tuple[str | None, str | UnsetType | None]:
    """As `_begin`, where the hot tier knows how the present path begins and holds nothing of it.

    It may know of no newer message because it was away. The table is read in any case, so it is read from its end.
    """
    newest = history.newest_beside(start)
    if newest is None:
        return start, UNSET
    tip = Tip(newest, read_live(services, history.key))
    return tip.path_end(tip.leaf), newest


def end_of_path(services: Services, history: History, leaf: str | None) -> tuple[str | None, str | UnsetType | None]:
    """The newest settled message on the way to that leaf (None: to the present one), without the hot tier's tail.

    And the newest of the conversation, where the stores had to be asked for it; UNSET where they had not.

    Raises:
        Refused: ``not_found`` for a leaf that is not here.
    """
    # The live ones first: one that settles in between is then seen twice rather than not at all.
    live = read_live(services, history.key)
    if leaf is None:
        newest = history.newest_id()
        tip = Tip(newest, live)
        return tip.path_end(tip.leaf), newest
    if history.find(leaf) is not None or history.is_lost(leaf):
        return leaf, UNSET
    tip = Tip(None, (*live, *read_elsewhere(services, history.key)))
    if leaf not in tip.parents and not _may_be_here(history, leaf):
        raise not_found()
    return tip.path_end(leaf), UNSET


def _may_be_here(history: History, leaf: str) -> bool:
    """Whether the message is there, on its way, or lost: the path to it is read past the damage.

    What is on its way is young, so that nobody waits for an id that never was here.
    """
    found = (history.seek if history.is_fresh(leaf) else history.find)(leaf)
    return found is not None or history.is_lost(leaf)


def _read_first(
    services: Services, caller: Caller, history: History, tail: Tail | None, head: Conversation | None
) -> StoredMessage | Several | None:
    """The conversation's first message: as the hot tier has it, or read and told to that."""
    if tail is not None and tail.first is not UNSET:
        return tail.first
    first = history.first()
    if isinstance(first, Several):
        note_several(services, history.key)
    elif first is not None and tail is not None:
        head = head or read_own(services, caller, history.key.conversation)
        _load(services, history.key, (), head, first=first)
    return first


def _load(
    services: Services,
    key: ConversationKey,
    held: Sequence[StoredMessage],
    head: Conversation,
    *,
    newest: str | UnsetType | None = UNSET,
    first: StoredMessage | UnsetType = UNSET,
    reader: str | None = None,
) -> None:
    lives_ms = head.lives_ms(services.clock.now_ms())
    with suppress(HotUnavailable):  # it is a cache
        services.hot.load(key, held, owner=head.owner, newest=newest, first=first, reader=reader, lives_ms=lives_ms)
