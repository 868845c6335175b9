"""A conversation from end to end: every message of every branch with all its parts, little of it held at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from msgspec import UNSET

from threadkeep.domain.archive import Damaged
from threadkeep.domain.bounds import EXPORT_HELD_BYTES_MAX, PAGE_ITEMS_MAX
from threadkeep.domain.errors import ArchiveDamaged, Unreadable
from threadkeep.domain.json_values import encode
from threadkeep.domain.model import ConversationKey, Message
from threadkeep.usecases.services import Services
from threadkeep.usecases.tiers import History, Tiers

Entry = Message | Damaged
"""A message, or a stretch of them that no store can give: those stand behind what was read with them."""


@dataclass(frozen=True)
class _Page:
    """A page as it was read.

    Attributes:
        before: what it was read before; None: from the newest on.
        down_to: the id of its last message; None: to the oldest.
        messages: newest first, as pages show them; None where they have been let go.
        size_bytes: what they take as JSON.
    """

    before: str | None
    down_to: str | None
    messages: tuple[Message, ...] | None
    damaged: tuple[Damaged, ...]
    size_bytes: int


def newest_first(services: Services, key: ConversationKey) -> Iterator[Entry]:
    """From the newest id to the oldest."""
    tiers = Tiers.of(services)
    for page in _pages(tiers, key):
        for message in page.messages or ():
            yield _whole(tiers, key, message)
        yield from page.damaged


def oldest_first(services: Services, key: ConversationKey) -> Iterator[Entry]:
    """From the oldest id to the newest.

    The stores read towards the older. So the pages are read to the end first, and of those only so many are held as
    take `EXPORT_HELD_BYTES_MAX`; the others are read a second time, each when its turn comes.
    """
    tiers = Tiers.of(services)
    pages: list[_Page] = []
    room = EXPORT_HELD_BYTES_MAX
    for page in _pages(tiers, key):
        room -= page.size_bytes
        pages.append(page if room >= 0 else replace(page, messages=None, damaged=()))
    while pages:
        for page in _held(tiers, key, pages.pop()):
            for message in reversed(page.messages or ()):
                yield _whole(tiers, key, message)
            yield from page.damaged


def _held(tiers: Tiers, key: ConversationKey, page: _Page) -> list[_Page]:
    """The page; read again where its messages have been let go. It may be more by then, and so take two."""
    if page.messages is not None:
        return [page]
    return list(_pages(tiers, key, before=page.before, down_to=page.down_to))[::-1]


def _pages(
    tiers: Tiers, key: ConversationKey, *, before: str | None = None, down_to: str | None = None
) -> Iterator[_Page]:
    """Newest first. What one request read of segments is held for the next pages, but no more than a page or a few."""
    after = None if down_to is None else _before(down_to)
    history, held_bytes = History(tiers, key, batch=PAGE_ITEMS_MAX), 0
    while True:
        read = history.page(before=before, after=after, limit=PAGE_ITEMS_MAX)
        messages = tuple(stored.message for stored in read.messages)
        end = messages[-1].id if read.more else down_to
        damaged = tuple(history.damaged_in(before=before, down_to=end))
        size_bytes = sum(len(encode(message)) for message in messages)
        yield _Page(before, end, messages, damaged, size_bytes)
        if not read.more:
            return
        before = end
        held_bytes += size_bytes
        if held_bytes > EXPORT_HELD_BYTES_MAX:
            history, held_bytes = History(tiers, key, batch=PAGE_ITEMS_MAX), 0


def _whole(tiers: Tiers, key: ConversationKey, message: Message) -> Entry:
    if message.parts is not UNSET:
        return message
    try:
        stored = tiers.read_message(key, message.id)
    except (ArchiveDamaged, Unreadable):
        stored = None
    return Damaged(message.id, message.id, 1) if stored is None else stored.message


def _before(identifier: str) -> str:
    """A text that sorts right before an id: an exclusive bound that includes it."""
    return identifier[:-1] + chr(ord(identifier[-1]) - 1) + "~"
