"""What another region has written and this one has not been given yet: waited for, asked for, and else said."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.support.conversations import text_parts
from tests.support.house import LAPTOP, PHONE, WORKER, Frame, House, house, text_part
from tests.support.regions import EU, RegionHouse, Regions, regions
from tests.support.tiers import Tale
from threadkeep.domain.bounds import GAP_MESSAGES_MAX, GAP_MS_MAX, REPLICATION_WAIT_MS
from threadkeep.domain.model import ConversationKey, Message, StoredMessage
from threadkeep.stores.other_tables_memory import OtherTablesMemory

__all__ = ["house", "regions"]

READS = ("message.list", "context.read")


class Talk:
    """A conversation that both regions know, and a path that was written in one and has come to the other in part.

    Attributes:
        ids: of the path, the root first.
    """

    def __init__(self, regions: Regions, *, length: int, lacks: range) -> None:
        self.regions = regions
        self.eu, self.us = regions.eu, regions.us
        self.id = self.eu.conversation()
        regions.settle()
        self.ids: list[str] = []
        for number in range(length):
            self.ids.append(self.eu.message(self.id, self.ids[-1] if self.ids else None, text=f"no. {number}"))
        self.lacking = {f"m#{self.ids[number]}" for number in lacks}
        regions.replicate(lambda sort_key: sort_key not in self.lacking)

    def read(self, action: str = "message.list", **fields: Any) -> Frame:
        """A page in the other region, by somebody who names no leaf."""
        return self.us.ok(PHONE, action, conversation=self.id, **fields)

    def ids_of(self, page: Frame) -> list[str]:
        """What it holds, the oldest first."""
        return sorted(message["id"] for message in page["messages"])


def away(house: RegionHouse) -> None:
    """The others cannot be reached from there."""
    for table in house.others.tables.values():
        table.unavailable = True


def back(house: RegionHouse) -> None:
    for table in house.others.tables.values():
        table.unavailable = False


# --- reads ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", READS)
def test_what_is_missing_in_a_path_is_fetched_from_the_region_that_has_it(regions: Regions, action: str) -> None:
    talk = Talk(regions, length=5, lacks=range(1, 3))
    page = talk.read(action)
    assert talk.ids_of(page) == talk.ids
    assert "incomplete" not in page
    assert page["cursor"] is None
    assert talk.us.others.asked == [(EU, talk.ids[2]), (EU, talk.ids[1])]
    assert set(talk.us.warm.messages[talk.us.key(talk.id)]) == {talk.ids[0], talk.ids[3], talk.ids[4]}


@pytest.mark.parametrize("action", READS)
def test_where_no_region_can_give_it_the_page_says_so_and_its_cursor_goes_on_from_there(
    regions: Regions, action: str
) -> None:
    talk = Talk(regions, length=5, lacks=range(2, 3))
    away(talk.us)
    page = talk.read(action)
    assert talk.ids_of(page) == talk.ids[3:]
    assert (page["incomplete"], page["cursor"]) == (True, talk.ids[2])
    again = talk.read(action, cursor=page["cursor"])
    assert (again["messages"], again["incomplete"], again["cursor"]) == ([], True, talk.ids[2])
    back(talk.us)
    regions.replicate()
    rest = talk.read(action, cursor=page["cursor"])
    assert talk.ids_of(rest) == talk.ids[:3]
    assert "incomplete" not in rest


@pytest.mark.parametrize("action", READS)
def test_a_hole_is_never_kept(regions: Regions, action: str) -> None:
    talk = Talk(regions, length=5, lacks=range(2, 3))
    away(talk.us)
    assert talk.read(action)["incomplete"]
    back(talk.us)
    regions.replicate()
    whole = talk.read(action)
    assert talk.ids_of(whole) == talk.ids
    assert talk.ids_of(talk.read(action)) == talk.ids
    assert talk.read(action)["tier"] == "hot"


def test_a_page_that_ends_before_the_hole_says_nothing_of_it(regions: Regions) -> None:
    talk = Talk(regions, length=5, lacks=range(2, 3))
    away(talk.us)
    page = talk.read(limit=2)
    assert talk.ids_of(page) == talk.ids[3:]
    assert "incomplete" not in page


def test_what_comes_while_it_is_waited_for_needs_no_other_region(regions: Regions) -> None:
    talk = Talk(regions, length=5, lacks=range(2, 3))

    def sleep(seconds: float) -> None:
        regions.clock.ms += round(seconds * 1_000)
        regions.replicate()

    talk.us.replace(sleep=sleep)
    assert talk.ids_of(talk.read()) == talk.ids
    assert talk.us.others.asked == []


def test_it_is_waited_for_once_a_request_and_a_bounded_while(regions: Regions) -> None:
    talk = Talk(regions, length=5, lacks=range(1, 3))
    before_ms = regions.clock.ms
    talk.read()
    assert regions.clock.ms - before_ms == REPLICATION_WAIT_MS


def test_one_request_fetches_a_bounded_number_and_the_next_page_goes_on(regions: Regions) -> None:
    talk = Talk(regions, length=GAP_MESSAGES_MAX + 5, lacks=range(1, GAP_MESSAGES_MAX + 4))
    page = talk.read()
    assert talk.ids_of(page) == talk.ids[-GAP_MESSAGES_MAX - 1 :]
    assert page["incomplete"]
    rest = talk.read(cursor=page["cursor"])
    assert talk.ids_of(rest) == talk.ids[: -GAP_MESSAGES_MAX - 1]
    assert "incomplete" not in rest


def test_a_region_that_cannot_be_reached_is_asked_once_a_request(regions: Regions) -> None:
    talk = Talk(regions, length=3, lacks=range(1, 2))
    away(talk.us)
    talk.us.others.asked.clear()
    assert talk.read()["incomplete"]
    assert talk.us.others.asked == [(EU, talk.ids[1])]


def test_a_request_asks_no_longer_than_it_may(regions: Regions) -> None:
    talk = Talk(regions, length=12, lacks=range(1, 11))
    times: list[int] = []

    class Slow(OtherTablesMemory):
        def read_message(self, region: str, key: ConversationKey, message: str) -> StoredMessage | None:
            times.append(regions.clock.ms)
            talk.us.sleep(1)
            return talk.us.others.read_message(region, key, message)

    assert talk.us.services.others is not None
    talk.us.replace(others=dataclasses.replace(talk.us.services.others, tables=Slow({})))
    before_ms = regions.clock.ms
    assert talk.read()["incomplete"]
    assert 1 < len(times) < GAP_MESSAGES_MAX
    assert max(times) < before_ms + GAP_MS_MAX


def test_an_evacuated_region_is_not_asked(regions: Regions) -> None:
    talk = Talk(regions, length=3, lacks=range(1, 2))
    talk.us.evacuate(EU)
    assert talk.read()["incomplete"]
    assert talk.us.others.asked == []


def test_a_leaf_that_somebody_has_been_told_of_is_waited_for_if_it_is_young(regions: Regions) -> None:
    talk = Talk(regions, length=3, lacks=range(2, 3))
    assert talk.ids_of(talk.read(leaf=talk.ids[2])) == talk.ids
    never = talk.us.say(PHONE, "message.list", conversation=talk.id, leaf="01800000-0000-7000-8000-000000000000")
    assert never["code"] == "not_found"
    assert [message for _, message in talk.us.others.asked] == [talk.ids[2]]


# --- writes ---------------------------------------------------------------------------------------------------


def send(house: House, conversation: str, parent: str, **fields: Any) -> Frame:
    said = {"message": house.new_id(), "parent": parent, "role": "user", "parts": [text_part("next")]} | fields
    return house.say(LAPTOP, "message.create", conversation=conversation, **said)


def open_(house: House, conversation: str, parent: str, **fields: Any) -> Frame:
    said = {"message": house.new_id(), "parent": parent, "role": "assistant", "producer": "run-1"} | fields
    return house.say(WORKER, "stream.open", conversation=conversation, **said)


WRITES = {"message.create": send, "stream.open": open_}


@pytest.mark.parametrize("forks", [False, True])
@pytest.mark.parametrize("action", WRITES)
def test_under_a_parent_that_another_region_has_one_writes_as_under_any(
    regions: Regions, action: str, *, forks: bool
) -> None:
    talk = Talk(regions, length=3, lacks=range(2, 3))
    reply = WRITES[action](talk.us, talk.id, talk.ids[2], fork=forks)
    assert reply["type"] == f"{action}.ok"
    if action == "message.create":
        assert talk.ids_of(talk.read()) == [*talk.ids, reply["message"]["id"]]


@pytest.mark.parametrize("forks", [False, True])
@pytest.mark.parametrize("action", WRITES)
def test_where_no_region_can_give_the_parent_one_may_ask_again(regions: Regions, action: str, *, forks: bool) -> None:
    talk = Talk(regions, length=3, lacks=range(2, 3))
    away(talk.us)
    reply = WRITES[action](talk.us, talk.id, talk.ids[2], fork=forks)
    assert (reply.get("reason"), reply["retryable"]) == ("parent_missing", True)
    back(talk.us)
    regions.replicate()
    assert WRITES[action](talk.us, talk.id, talk.ids[2], fork=forks)["type"] == f"{action}.ok"


@pytest.mark.parametrize("action", READS)
def test_a_page_below_damage_is_incomplete_where_the_next_message_has_not_come(regions: Regions, action: str) -> None:
    """The path is led past a damaged segment, and ends before a message that is still on its way."""
    talk = Talk(regions, length=6, lacks=range(1, 2))
    us = talk.us
    tale = Tale(us, conversation=talk.id)
    tale.rest()
    tale.damage(tale.archive(talk.ids[3:4]), 0)
    us.lose_hot()
    away(us)
    page = talk.read(action)
    assert talk.ids_of(page) == [talk.ids[2], talk.ids[4], talk.ids[5]]
    assert (page["cursor"], page["incomplete"]) == (talk.ids[1], True)
    assert page["damaged"] == [{"first": talk.ids[3], "last": talk.ids[3], "count": 1}]


def test_so_it_is_without_the_hot_tier(regions: Regions) -> None:
    talk = Talk(regions, length=3, lacks=range(2, 3))
    talk.us.hot.unavailable = True
    away(talk.us)
    assert send(talk.us, talk.id, talk.ids[2])["reason"] == "parent_missing"
    back(talk.us)
    assert send(talk.us, talk.id, talk.ids[2])["type"] == "message.create.ok"


def test_a_parent_that_is_older_than_the_leaf_is_stale_and_nobody_is_asked(regions: Regions) -> None:
    talk = Talk(regions, length=3, lacks=range(0))
    assert send(talk.us, talk.id, talk.ids[1])["reason"] == "stale_leaf"
    assert talk.us.others.asked == []


# --- one region -----------------------------------------------------------------------------------------------


def test_one_region_alone_waits_for_nothing_and_asks_nobody(house: House) -> None:
    conversation, parent = house.conversation(), house.new_id()
    message = Message.new(
        id=house.new_id(),
        conversation=conversation,
        parent=parent,
        role="user",
        status="complete",
        parts=text_parts("hello"),
        metadata={},
    )
    house.warm.put_message("acme", StoredMessage(message))
    before_ms = house.clock.ms
    page = house.ok(PHONE, "message.list", conversation=conversation)
    assert [found["id"] for found in page["messages"]] == [message.id]
    assert "incomplete" not in page
    assert house.say(PHONE, "message.list", conversation=conversation, leaf=parent)["code"] == "not_found"
    assert house.clock.ms == before_ms
    assert open_(house, conversation, parent, fork=True)["reason"] == "parent_missing"
    assert house.clock.ms == before_ms + 1  # for the id
