"""Faults that people met in history: pages that lose or repeat, reads that find nothing, costs that grow."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec
import pytest

from tests.support.conversations import message, noise, text_parts
from tests.support.house import PHONE, WORKER, Frame, House, text_part
from tests.support.moto_table import REGION, TABLE, buckets_of, moto_clients
from tests.support.tiers import Calls, Tale
from threadkeep.domain import ids
from threadkeep.domain.bounds import LEAF_MS
from threadkeep.domain.model import StoredMessage
from threadkeep.stores.bodies_s3 import BodiesS3
from threadkeep.stores.manifests_dynamodb import ManifestsDynamoDB
from threadkeep.stores.warm_dynamodb import WarmDynamoDB

YEAR_2019_MS: Final = 1_546_300_800_000
MINUTE_MS: Final = 60_000


def read(
    house: House,
    conversation: str,
    between: Callable[[], object] = lambda: None,
    action: str = "message.list",
    **fields: Any,
) -> list[str]:
    """Ids of all pages in the order in which they come; something happens between two of them."""
    found: list[str] = []
    cursor, pages = None, 0
    while not pages or cursor is not None:
        reply = house.ok(PHONE, action, conversation=conversation, cursor=cursor, **fields)
        found += [message["id"] for message in reply["messages"]]
        cursor, pages = reply["cursor"], pages + 1
        assert pages < 1_000, "the pages come to an end"
        if cursor is not None:
            between()
    return found


# --- A37 ------------------------------------------------------------------------------------------------------


def test_a37_the_last_50_of_1200_messages_are_the_last_50(house: House) -> None:
    """A37: only the first megabyte is read, from the oldest: the newest turns vanish, and that was all."""
    with moto_clients() as (table, bucket):
        warm = WarmDynamoDB(table, TABLE, BodiesS3(buckets_of(bucket), REGION))
        house.replace(warm=warm, manifests=ManifestsDynamoDB(table, TABLE))
        conversation = house.conversation()
        key = house.key(conversation)
        sent: list[str] = []
        for number in range(1_200):
            new = message(key, text_parts(noise(2_600, number)), id=house.new_id(), parent=sent[-1] if sent else None)
            assert warm.put_message(key.tenant, StoredMessage(new)) is None
            sent.append(new.id)
        for leaf in (None, "all"):
            last: list[str] = []
            cursor = None
            while len(last) < 50:
                reply = house.ok(PHONE, "message.list", conversation=conversation, leaf=leaf, cursor=cursor, limit=50)
                last += [one["id"] for one in reply["messages"]]
                cursor = reply["cursor"]
                assert cursor is not None, "there are more"
            assert last[:50] == sent[:-51:-1]
        with counting_queries(table) as queries:
            page = warm.read_messages(key, limit=1_201)
        assert len(queries) > 1, "the table does give a megabyte at a time"
        assert ([stored.message.id for stored in page.messages], page.more) == (sent[::-1], False)


@contextmanager
def counting_queries(table: Any) -> Iterator[list[object]]:
    """One entry for each query of the table meanwhile."""
    made: list[object] = []
    table.meta.events.register("before-call.dynamodb.Query", lambda **_: made.append(1), unique_id="counting")
    yield made
    table.meta.events.unregister("before-call.dynamodb.Query", unique_id="counting")


# --- A38, A54 -------------------------------------------------------------------------------------------------


class Crowded:
    """300 messages of every branch, seven of which share a millisecond wherever a page may end."""

    def __init__(self, house: House, page: int) -> None:
        self.tale = Tale(house)
        self.random = random.Random(page)  # noqa: S311 -- the same at every run
        ms = house.clock.ms - 10 * MINUTE_MS
        parent: str | None = None
        for number in range(300):
            if (300 - number) % max(page, 7) >= 7:
                ms += 1
            parent = self._put(ms, parent)
        house.clock.ms += MINUTE_MS

    def _put(self, ms: int, parent: str | None = None) -> str:
        # Of one millisecond none could be another's child: so each is under one of an earlier millisecond.
        while parent is not None and ids.time_ms(parent) >= ms:
            parent = next((one for one in sorted(self.tale.ids, reverse=True) if ids.time_ms(one) < ms), None)
        return self.tale.put(parent, id=ids.mint(ms))

    def insert(self) -> None:
        """One more, anywhere in time: later than all, or in a millisecond that has some already."""
        beside = self.random.choice([*self.tale.ids, self.tale.house.new_id()])
        self._put(ids.time_ms(beside), beside)


@pytest.mark.parametrize("page", range(1, 21))
def test_a38_no_edge_of_a_page_loses_or_repeats_a_message_whatever_is_inserted(house: House, page: int) -> None:
    """A38, A54: a page's edge in one instant, or a count for a cursor: messages are lost, or come twice."""
    crowded = Crowded(house, page)
    tale = crowded.tale
    there = sorted(tale.ids, reverse=True)
    assert max(Counter(map(ids.time_ms, there)).values()) >= 7
    found = read(house, tale.conversation, crowded.insert, leaf="all", limit=page)
    assert len(tale.ids) > len(there), "some came in between"
    assert found == sorted(set(found), reverse=True)
    assert [one for one in found if one in there] == there
    leaf = there[0]
    path = read(house, tale.conversation, crowded.insert, leaf=leaf, limit=page)
    assert path == read(house, tale.conversation, leaf=leaf, limit=100)
    assert path == sorted(set(path), reverse=True)


