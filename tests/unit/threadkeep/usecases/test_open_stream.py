"""Opening streams: who holds one, who may begin it anew, where it may stand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.house import LAPTOP, WORKER, Answer, Device, House, text_part
from threadkeep.domain import ids
from threadkeep.domain.bounds import ID_AHEAD_MS_MAX, LIVE_STREAMS_MAX, METADATA_BYTES_MAX

OTHER_WORKER = Device(connection="other=", user="batch", scope="produce")


@pytest.fixture
def talk(house: House) -> Answer:
    return Answer(house)


def test_a_new_stream_begins_at_0_in_an_epoch_of_the_clock(talk: Answer) -> None:
    opened = talk.open()
    assert (opened["stream"], opened["offset"]) == (talk.stream, 0)
    assert opened["epoch"] == talk.house.clock.ms


def test_without_an_id_it_is_given_one_after_its_parents(talk: Answer) -> None:
    stream = talk.open(message=None)["stream"]
    assert ids.is_id(stream)
    assert stream > talk.question


def test_who_watches_is_told_of_a_stream_that_begins_and_of_one_that_begins_anew(talk: Answer) -> None:
    talk.house.ok(LAPTOP, "conversation.subscribe", conversation=talk.conversation)
    first = talk.open()
    talk.open()
    anew = talk.open(epoch=first["epoch"])
    facts = {
        "type": "stream.opened",
        "conversation": talk.conversation,
        "stream": talk.stream,
        "parent": talk.question,
        "role": "assistant",
        "region": "eu-central-1",
    }
    assert talk.house.frames(LAPTOP) == [facts | {"epoch": opened["epoch"]} for opened in (first, anew)]


def test_a_repeated_open_has_the_same_epoch_and_the_present_end(talk: Answer) -> None:
    opened = talk.written("a", "b")
    assert talk.open() == opened | {"offset": 2}


def test_the_same_producer_with_the_epoch_it_held_begins_anew(talk: Answer) -> None:
    opened = talk.written("a", "b")
    anew = talk.open(epoch=opened["epoch"])
    assert anew["epoch"] > opened["epoch"]
    assert anew["offset"] == 0
    assert talk.resumed()["ops"] == []


def test_another_producer_finds_the_stream_held(talk: Answer) -> None:
    talk.open()
    for by in (WORKER, OTHER_WORKER):
        held = talk.open(by, producer="run-2")
        assert (held["code"], held["reason"], held["retryable"]) == ("conflict", "held", False)


def test_a_takeover_keeps_the_log_in_a_new_epoch_and_fences_the_former(talk: Answer) -> None:
    opened = talk.written("a", "b")
    taken = talk.open(OTHER_WORKER, producer="run-2", takeover=True)
    assert taken["epoch"] > opened["epoch"]
    assert taken["offset"] == 2
    assert talk.resumed()["ops"] == [["text", 0, "ab"]]
    assert talk.append(taken, 2, "c", by=OTHER_WORKER)["offset"] == 3
    assert talk.append(opened, 2, "c")["code"] == "not_found", "another principal's now"


def test_a_former_run_of_the_same_principal_is_fenced(talk: Answer) -> None:
    opened = talk.written("a")
    taken = talk.open(producer="run-2", takeover=True)
    fenced = talk.append(opened, 1, "b")
    assert (fenced["code"], fenced["retryable"]) == ("fenced", False)
    assert talk.close(opened, 1)["code"] == "fenced"
    assert talk.open(producer="run-1", epoch=opened["epoch"])["code"] == "fenced"
    assert talk.append(taken, 1, "b")["offset"] == 2


def test_another_producer_that_holds_a_later_epoch_than_the_hot_tier_begins_anew(talk: Answer) -> None:
    opened = talk.written("a")
    anew = talk.open(producer="run-2", epoch=opened["epoch"] + 5)
    assert (anew["epoch"], anew["offset"]) == (opened["epoch"] + 6, 0)


def test_a_settled_stream_is_closed_with_its_message(talk: Answer) -> None:
    opened = talk.written("a")
    message = talk.close(opened, 1)["message"]
    for fields in ({}, {"epoch": opened["epoch"]}, {"takeover": True, "producer": "run-2"}):
        closed = talk.open(**fields)
        assert (closed["code"], closed["detail"], closed["retryable"]) == ("closed", {"settled": message}, False)


def test_a_sealed_stream_that_is_not_stored_yet_is_closed_without_one(talk: Answer) -> None:
    opened = talk.written("a")
    talk.house.warm.unavailable = True
    assert talk.close(opened, 1)["code"] == "unavailable"
    talk.house.warm.unavailable = False
    closed = talk.open()
    assert closed["code"] == "closed"
    assert "detail" not in closed


def test_a_message_goes_by_that_id_then_it_is_closed_with_it(talk: Answer) -> None:
    closed = talk.open(message=talk.question, parent=None)
    assert (closed["code"], closed["detail"]["settled"]["id"]) == ("closed", talk.question)


# --- its place ------------------------------------------------------------------------------------------------


def test_it_follows_the_present_leaf_unless_it_forks(talk: Answer) -> None:
    later = talk.house.message(talk.conversation, talk.question)
    refused = talk.open(message=talk.house.new_id())
    assert (refused["code"], refused["reason"], refused["detail"]) == ("conflict", "stale_leaf", {"leaf": later})
    assert talk.open(message=talk.house.new_id(), fork=True)["type"] == "stream.open.ok"


def test_a_second_answer_during_the_first_is_stale_and_names_it(talk: Answer) -> None:
    talk.open()
    refused = talk.open(message=talk.house.new_id(), producer="run-2")
    assert (refused["reason"], refused["detail"]) == ("stale_leaf", {"leaf": talk.stream})


@pytest.mark.parametrize("fork", [False, True])
def test_a_live_stream_is_no_parent_yet(talk: Answer, fork: bool) -> None:  # noqa: FBT001 -- a case
    talk.open()
    refused = talk.open(message=talk.house.new_id(), parent=talk.stream, fork=fork)
    assert (refused["code"], refused["reason"], refused["retryable"]) == ("conflict", "parent_open", True)


def test_a_parent_that_is_not_here_may_be_tried_again(talk: Answer) -> None:
    nowhere = talk.house.new_id()
    refused = talk.open(message=talk.house.new_id(), parent=nowhere, fork=True)
    assert (refused["code"], refused["reason"], refused["retryable"]) == ("conflict", "parent_missing", True)


def test_a_stream_may_be_a_root(house: House) -> None:
    conversation = house.conversation()
    place = house.stream(conversation, role="system")
    message = house.ok(WORKER, "stream.close", status="complete", **place)["message"]
    assert (message["parent"], message["role"]) == (None, "system")


def test_one_live_stream_too_many_is_refused(talk: Answer) -> None:
    for _ in range(LIVE_STREAMS_MAX):
        assert talk.open(message=talk.house.new_id(), fork=True)["type"] == "stream.open.ok"
    refused = talk.open(message=talk.house.new_id(), fork=True)
    assert (refused["code"], refused["retryable"]) == ("rate_limited", True)


def test_an_id_ahead_of_the_clock_or_not_after_its_parents_is_refused(talk: Answer) -> None:
    ahead = ids.mint(talk.house.clock.ms + ID_AHEAD_MS_MAX + 1)
    assert talk.open(message=ahead)["code"] == "bad_request"
    assert talk.open(message=talk.question)["code"] == "bad_request"
    assert talk.open(message=None, parent="ffffffff-ffff-7fff-bfff-ffffffffffff")["code"] == "bad_request"


def test_metadata_is_bounded(talk: Answer) -> None:
    text = "x" * (METADATA_BYTES_MAX - len(b'{"a":""}'))
    assert talk.open(metadata={"a": text + "x"})["code"] == "too_large"
    assert talk.open(metadata={"a": text})["type"] == "stream.open.ok"


def test_produce_answers_in_every_users_conversation(talk: Answer) -> None:
    bob = Device(connection="bob=", user="bob")
    conversation = talk.house.conversation(bob)
    question = talk.house.message(conversation, by=bob)
    place = talk.house.stream(conversation, question)
    talk.house.ok(WORKER, "stream.append", ops=[["text", 0, "hi bob"]], **place)
    place["offset"] += 1
    talk.house.ok(WORKER, "stream.close", status="complete", **place)
    answer, _ = talk.house.ok(bob, "message.list", conversation=conversation)["messages"]
    assert answer["parts"] == [text_part("hi bob")]


def test_what_a_stream_is_stays_as_it_was_first_opened(talk: Answer) -> None:
    talk.open(model="m-1", metadata={"a": 1})
    opened = talk.open(model="m-2", metadata={"a": 2})
    message = talk.close(opened, 0)["message"]
    assert (message["model"], message["metadata"], message["role"]) == ("m-1", {"a": 1}, "assistant")


@pytest.mark.parametrize("others", [{"role": "user"}, {"parent": None}, {"parent": "ghost"}, {"parent": "live"}])
def test_a_stream_is_not_moved_by_opening_it_again(talk: Answer, others: dict[str, str | None]) -> None:
    opened = talk.written("a")
    live = talk.house.stream(talk.conversation, talk.question, fork=True)["stream"]
    named = {"ghost": talk.house.new_id(), "live": live}
    fields = {name: named.get(value or "", value) for name, value in others.items()}
    message = talk.house.new_id() if "parent" in others else talk.stream  # after what it is to stand under
    if message != talk.stream:
        opened = talk.open(message=message, fork=True)
    again: list[dict[str, Any]] = [{}, {"epoch": opened["epoch"]}, {"producer": "run-2", "takeover": True}]
    for how in again:
        refused = talk.open(message=message, **(how | fields))
        assert (refused["code"], refused["reason"], refused["retryable"]) == ("conflict", "place", False)
    opened = talk.open(message=message, epoch=opened["epoch"])
    settled = talk.close(opened, 0)["message"]
    assert (settled["parent"], settled["role"]) == (talk.question, "assistant")


def test_one_that_was_lost_is_begun_anew_under_a_settled_parent_only(talk: Answer) -> None:
    opened = talk.written("a")
    other = talk.house.stream(talk.conversation, talk.question, fork=True)
    ghost, message = talk.house.new_id(), talk.house.new_id()
    talk.house.lose_hot()
    assert talk.open(message=message, parent=ghost, epoch=opened["epoch"])["reason"] == "parent_missing"
    assert talk.open(message=other["stream"], epoch=other["epoch"])["type"] == "stream.open.ok"
    assert talk.open(message=message, parent=other["stream"], epoch=opened["epoch"])["reason"] == "parent_open"
    assert talk.open(epoch=opened["epoch"])["type"] == "stream.open.ok"
