"""Appending and closing: every verdict of the protocol, on the wire."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.house import LAPTOP, PHONE, REGION, WORKER, Answer, Device, House, text_part
from threadkeep.domain.bounds import FIELD_NAME_BYTES_MAX, OPS_BYTES_MAX, SETTLED_STATE_MS
from threadkeep.domain.streams import Limits
from threadkeep.stores.hot_memory import HotMemory

OTHER_WORKER = Device(connection="other=", user="batch", scope="produce")


@pytest.fixture
def answer(house: House) -> Answer:
    return Answer(house)


# --- append ---------------------------------------------------------------------------------------------------


def test_appends_are_told_to_who_watches_in_order_with_their_places(answer: Answer) -> None:
    answer.house.ok(LAPTOP, "conversation.subscribe", conversation=answer.conversation)
    opened = answer.written("a", "界")
    beat = answer.house.ok(WORKER, "stream.append", conversation=answer.conversation, ops=[], **answer.place(opened, 2))
    assert beat["offset"] == 3
    place = {"type": "stream.delta", "conversation": answer.conversation, "stream": answer.stream}
    place["epoch"] = opened["epoch"]
    assert answer.house.frames(LAPTOP)[1:] == [
        place | {"at": 0, "next": 1, "ops": [["text", 0, "a"]]},
        place | {"at": 1, "next": 2, "ops": [["text", 0, "界"]]},
        place | {"at": 2, "next": 3, "ops": []},
    ]


def test_an_append_repeated_is_answered_as_at_first_and_told_again(answer: Answer) -> None:
    opened = answer.written("a", "b")
    answer.house.ok(LAPTOP, "conversation.subscribe", conversation=answer.conversation)
    assert answer.append(opened, 0, "a")["offset"] == 1
    assert answer.append(opened, 1, "b")["offset"] == 2
    assert [frame["at"] for frame in answer.house.frames(LAPTOP)] == [0, 1]
    assert answer.resumed()["ops"] == [["text", 0, "ab"]]


def test_the_same_ops_written_differently_are_the_same(answer: Answer) -> None:
    opened = answer.open()
    fields = '"conversation":"{}","stream":"{}","epoch":{},"offset":0'.format(
        answer.conversation, opened["stream"], opened["epoch"]
    )
    for ops in ('[["text",0,"é😀"]]', ' [ [ "text" , 0 , "\\u00e9\\ud83d\\ude00" ] ] '):
        body = f'{{"action":"stream.append",{fields},"ops":{ops}}}'
        assert answer.house.post(WORKER, body)["offset"] == 1


def test_something_else_at_a_place_before_the_end_has_diverged(answer: Answer) -> None:
    opened = answer.written("a", "b")
    refused = answer.append(opened, 0, "x")
    assert (refused["code"], refused["reason"], refused["retryable"]) == ("conflict", "diverged", False)
    assert answer.resumed()["ops"] == [["text", 0, "ab"]]


def test_a_place_beyond_the_end_is_a_gap_that_names_the_end(answer: Answer) -> None:
    opened = answer.written("a", "b")
    gap = answer.append(opened, 5, "x")
    assert (gap["code"], gap["detail"], gap["retryable"]) == ("gap", {"expected": 2}, False)


def test_unknown_streams_and_epochs_above_the_known_are_not_found(answer: Answer) -> None:
    nothing = answer.append({"stream": answer.stream, "epoch": 1}, 0, "a")
    assert nothing["code"] == "not_found"
    opened = answer.written("a")
    assert answer.append(opened | {"epoch": opened["epoch"] + 1}, 0, "a") == nothing
    assert answer.close(opened | {"epoch": opened["epoch"] + 1}, 1) == nothing
    assert answer.append(opened | {"epoch": opened["epoch"] - 1}, 0, "a")["code"] == "fenced"
    assert answer.close(opened | {"epoch": opened["epoch"] - 1}, 1)["code"] == "fenced"


def test_a_stream_is_written_by_its_opener_alone(answer: Answer) -> None:
    nothing = answer.append({"stream": answer.stream, "epoch": 1}, 0, "a")
    opened = answer.written("a")
    tenant = Device(connection="umbrella=", user=WORKER.user, tenant="umbrella", scope="produce")
    for other in (OTHER_WORKER, tenant):
        assert answer.append(opened, 1, "b", by=other) == nothing
        assert answer.append(opened, 0, "a", by=other) == nothing
        assert answer.close(opened, 1, by=other) == nothing
    same_principal = Device(connection="elsewhere=", user=WORKER.user, scope="produce")
    assert answer.append(opened, 1, "b", by=same_principal)["offset"] == 2


def test_a_sealed_stream_takes_nothing_more(answer: Answer) -> None:
    opened = answer.written("a")
    message = answer.close(opened, 1)["message"]
    for offset, text in ((1, "b"), (0, "a"), (0, "x"), (7, "x")):
        closed = answer.append(opened, offset, text)
        assert (closed["code"], closed["detail"], closed["retryable"]) == ("closed", {"settled": message}, False)
    answer.house.clock.ms += SETTLED_STATE_MS
    assert answer.append(opened, 1, "b")["code"] == "not_found", "its state is gone"


@pytest.mark.parametrize(
    "ops",
    [
        None,
        "text",
        {},
        [["text", 0]],
        [["text", -1, "a"]],
        [["text", 1_000, "a"]],
        [["text", 0, 1]],
        [["text", "0", "a"]],
        [["part", 0, "a"]],
        [["set", 0, []]],
        [["meta", "a"]],
        [["unknown", 0]],
        [[]],
        ["text"],
    ],
)
def test_ops_that_are_none_are_a_bad_request_and_leave_nothing(answer: Answer, ops: object) -> None:
    opened = answer.open()
    refused = answer.house.say(
        WORKER, "stream.append", conversation=answer.conversation, ops=ops, **answer.place(opened, 0)
    )
    assert refused["code"] == "bad_request"
    assert answer.resumed()["offset"] == 0


def test_ops_are_bounded_in_bytes(answer: Answer) -> None:
    opened = answer.open()
    room = OPS_BYTES_MAX - len(b'[["text",0,""]]')
    fits = "界" * (room // 3) + "x" * (room % 3)
    assert answer.append(opened, 0, fits + "x")["code"] == "too_large"
    answer.house.ok(LAPTOP, "conversation.subscribe", conversation=answer.conversation)
    assert answer.append(opened, 0, fits)["offset"] == 1
    assert answer.house.frames(LAPTOP)[0]["ops"] == [["text", 0, fits]]


@pytest.mark.parametrize("kind", ["part", "set"])
def test_names_of_fields_are_bounded_as_in_a_body_that_may_have_to_say_them_again(answer: Answer, kind: str) -> None:
    opened = answer.open()
    fits = "n" * (FIELD_NAME_BYTES_MAX - 2)
    said = {"conversation": answer.conversation, **answer.place(opened, 0)}
    assert answer.house.say(WORKER, "stream.append", ops=[[kind, 0, {fits + "n": 1}]], **said)["code"] == "too_large"
    assert answer.resumed()["offset"] == 0
    assert answer.house.ok(WORKER, "stream.append", ops=[[kind, 0, {fits: 1}]], **said)["offset"] == 1


# --- close ----------------------------------------------------------------------------------------------------


def test_what_was_closed_is_the_message_that_stands(answer: Answer) -> None:
    answer.house.ok(LAPTOP, "conversation.subscribe", conversation=answer.conversation)
    opened = answer.written("Grüße, ", "界", model="m-1", metadata={"a": 1.0})
    fields: dict[str, Any] = {
        "usage": {"output_tokens": 7, "cost": 1e-7},
        "error": {"code": "overloaded"},
        "status": "failed",
    }
    message = answer.close(opened, 2, **fields)["message"]
    assert message == fields | {
        "id": answer.stream,
        "conversation": answer.conversation,
        "parent": answer.question,
        "role": "assistant",
        "parts": [text_part("Grüße, 界")],
        "created_at": "2027-01-15T08:00:00.003Z",
        "metadata": {"a": 1.0},
        "model": "m-1",
        "tokens": {"count": 7},
    }
    assert answer.house.ok(LAPTOP, "message.list", conversation=answer.conversation)["messages"][0] == message
    assert answer.house.frames(LAPTOP)[-1] == {
        "type": "message.created",
        "conversation": answer.conversation,
        "message": message,
    }


@pytest.mark.parametrize("status", ["complete", "stopped", "failed", "interrupted"])
def test_a_stream_ends_in_the_status_it_is_given(answer: Answer, status: str) -> None:
    assert answer.close(answer.open(), 0, status=status)["message"]["status"] == status


def test_a_close_repeated_is_ok_with_the_same_message_and_stores_nothing_again(answer: Answer) -> None:
    opened = answer.written("a")
    first = answer.close(opened, 1)
    assert answer.close(opened, 1) == first
    assert answer.close(opened, 1, status="failed") == first, "its own seal stands"


def test_a_close_at_another_place_than_the_end_is_judged_as_an_append(answer: Answer) -> None:
    opened = answer.written("a", "b")
    refused = answer.close(opened, 1)
    assert (refused["code"], refused["reason"]) == ("conflict", "diverged")
    gap = answer.close(opened, 3)
    assert (gap["code"], gap["detail"]) == ("gap", {"expected": 2})
    assert answer.append(opened, 2, "c")["offset"] == 3, "a refused close seals nothing"


def test_another_close_than_the_one_that_sealed_is_closed_with_the_message(answer: Answer) -> None:
    opened = answer.written("a", "b")
    message = answer.close(opened, 2)["message"]
    for offset in (0, 1, 3):
        closed = answer.close(opened, offset)
        assert (closed["code"], closed["detail"]) == ("closed", {"settled": message})


def test_if_another_message_stands_there_every_close_is_closed_with_it(answer: Answer) -> None:
    opened = answer.written("mine")
    answer.store_another()
    answer.house.ok(LAPTOP, "conversation.subscribe", conversation=answer.conversation)
    for _ in range(2):
        closed = answer.close(opened, 1)
        assert closed["code"] == "closed"
        assert closed["detail"]["settled"]["parts"] == [text_part("another")]
    assert answer.house.frames(LAPTOP)[0]["message"]["parts"] == [text_part("another")]


def test_a_close_that_could_not_store_is_completed_by_its_repetition(answer: Answer) -> None:
    answer.house.ok(LAPTOP, "conversation.subscribe", conversation=answer.conversation)
    opened = answer.written("a")
    answer.house.warm.unavailable = True
    refused = answer.close(opened, 1)
    assert (refused["code"], refused["retryable"]) == ("unavailable", True)
    answer.house.warm.unavailable = False
    assert answer.append(opened, 1, "b")["code"] == "closed", "the seal stays"
    message = answer.close(opened, 1)["message"]
    assert message["parts"] == [text_part("a")]
    assert [frame["type"] for frame in answer.house.frames(LAPTOP)][-1] == "message.created"


def test_a_viewer_who_is_gone_is_forgotten(answer: Answer) -> None:
    answer.house.ok(LAPTOP, "conversation.subscribe", conversation=answer.conversation)
    opened = answer.open()
    answer.house.push.gone.add(LAPTOP.connection)
    answer.append(opened, 0, "a")
    answer.house.push.gone.clear()
    answer.append(opened, 1, "b")
    assert [frame["type"] for frame in answer.house.frames(LAPTOP)] == ["stream.opened"]


def test_a_viewer_whom_a_frame_did_not_reach_gets_nothing_more_until_it_resumes(answer: Answer) -> None:
    house = answer.house
    house.ok(LAPTOP, "conversation.subscribe", conversation=answer.conversation)
    opened = answer.open()
    house.push.unserved.add(LAPTOP.connection)
    answer.append(opened, 0, "a")
    house.push.unserved.clear()
    answer.append(opened, 1, "b")
    lag = {"type": "stream.lag", "conversation": answer.conversation, "stream": answer.stream}
    assert house.frames(LAPTOP)[1:] == [lag], "told once, and then nothing"
    place = {"stream": answer.stream, "epoch": opened["epoch"], "offset": 0}
    page = house.ok(LAPTOP, "stream.resume", conversation=answer.conversation, **place)
    assert (page["ops"], page["offset"]) == ([["text", 0, "ab"]], 2)
    answer.append(opened, 2, "c")
    assert house.frames(LAPTOP)[-1]["at"] == page["offset"]


# --- close by body --------------------------------------------------------------------------------------------


def body(answer: Answer, *texts: str) -> dict[str, Any]:
    """The whole answer, as a close says it."""
    return {"body": [text_part(text) for text in texts], "parent": answer.question, "role": "assistant"}


def test_where_the_hot_tier_has_lost_the_stream_the_body_is_the_answer(answer: Answer) -> None:
    opened = answer.written("a", "b", model="m-1", metadata={"a": 1})
    answer.house.lose_hot()
    answer.house.ok(LAPTOP, "conversation.subscribe", conversation=answer.conversation)
    assert answer.close(opened, 2)["code"] == "not_found"
    said = body(answer, "ab") | {"model": "m-1", "metadata": {"a": 1}, "usage": {"completion_tokens": 2}}
    message = answer.close(opened, 2, **said)["message"]
    assert message == {
        "id": answer.stream,
        "conversation": answer.conversation,
        "parent": answer.question,
        "role": "assistant",
        "status": "complete",
        "parts": [text_part("ab")],
        "created_at": "2027-01-15T08:00:00.003Z",
        "metadata": {"a": 1},
        "model": "m-1",
        "usage": {"completion_tokens": 2},
        "tokens": {"count": 2},
    }
    assert [frame["message"] for frame in answer.house.frames(LAPTOP)] == [message]
    assert answer.close(opened, 2, **said)["message"] == message, "repeated, it is ok again"
    assert answer.open()["detail"] == {"settled": message}


def test_where_the_hot_tier_is_away_the_body_is_the_answer_and_stays_it_when_it_is_back(answer: Answer) -> None:
    opened = answer.written("a", "b")
    answer.house.hot.unavailable = True
    assert answer.close(opened, 2)["code"] == "unavailable"
    message = answer.close(opened, 2, **body(answer, "ab"))["message"]
    answer.house.hot.unavailable = False
    assert answer.close(opened, 2)["message"] == message
    assert answer.house.ok(LAPTOP, "message.list", conversation=answer.conversation)["messages"][0] == message


def test_the_body_of_a_stream_that_the_hot_tier_knows_counts_for_nothing(answer: Answer) -> None:
    opened = answer.written("a", "b")
    message = answer.close(opened, 2, **body(answer, "something else"))["message"]
    assert message["parts"] == [text_part("ab")]


def test_the_body_of_another_principal_or_epoch_counts_for_nothing_either(answer: Answer) -> None:
    opened = answer.written("a")
    later = opened | {"epoch": opened["epoch"] + 1}
    assert answer.close(opened, 1, by=OTHER_WORKER, **body(answer, "forged"))["code"] == "not_found"
    assert answer.close(later, 1, **body(answer, "forged"))["code"] == "not_found"
    assert answer.append(opened, 1, "b")["offset"] == 2, "the stream lives on"
    assert answer.close(opened, 2)["message"]["parts"] == [text_part("ab")]


def test_if_another_message_stands_there_a_body_is_closed_with_it(answer: Answer) -> None:
    opened = answer.written("mine")
    answer.store_another()
    answer.house.lose_hot()
    closed = answer.close(opened, 1, **body(answer, "mine"))
    assert (closed["code"], closed["detail"]["settled"]["parts"]) == ("closed", [text_part("another")])


@pytest.mark.parametrize("missing", ["parent", "role"])
def test_a_body_says_again_what_the_opening_said(answer: Answer, missing: str) -> None:
    opened = answer.written("a")
    answer.house.lose_hot()
    said = {name: value for name, value in body(answer, "a").items() if name != missing}
    assert answer.close(opened, 1, **said)["code"] == "bad_request"
    assert answer.close(opened, 1, **body(answer, "a"))["type"] == "stream.close.ok"


def test_a_body_is_held_to_ids_bounds_and_owners_as_the_opening_was(answer: Answer) -> None:
    answer.house.lose_hot()
    place = {"stream": answer.stream, "epoch": 7}
    said = body(answer, "a")
    later = answer.house.new_id()
    assert answer.close(place, 0, **said | {"parent": later})["code"] == "bad_request"
    far = {"stream": "ffffffff-ffff-7fff-bfff-ffffffffffff", "epoch": 7}
    assert answer.close(far, 0, **said)["code"] == "bad_request"
    assert answer.close(place, 0, **said, metadata={"a": "x" * 16_384})["code"] == "too_large"
    foreign = Device(connection="umbrella=", user=WORKER.user, tenant="umbrella", scope="produce")
    assert answer.close(place, 0, by=foreign, **said)["code"] == "not_found"
    assert answer.close(place, 0, **said)["message"]["parts"] == [text_part("a")]


def test_a_body_under_a_parent_that_is_not_here_may_be_tried_again(answer: Answer) -> None:
    elsewhere = answer.house.message(answer.house.conversation())
    stream = {"stream": answer.house.new_id(), "epoch": 7}
    refused = answer.close(stream, 0, **body(answer, "a") | {"parent": elsewhere})
    assert (refused["code"], refused["reason"], refused["retryable"]) == ("conflict", "parent_missing", True)


def test_an_answer_that_outgrows_its_bound_ends_there_and_keeps_what_it_has(answer: Answer) -> None:
    house = answer.house
    house.replace(hot=HotMemory(house.clock, region=REGION, limits=Limits(stream_bytes_max=40)))
    opened = answer.open()
    assert answer.append(opened, 0, "kept")["offset"] == 1
    refused = answer.append(opened, 1, "x" * 40)
    stored = house.ok(PHONE, "message.list", conversation=answer.conversation, leaf="all")["messages"][0]
    assert (refused["code"], refused["detail"]["settled"]) == ("closed", stored)
    assert (stored["status"], stored["error"]["code"]) == ("failed", "too_large")
    assert stored["parts"] == [text_part("kept")]
