"""Stopping: who reads ends who writes, at any moment; what was said by then stays."""

from __future__ import annotations

import json

import pytest

from tests.support.house import LAPTOP, PHONE, Answer, Frame, House, text_part
from threadkeep.domain.bounds import LIVE_STREAMS_MAX, METADATA_BYTES_MAX, SETTLED_STATE_MS


@pytest.fixture
def answer(house: House) -> Answer:
    return Answer(house)


def stop(answer: Answer, **fields: str) -> list[Frame]:
    """Stop that stream, or all; the messages that the reply tells."""
    messages: list[Frame] = answer.house.ok(PHONE, "stream.cancel", conversation=answer.conversation, **fields)[
        "messages"
    ]
    return messages


def test_a_stopped_answer_is_kept_with_what_it_had_and_takes_nothing_more(answer: Answer) -> None:
    answer.house.ok(LAPTOP, "conversation.subscribe", conversation=answer.conversation)
    opened = answer.written("so far")
    [message] = stop(answer, stream=answer.stream)
    assert (message["status"], message["parts"]) == ("stopped", [text_part("so far")])
    assert answer.house.frames(LAPTOP)[-1]["message"] == message
    for late in (answer.append(opened, 1, " and on"), answer.close(opened, 1)):
        assert (late["code"], late["detail"]) == ("closed", {"settled": message})
    assert stop(answer, stream=answer.stream) == [message]


def test_a_stop_waits_for_an_answer_that_is_not_opened_yet(answer: Answer) -> None:
    assert stop(answer, stream=answer.stream) == []
    assert answer.open()["code"] == "closed"
    answer.house.clock.ms += SETTLED_STATE_MS
    assert answer.open()["type"] == "stream.open.ok"


def test_without_a_name_all_that_live_are_stopped(answer: Answer) -> None:
    answer.written("one")
    second = answer.house.stream(answer.conversation, answer.question, fork=True)["stream"]
    assert [message["id"] for message in stop(answer)] == [answer.stream, second]
    assert stop(answer) == []


@pytest.mark.parametrize("metadata_bytes", [4 * 1024, METADATA_BYTES_MAX])
def test_of_all_that_are_stopped_a_reply_tells_as_many_as_fit_it(answer: Answer, metadata_bytes: int) -> None:
    large = {"a": "x" * (metadata_bytes - len(b'{"a":""}'))}
    streams = [
        answer.house.stream(answer.conversation, answer.question, fork=True, metadata=large)["stream"]
        for _ in range(LIVE_STREAMS_MAX)
    ]
    request = {"action": "stream.cancel", "ref": "\1" * 256, "conversation": answer.conversation}
    told = [message["id"] for message in answer.house.post(PHONE, json.dumps(request))["messages"]]
    assert told == streams[: len(told)]
    assert told == streams or metadata_bytes == METADATA_BYTES_MAX
    kept = answer.house.ok(PHONE, "message.list", conversation=answer.conversation, leaf=streams[-1], limit=1)
    assert kept["messages"][0]["status"] == "stopped"
