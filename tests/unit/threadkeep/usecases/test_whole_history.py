"""Every message of a conversation comes once and whole, in either order, whatever tier it lies in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec import UNSET

from tests.support.conversations import message, noise, text_parts
from tests.support.house import START_MS, House
from threadkeep.domain.archive import Damaged
from threadkeep.domain.bounds import EXPORT_HELD_BYTES_MAX, FRAME_BYTES_MAX, PAGE_ITEMS_MAX
from threadkeep.domain.errors import Unreadable
from threadkeep.domain.model import ConversationKey, Message, StoredMessage
from threadkeep.usecases.whole_history import Entry, newest_first, oldest_first

Read = Callable[[Any, ConversationKey], Iterator[Entry]]
IDLE_MS = 90 * 24 * 60 * 60_000
ORDERS = pytest.mark.parametrize("read", [newest_first, oldest_first])


class Talk:
    """A conversation in the stores, in no order of writing."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.key = ConversationKey("acme", house.conversation())
        self.messages: list[Message] = []

    def add(self, count: int, text: str = "hello") -> list[Message]:
        """Messages, each a millisecond after the last."""
        new = [
            message(self.key, text_parts(f"{text} {number}"), now_ms=START_MS + len(self.messages) + number)
            for number in range(count)
        ]
        for one in new:
            assert self.house.warm.put_message("acme", StoredMessage(one)) is None
        self.messages += new
        return new

    def archive(self, messages: list[Message]) -> None:
        """Move them into a segment."""
        self.house.clock.ms = START_MS + IDLE_MS
        stored = [StoredMessage(one) for one in messages]
        manifest = self.house.cold.write(self.key, stored, now_ms=self.house.clock.ms)
        self.house.manifests.put(self.key, manifest)
        self.house.manifests.remove_messages(self.key, [one.id for one in messages])

    def read(self, read: Read) -> list[Entry]:
        """All of it, oldest first; what could not be read comes last."""
        entries = list(read(self.house.services, self.key))
        messages = [entry for entry in entries if isinstance(entry, Message)]
        damaged = [entry for entry in entries if isinstance(entry, Damaged)]
        ids = [one.id for one in messages]
        assert ids == sorted(ids, reverse=read is newest_first)
        return [*sorted(messages, key=lambda one: one.id), *damaged]


@pytest.fixture
def talk(house: House) -> Talk:
    return Talk(house)


@ORDERS
@pytest.mark.parametrize("count", [0, 1, PAGE_ITEMS_MAX - 1, PAGE_ITEMS_MAX, PAGE_ITEMS_MAX + 1, 3 * PAGE_ITEMS_MAX])
def test_each_message_comes_once(talk: Talk, read: Read, count: int) -> None:
    talk.add(count)
    assert talk.read(read) == talk.messages


@ORDERS
def test_what_takes_more_than_is_held_comes_once_too(talk: Talk, read: Read) -> None:
    talk.add(3 * EXPORT_HELD_BYTES_MAX // 20_000, noise(20_000))
    assert talk.read(read) == talk.messages


@ORDERS
def test_messages_that_no_frame_carries_come_whole(talk: Talk, read: Read) -> None:
    talk.add(1)
    talk.add(2, "x" * FRAME_BYTES_MAX)
    assert all(not isinstance(entry, Damaged) and entry.parts is not UNSET for entry in talk.read(read))
    assert talk.read(read) == talk.messages


@ORDERS
def test_all_tiers_are_read_as_one(talk: Talk, read: Read) -> None:
    old = talk.add(2 * PAGE_ITEMS_MAX + 50)
    large = talk.add(2, "x" * FRAME_BYTES_MAX)
    talk.add(30)
    talk.archive(old[::2])
    talk.archive(large)
    assert talk.read(read) == talk.messages


def test_what_is_put_between_while_the_newer_pages_are_let_go_takes_no_others_place(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read again, a page may hold more than before: its oldest message must not fall out of it."""
    talk.add(3 * PAGE_ITEMS_MAX, noise(20_000))
    monkeypatch.setattr("threadkeep.usecases.whole_history.EXPORT_HELD_BYTES_MAX", 0)
    entries = oldest_first(talk.house.services, talk.key)
    found = [next(entries)]
    late = [message(talk.key, now_ms=START_MS + PAGE_ITEMS_MAX + number) for number in range(150)]
    for one in late:
        talk.house.warm.put_message("acme", StoredMessage(one))
    found += entries
    ids = [entry.id for entry in found if isinstance(entry, Message)]
    assert ids == sorted(ids)
    assert {one.id for one in talk.messages} <= set(ids)


@ORDERS
def test_what_no_bucket_gives_is_told_and_all_else_comes(talk: Talk, read: Read) -> None:
    """A damaged segment must neither end the reading nor be passed over in silence."""
    talk.add(2 * PAGE_ITEMS_MAX)
    lost = talk.add(PAGE_ITEMS_MAX + 20)
    kept = talk.add(150)
    talk.archive(kept[:100])
    talk.archive(lost)
    doomed = next(iter(talk.house.manifests.read(talk.key)[:1]))
    assert doomed.first == lost[0].id
    del talk.house.cold.buckets["eu-central-1"].objects[doomed.object_key]
    *messages, one, other = talk.read(read)
    assert messages == [entry for entry in talk.messages if entry not in lost]
    assert {one, other} == {
        Damaged(lost[0].id, lost[PAGE_ITEMS_MAX - 1].id, PAGE_ITEMS_MAX),
        Damaged(lost[PAGE_ITEMS_MAX].id, lost[-1].id, 20),
    }


@ORDERS
def test_a_body_that_is_lost_is_told_and_all_else_comes(
    talk: Talk, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk.add(3)
    (large,) = talk.add(1, "x" * FRAME_BYTES_MAX)

    def lost(_key: ConversationKey, identifier: str) -> StoredMessage:
        raise Unreadable(talk.key.conversation, identifier, "its body is not in the bucket")

    monkeypatch.setattr(talk.house.warm, "read_message", lost)
    assert talk.read(read) == [*talk.messages[:3], Damaged(large.id, large.id, 1)]


def test_a_page_is_read_once_while_it_can_be_held(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    talk.add(5 * PAGE_ITEMS_MAX)
    reads = []
    read_messages = talk.house.warm.read_messages

    def counting(*args: Any, **options: Any) -> Any:
        reads.append(options["before"])
        return read_messages(*args, **options)

    monkeypatch.setattr(talk.house.warm, "read_messages", counting)
    assert talk.read(oldest_first) == talk.messages
    assert len(reads) == len(set(reads)) == 5
