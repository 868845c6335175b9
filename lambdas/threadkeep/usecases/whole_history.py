"""A conversation from end to end: every message of every branch with all its parts, little of it held at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from msgspec import UNSET

from threadkeep.domain.archive import Damaged
from threadkeep.domain.bounds import EXPORT_HELD_BYTES_MAX, PAGE_ITEMS_MAX
from threadkeep.domain.json_values import encode
from threadkeep.domain.model import ConversationKey, Message
from threadkeep.usecases.services import Services

Entry = Message | Damaged


class _Page(NamedTuple):
    """A page as it was read, newest first.

    Attributes:
        before: what it was read before; None: from the newest on.
        end: the id of its last entry, where the next page begins.
        entries: messages as pages show them; None where they have been let go.
    """

    before: str | None
    end: str
    entries: tuple[Entry, ...] | None


def newest_first(services: Services, key: ConversationKey) -> Iterator[Entry]:
    """From the newest id to the oldest."""
    for page in _pages(services, key):
        for entry in page.entries or ():
            yield _whole(services, key, entry)


def oldest_first(services: Services, key: ConversationKey) -> Iterator[Entry]:
    """From the oldest id to the newest.

    The stores read towards the older. So the pages are read to the end first, and of those only so many are held as
    take `EXPORT_HELD_BYTES_MAX`; the others are read a second time, each when its turn comes.
    """
    pages: list[_Page] = []
    held_bytes = 0
    for page in _pages(services, key):
        held_bytes += len(encode(page.entries))
        pages.append(page if held_bytes <= EXPORT_HELD_BYTES_MAX else page._replace(entries=None))
    while pages:
        page = pages.pop()
        for entry in reversed(page.entries or _read_again(services, key, page)):
            yield _whole(services, key, entry)


def _pages(services: Services, key: ConversationKey, before: str | None = None) -> Iterator[_Page]:
    while True:
        page = services.warm.read_messages(key, before=before, limit=PAGE_ITEMS_MAX)
        entries = tuple(stored.message for stored in page.messages)
        if entries:
            yield _Page(before, _id(entries[-1]), entries)
        if not page.more:
            return
        before = _id(entries[-1])


def _read_again(services: Services, key: ConversationKey, page: _Page) -> list[Entry]:
    """What lies between the ends of a page: more than it had, where something was put between meanwhile."""
    found: list[Entry] = []
    for again in _pages(services, key, page.before):
        for entry in again.entries or ():
            if _id(entry) < page.end:
                return found
            found.append(entry)
    return found


def _whole(services: Services, key: ConversationKey, entry: Entry) -> Entry:
    if isinstance(entry, Damaged) or entry.parts is not UNSET:
        return entry
    stored = services.warm.read_message(key, entry.id)
    return Damaged(entry.id, entry.id, 1) if stored is None else stored.message


def _id(entry: Entry) -> str:
    return entry.first if isinstance(entry, Damaged) else entry.id