@pytest.mark.parametrize("page", [1, 7, 20])
def test_a54_what_comes_late_leaves_no_gap_though_the_archive_goes_on_between_pages(house: House, page: int) -> None:
    """A54: pages by count leave gaps when old messages arrive."""
    crowded = Crowded(house, page)
    tale = crowded.tale
    there = sorted(tale.ids, reverse=True)

    def between() -> None:
        crowded.insert()
        warm = sorted(house.warm.messages[tale.key])
        chosen = crowded.random.sample(warm, k=min(3, len(warm)))
        if all(manifest.first != min(chosen) for manifest in house.manifests.read(tale.key)):
            tale.archive(chosen)

    found = read(house, tale.conversation, between, leaf="all", limit=page)
    assert house.manifests.read(tale.key)
    assert found == sorted(set(found), reverse=True)
    assert [one for one in found if one in there] == there


# --- A39 ------------------------------------------------------------------------------------------------------


class Promising:
    """A table whose full pages promise more, as DynamoDB's do: it stops at the limit without looking further."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def read_messages(self, *args: Any, limit: int, **kwargs: Any) -> Any:
        page = self._store.read_messages(*args, limit=limit, **kwargs)
        return msgspec.structs.replace(page, more=len(page.messages) == limit)


@pytest.mark.parametrize("is_promising", [True, False])
@pytest.mark.parametrize("is_hot", [True, False])
@pytest.mark.parametrize("leaf", [None, "all"])
@pytest.mark.parametrize("pages", [1, 3])
def test_a39_pages_that_come_out_even_end_cleanly(
    house: House,
    pages: int,
    leaf: str | None,
    is_hot: bool,  # noqa: FBT001 -- a case
    is_promising: bool,  # noqa: FBT001 -- a case
) -> None:
    """A39: exactly a page's number of messages: one store says that there are more, and then has none."""
    tale = Tale(house)
    chain = tale.chain(20 * pages)
    house.hot.unavailable = not is_hot
    if is_promising:
        house.replace(warm=Promising(house.warm))
    for _ in range(2):
        assert read(house, tale.conversation, leaf=leaf, limit=20) == chain[::-1]


# --- A40 ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 4, 50])
def test_a40_messages_dated_2019_are_met_when_one_scrolls_back_to_2019(house: House, limit: int) -> None:
    """A40: imported messages are skipped: the cursor goes by id, the order by time."""
    tale = Tale(house)
    live = tale.chain(30)
    imported: list[str] = []

    def imports() -> None:
        if len(imported) < 10:
            parent = imported[-1] if imported else None
            said = {"conversation": tale.conversation, "parent": parent, "role": "user", "fork": True}
            identifier = ids.mint(YEAR_2019_MS + len(imported), after=parent)
            house.ok(WORKER, "message.create", message=identifier, parts=[text_part("then")], **said)
            imported.append(identifier)

    while len(imported) < 5:
        imports()
    assert read(house, tale.conversation, imports, leaf="all", limit=limit) == [*live[::-1], *imported[::-1]]
    created = [
        one["created_at"]
        for one in house.ok(PHONE, "message.list", conversation=tale.conversation, leaf="all")["messages"]
    ]
    assert created == sorted(created, reverse=True), "the order of ids is the order of what is shown as the time"
    assert read(house, tale.conversation, leaf=imported[-1], limit=limit) == imported[::-1]
    assert read(house, tale.conversation, limit=limit) == live[::-1], "the present leaf is the newest all the same"


