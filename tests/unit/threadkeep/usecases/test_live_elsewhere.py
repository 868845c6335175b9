"""Streams that live in another region: who is sent there, and when nobody is any more."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.support.house import LAPTOP, PHONE, WORKER, Device, Frame, House
from tests.support.regions import EU, RegionHouse, Regions, endpoint, regions
from threadkeep.domain.bounds import LEASE_MS, LIVE_ELSEWHERE_MS
from threadkeep.domain.errors import WarmUnavailable
from threadkeep.stores.live_memory import LiveMemory

__all__ = ["regions"]

STRANGER = Device(connection="stranger=", user="bob")


class Talk:
    """A conversation with a question, known in both regions; and an answer that may be opened in either."""

    def __init__(self, regions: Regions) -> None:
        self.regions = regions
        self.id = regions.eu.conversation()
        self.question = regions.eu.message(self.id)
        regions.settle()
        self.answer = regions.eu.new_id()

    def open(self, house: House, **fields: Any) -> Frame:
        said = {"message": self.answer, "parent": self.question, "role": "assistant", "producer": "run-1"} | fields
        return house.say(WORKER, "stream.open", conversation=self.id, **said)

    def append(self, house: House, opened: Frame, text: str = "Hello", offset: int = 0) -> Frame:
        place = {"stream": self.answer, "epoch": opened["epoch"], "offset": offset}
        return house.say(WORKER, "stream.append", conversation=self.id, ops=[["text", 0, text]], **place)

    def close(self, house: House, opened: Frame, offset: int = 1, **fields: Any) -> Frame:
        place = {"stream": self.answer, "epoch": opened["epoch"], "offset": offset, "status": "complete"}
        return house.say(WORKER, "stream.close", conversation=self.id, **(place | fields))

    def resume(self, house: House, by: Device = PHONE) -> Frame:
        return house.say(by, "stream.resume", conversation=self.id, stream=self.answer, epoch=0, offset=0)

    def cancel(self, house: House, by: Device = PHONE, **fields: Any) -> Frame:
        return house.say(by, "stream.cancel", conversation=self.id, **fields)

    def live(self, house: House) -> list[Frame]:
        live: list[Frame] = house.ok(PHONE, "conversation.subscribe", conversation=self.id)["live"]
        return live


@pytest.fixture
def talk(regions: Regions) -> Talk:
    return Talk(regions)


def is_elsewhere(reply: Frame, region: str = EU) -> bool:
    return (
        reply.get("reason") == "elsewhere"
        and reply["detail"] == {"region": region, "endpoint": endpoint(region)}
        and not reply["retryable"]
    )


# --- who is sent there ----------------------------------------------------------------------------------------


def test_whoever_writes_or_reads_a_stream_of_another_region_is_told_where_it_lives(talk: Talk) -> None:
    eu, us = talk.regions.eu, talk.regions.us
    opened = talk.open(eu)
    talk.regions.replicate()
    assert is_elsewhere(talk.open(us))
    assert is_elsewhere(talk.open(us, takeover=True, producer="run-2"))
    assert is_elsewhere(talk.append(us, opened))
    assert is_elsewhere(talk.close(us, opened, offset=0))
    assert is_elsewhere(talk.close(us, opened, body=[], parent=talk.question, role="assistant"))
    assert is_elsewhere(talk.resume(us))
    assert is_elsewhere(talk.cancel(us, stream=talk.answer))
    assert talk.append(eu, opened)["offset"] == 1


def test_to_those_who_may_not_see_the_conversation_it_is_nowhere(talk: Talk) -> None:
    us = talk.regions.us
    opened = talk.open(talk.regions.eu)
    talk.regions.replicate()
    place = {"stream": talk.answer, "epoch": opened["epoch"], "offset": 0}
    foreign = Device(connection="foreign=", user="responder", tenant="other", scope="produce")
    for device, action, fields in (
        (foreign, "stream.append", {**place, "ops": []}),
        (foreign, "stream.close", {**place, "status": "complete"}),
        (STRANGER, "stream.resume", place),
        (STRANGER, "stream.cancel", {"stream": talk.answer}),
    ):
        there = us.say(device, action, conversation=talk.id, **fields)
        never = us.say(device, action, conversation=us.new_id(), **fields)
        assert there == never
        assert there["code"] == "not_found"


def test_nor_is_anybody_sent_to_a_stream_of_a_deleted_conversation(talk: Talk) -> None:
    us = talk.regions.us
    opened = talk.open(talk.regions.eu)
    talk.regions.replicate()
    us.ok(PHONE, "conversation.delete", conversation=talk.id)
    assert talk.append(us, opened)["code"] == "not_found"
    assert talk.close(us, opened, offset=0)["code"] == "not_found"
    assert talk.resume(us)["code"] == "not_found"


def test_a_stop_of_all_stops_those_of_its_own_region_and_names_the_others(talk: Talk) -> None:
    eu, us = talk.regions.eu, talk.regions.us
    talk.open(eu)
    talk.regions.replicate()
    here = us.stream(talk.id, talk.question)
    reply = talk.cancel(us)
    assert [message["id"] for message in reply["messages"]] == [here["stream"]]
    assert reply["elsewhere"] == [{"stream": talk.answer, "region": EU, "endpoint": endpoint(EU)}]
    assert "elsewhere" not in us.ok(PHONE, "stream.cancel", conversation=us.conversation())


def test_before_the_news_has_come_it_is_opened_twice_and_each_region_goes_on_with_its_own(talk: Talk) -> None:
    eu, us = talk.regions.eu, talk.regions.us
    in_eu, in_us = talk.open(eu), talk.open(us)
    talk.regions.settle()
    for house, opened in ((eu, in_eu), (us, in_us)):
        assert talk.open(house)["epoch"] == opened["epoch"]
        assert talk.append(house, opened)["offset"] == 1
        assert talk.close(house, opened)["type"] == "stream.close.ok"


# --- what is known of it --------------------------------------------------------------------------------------


def test_a_subscriber_is_told_which_region_to_follow_and_no_leaf_of_it(talk: Talk) -> None:
    eu, us = talk.regions.eu, talk.regions.us
    opened = talk.open(eu)
    talk.append(eu, opened)
    talk.regions.replicate()
    reply = us.ok(PHONE, "conversation.subscribe", conversation=talk.id)
    assert reply["leaf"] == talk.question
    assert reply["live"] == [
        {
            "stream": talk.answer,
            "epoch": opened["epoch"],
            "offset": 0,
            "parent": talk.question,
            "role": "assistant",
            "region": EU,
            "endpoint": endpoint(EU),
        }
    ]
    (own,) = talk.live(eu)
    assert own["offset"] == 1
    assert "endpoint" not in own


@pytest.mark.parametrize("ends", ["closed", "stopped", "dead"])
def test_with_its_end_nobody_is_sent_there_any_more(talk: Talk, ends: str) -> None:
    eu, us = talk.regions.eu, talk.regions.us
    opened = talk.open(eu)
    talk.regions.replicate()
    if ends == "closed":
        talk.append(eu, opened)
        talk.close(eu, opened)
    elif ends == "stopped":
        talk.cancel(eu)
    else:
        talk.regions.clock.ms += LEASE_MS
        eu.sweep()
    talk.regions.replicate()
    assert talk.live(us) == []
    assert talk.open(us)["code"] == "closed"
    assert talk.resume(us)["state"] == "settled"


def test_where_the_message_has_come_before_the_news_of_its_end_it_is_settled(talk: Talk) -> None:
    eu, us = talk.regions.eu, talk.regions.us
    opened = talk.open(eu)
    talk.append(eu, opened)
    talk.regions.replicate()
    talk.close(eu, opened)
    talk.regions.replicate(lambda sort_key: not sort_key.startswith("live#"))
    assert talk.open(us)["code"] == "closed"
    assert talk.resume(us)["state"] == "settled"
    assert talk.cancel(us, stream=talk.answer)["messages"][0]["id"] == talk.answer


def test_what_a_lost_hot_tier_had_the_sweeper_takes_back(talk: Talk) -> None:
    eu, us = talk.regions.eu, talk.regions.us
    talk.open(eu)
    eu.lose_hot()
    talk.regions.clock.ms += LEASE_MS
    eu.sweep()
    talk.regions.replicate()
    assert talk.live(us) == []


def test_where_the_index_is_lost_too_its_word_is_not_believed_for_ever(talk: Talk) -> None:
    eu, us = talk.regions.eu, talk.regions.us
    talk.open(eu)
    eu.lose_hot()
    eu.hot._deadlines.clear()
    talk.regions.replicate()
    talk.regions.clock.ms += LIVE_ELSEWHERE_MS - 1
    assert is_elsewhere(talk.open(us))
    talk.regions.clock.ms += 1
    assert talk.open(us)["type"] == "stream.open.ok"


class Failing(LiveMemory):
    """A register that cannot be written for a while."""

    is_away = True

    def put(self, *args: Any, **named: Any) -> None:
        if self.is_away:
            raise WarmUnavailable("away")
        super().put(*args, **named)

    def remove(self, *args: Any, **named: Any) -> None:
        if self.is_away:
            raise WarmUnavailable("away")
        super().remove(*args, **named)


def register_of(house: RegionHouse) -> Failing:
    failing = Failing(house.warm, house.region)
    assert house.services.others is not None
    house.replace(others=dataclasses.replace(house.services.others, live=failing))
    return failing


def test_an_opening_that_others_cannot_hear_of_is_not_acknowledged_and_the_next_one_tells_them(talk: Talk) -> None:
    eu, us = talk.regions.eu, talk.regions.us
    register = register_of(eu)
    assert talk.open(eu)["code"] == "unavailable"
    register.is_away = False
    assert talk.open(eu)["type"] == "stream.open.ok"
    talk.regions.replicate()
    assert is_elsewhere(talk.open(us))


def test_an_end_that_others_cannot_hear_of_stands_and_the_sweeper_tells_them(talk: Talk) -> None:
    eu, us = talk.regions.eu, talk.regions.us
    register = register_of(eu)
    register.is_away = False
    opened = talk.open(eu)
    talk.append(eu, opened)
    register.is_away = True
    assert talk.close(eu, opened)["type"] == "stream.close.ok"
    for _ in range(2):
        talk.regions.clock.ms += LEASE_MS
        eu.sweep()
    register.is_away = False
    talk.regions.replicate()
    assert [told["stream"] for told in talk.live(us)] == [talk.answer]
    talk.regions.clock.ms += LEASE_MS
    eu.sweep()
    talk.regions.replicate()
    assert talk.live(us) == []


# --- evacuated ------------------------------------------------------------------------------------------------


def test_of_an_evacuated_region_nothing_is_believed_and_its_producers_go_on_elsewhere(talk: Talk) -> None:
    eu, us = talk.regions.eu, talk.regions.us
    opened = talk.open(eu)
    talk.append(eu, opened)
    talk.regions.replicate()
    us.evacuate(EU)
    assert talk.live(us) == []
    assert talk.resume(us)["code"] == "not_found"
    again = talk.open(us, epoch=opened["epoch"])
    assert again["epoch"] > opened["epoch"]
    talk.append(us, again, "Hello again")
    assert talk.close(us, again)["message"]["parts"] == [{"type": "text", "text": "Hello again"}]


@pytest.mark.parametrize("is_sealed", [False, True])
def test_when_it_comes_back_what_has_settled_meanwhile_stands(talk: Talk, *, is_sealed: bool) -> None:
    eu, us = talk.regions.eu, talk.regions.us
    talk.live(eu)
    opened = talk.open(eu)
    talk.append(eu, opened, "Hel")
    if is_sealed:
        eu.warm.unavailable = True
        talk.close(eu, opened)
        eu.warm.unavailable = False
    talk.regions.replicate()
    us.evacuate(EU)
    again = talk.open(us, epoch=opened["epoch"])
    talk.append(us, again, "Hello")
    settled = talk.close(us, again)["message"]
    talk.regions.replicate()
    us.evacuate()
    talk.regions.clock.ms += LEASE_MS
    eu.sweep()
    created = [frame for frame in eu.frames(PHONE) if frame["type"] == "message.created"]
    assert [frame["message"] for frame in created] == [settled]
    assert eu.ok(PHONE, "message.list", conversation=talk.id)["messages"][0] == settled
    assert talk.append(eu, opened, "lo", 1)["code"] in {"closed", "not_found"}
    assert talk.open(eu, epoch=opened["epoch"])["code"] == "closed"
    assert eu.hot.live(eu.key(talk.id)) == ()
    talk.regions.replicate()
    assert talk.live(us) == []
    page = us.ok(LAPTOP, "message.list", conversation=talk.id)
    assert page["messages"][0] == settled


# --- one region -----------------------------------------------------------------------------------------------


def test_one_region_alone_says_nothing_of_regions(regions: Regions) -> None:
    house = regions.eu
    house.replace(others=None)
    conversation = house.conversation()
    question = house.message(conversation)
    place = house.stream(conversation, question)
    (live,) = house.ok(PHONE, "conversation.subscribe", conversation=conversation)["live"]
    assert "endpoint" not in live
    unknown = {"stream": house.new_id(), "epoch": 1, "offset": 0}
    assert house.say(WORKER, "stream.append", conversation=conversation, ops=[], **unknown)["code"] == "not_found"
    assert "elsewhere" not in house.ok(PHONE, "stream.cancel", conversation=conversation)
    assert house.warm.live == {}
    assert place["stream"] in house.warm.messages[house.key(conversation)]