# --- A48 ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["hot", "lost", "old", "away"])
def test_a48_history_is_never_empty_right_after_a_write_however_far_a_replica_lags(house: House, state: str) -> None:
    """A48: an eventually consistent read finds nothing yet, and the conversation starts as a new one."""
    conversation = house.conversation()
    key = house.key(conversation)
    sent: list[str] = []
    for _ in range(5):
        sent.append(house.message(conversation, sent[-1] if sent else None))
    house.warm.lagging = set(sent)
    assert house.warm.read_messages(key, limit=10, consistent=False).messages == (), "the replica does lag"
    if state == "lost":
        house.lose_hot()
    elif state == "old":
        house.clock.ms += LEAF_MS
    house.hot.unavailable = state == "away"
    for leaf in (None, sent[-1]):
        assert read(house, conversation, leaf=leaf) == sent[::-1]
        assert read(house, conversation, action="context.read", leaf=leaf) == sent
    assert read(house, conversation, leaf="all") == sent[::-1]
    context = house.ok(WORKER, "context.read", conversation=conversation, leaf=sent[-1])
    assert [one["id"] for one in context["messages"]] == sent
    refused = house.say(PHONE, "message.create", conversation=conversation, parent=None, role="user", parts=[])
    assert refused["detail"] == {"leaf": sent[-1]}, "a turn does not begin as the first"
    house.message(conversation, sent[-1])


# --- A57 ------------------------------------------------------------------------------------------------------


def turn(house: House, conversation: str, parent: str | None) -> None:
    """A question and its answer, and what a client reads around them."""
    question = house.message(conversation, parent)
    house.ok(PHONE, "message.list", conversation=conversation, limit=10)
    house.ok(WORKER, "context.read", conversation=conversation, leaf=question, max_messages=10)
    stream = house.stream(conversation, question)
    house.ok(WORKER, "stream.append", ops=[["text", 0, "answer"]], **stream)
    house.ok(WORKER, "stream.close", **(stream | {"offset": 1, "status": "complete"}))


def test_a57_a_turn_costs_the_same_in_a_conversation_of_10_of_1000_and_of_10000_messages(house: House) -> None:
    """A57: each small change rewrites the whole chat: at 36 MB it takes minutes."""
    made: list[list[tuple[str, str, dict[str, Any]]]] = []
    for length in (10, 1_000, 10_000):
        house.lose_hot()
        tale = Tale(house)
        chain = tale.chain(length)
        calls = Calls(house)
        turn(house, tale.conversation, chain[-1])
        made.append([(store, method, _shape(said)) for store, method, said in calls.made])
    assert made[0] == made[1] == made[2]


@pytest.mark.parametrize("action", ["message.list", "context.read"])
@pytest.mark.parametrize("state", ["hot", "warm", "cold", "away"])
def test_a57_the_newest_10_cost_the_same_whatever_lies_before_them(house: House, state: str, action: str) -> None:
    """A57: the same, for whoever reads."""
    bound = {"message.list": "limit", "context.read": "max_messages"}[action]
    counted = []
    for length in (301, 10_000):  # both of several members of a segment, and longer than what is asked for
        tale = Tale(house)
        chain = tale.chain(length)
        if state == "cold":
            tale.rest()
            tale.archive(chain)
        if state == "hot":
            house.ok(PHONE, action, conversation=tale.conversation, **{bound: 10})
        house.hot.unavailable = state == "away"
        calls = Calls(house)
        reply: Frame = house.ok(PHONE, action, conversation=tale.conversation, **{bound: 10})
        assert sorted(one["id"] for one in reply["messages"]) == chain[-10:]
        assert reply["tier"] == ("warm" if state == "away" else state)
        counted.append(calls.counted)
        house.hot.unavailable = False
    assert counted[0] == counted[1]
    assert sum(count for name, count in counted[0].items() if not name.startswith("hot.")) <= (
        6 if action == "context.read" else 4  # with what the conversation begins with
    )


@pytest.mark.parametrize("age", [10, 500, 9_000])
def test_a57_a_page_before_an_old_message_costs_what_one_before_a_new_one_costs(house: House, age: int) -> None:
    """A57: the same, for whoever scrolled far back and comes again."""
    tale = Tale(house)
    chain = tale.chain(10_000)
    calls = Calls(house)
    before = chain[-age]
    reply = house.ok(PHONE, "message.list", conversation=tale.conversation, before=before, limit=20)
    assert [one["id"] for one in reply["messages"]] == chain[-age - 20 : -age][::-1]
    assert calls.counted == {"warm.read_head": 1, "manifests.read": 1, "warm.read_messages": 1}


def _shape(said: dict[str, Any]) -> dict[str, Any]:
    """What of a call could grow with the conversation."""
    return {name: value for name, value in said.items() if name in {"limit", "consistent"}}
