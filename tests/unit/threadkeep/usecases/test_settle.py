"""What is stored of a stream: its ops, folded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.house import LAPTOP, WORKER, Answer, Frame, House, text_part
from threadkeep.domain.bounds import METADATA_BYTES_MAX, OPS_BYTES_MAX


@pytest.fixture
def answer(house: House) -> Answer:
    return Answer(house)


def settled(answer: Answer, *batches: list[Any], **opening: Any) -> Frame:
    """Write those batches of ops, close, and give the message as it is then read."""
    opened = answer.open(**opening)
    for offset, ops in enumerate(batches):
        answer.house.ok(
            WORKER, "stream.append", conversation=answer.conversation, ops=ops, **answer.place(opened, offset)
        )
    message: Frame = answer.close(opened, len(batches))["message"]
    assert answer.house.ok(LAPTOP, "message.list", conversation=answer.conversation)["messages"][0] == message
    return message


def test_pieces_of_text_join(answer: Answer) -> None:
    pieces: list[list[Any]] = [[["text", 0, piece]] for piece in ("Grü", "ße, ", "", "界", "😀\0")]
    assert settled(answer, *pieces)["parts"] == [text_part("Grüße, 界😀\0")]


def test_an_answer_without_content_has_no_parts(answer: Answer) -> None:
    assert settled(answer)["parts"] == []
    assert answer.house.ok(LAPTOP, "message.list", conversation=answer.conversation)["messages"][0]["parts"] == []


def test_beats_and_empty_texts_leave_nothing(answer: Answer) -> None:
    assert settled(answer, [], [["part", 0, text_part("")]], [["text", 1, ""]], [])["parts"] == []


def test_reasoning_tool_calls_and_text_keep_the_order_of_their_indices(answer: Answer) -> None:
    call = {"type": "tool_call", "call_id": "c1", "name": "search", "arguments": ""}
    message = settled(
        answer,
        [["part", 0, {"type": "reasoning", "text": "Let me "}], ["text", 0, "think."]],
        [["part", 2, call], ["text", 2, '{"q":'], ["text", 3, "Found: "]],
        [["text", 2, '"界"}'], ["set", 2, {"state": "done"}]],
        [["part", 4, {"type": "tool_result", "call_id": "c1", "output": "a"}], ["text", 4, "bc"], ["text", 3, "abc"]],
    )
    assert message["parts"] == [
        {"type": "reasoning", "text": "Let me think."},
        call | {"arguments": '{"q":"界"}', "state": "done"},
        text_part("Found: abc"),
        {"type": "tool_result", "call_id": "c1", "output": "abc"},
    ]


def test_a_tool_call_without_its_result_is_incomplete(answer: Answer) -> None:
    def call(call_id: str, **fields: str) -> dict[str, str]:
        return {"type": "tool_call", "call_id": call_id, "name": "f", "arguments": "{}"} | fields

    result = {"type": "tool_result", "call_id": "b", "output": ""}
    calls = [call("a", state="running"), call("b", state="running"), call("c", state="failed"), call("d")]
    message = settled(answer, [["part", index, part] for index, part in enumerate([*calls, result])])
    assert message["parts"] == [
        call("a", state="incomplete"),
        calls[1],
        calls[2],
        call("d", state="incomplete"),
        result,
    ]


def test_a_part_begun_again_takes_the_place_of_what_stood_there(answer: Answer) -> None:
    message = settled(answer, [["text", 0, "draft"]], [["part", 0, text_part("final")], ["text", 0, "."]])
    assert message["parts"] == [text_part("final.")]


def test_unknown_kinds_are_kept_as_they_are(answer: Answer) -> None:
    part = {"type": "vendor.widget", "data": {"n": [1, 1.0, None]}, "text": "a"}
    message = settled(answer, [["part", 7, part], ["text", 7, "b"]], [["set", 7, {"data": 1}]])
    assert message["parts"] == [part | {"text": "ab", "data": 1}]


def test_meta_merges_into_the_metadata_it_was_opened_with(answer: Answer) -> None:
    message = settled(answer, [["meta", {"b": 2}]], [["meta", {"a": 1.0}]], metadata={"a": 0, "c": {}})
    assert message["metadata"] == {"a": 1.0, "b": 2, "c": {}}


def test_metadata_that_grows_beyond_its_bound_is_kept_as_far_as_it_fits_field_by_field(answer: Answer) -> None:
    grown: list[list[Any]] = [[["meta", {f"f{number}": "x" * 5_000}]] for number in range(5)]
    kept = settled(answer, *grown, [["meta", {"small": 1}]], metadata={"opened": True})["metadata"]
    assert list(kept) == ["opened", "f0", "f1", "f2", "small"]
    assert len(json.dumps(kept, separators=(",", ":"))) <= METADATA_BYTES_MAX


def test_a_half_surrogate_becomes_a_replacement_character(answer: Answer) -> None:
    opened = answer.open()
    place = json.dumps(answer.place(opened, 0))[1:-1]
    body = f'{{"action":"stream.append","conversation":"{answer.conversation}",{place},"ops":[["text",0,"a\\ud83d"]]}}'
    answer.house.post(WORKER, body)
    assert answer.close(opened, 1)["message"]["parts"] == [text_part("a\ufffd")]


@pytest.mark.parametrize("field", ["usage", "error"])
def test_usage_and_error_are_bounded(answer: Answer, field: str) -> None:
    opened = answer.open()
    fits, too_large = {"a": "x" * 2_040}, {"a": "x" * 2_041}
    place: dict[str, Any] = answer.place(opened, 0) | {"conversation": answer.conversation, "status": "complete"}
    assert answer.house.say(WORKER, "stream.close", **place, **{field: too_large})["code"] == "too_large"
    assert answer.house.ok(WORKER, "stream.close", **place, **{field: fits})["message"][field] == fits


def test_the_largest_facts_a_message_may_have_fit_every_frame(answer: Answer) -> None:
    answer.house.ok(LAPTOP, "conversation.subscribe", conversation=answer.conversation)
    room = METADATA_BYTES_MAX - len(b'{"a":""}')
    opened = answer.open(metadata={"a": "x" * room}, model="\1" * 256)
    answer.append(opened, 0, "x" * (OPS_BYTES_MAX - 15))
    large = {"a": "x" * 2_040}
    message = answer.close(opened, 1, usage=large, error=large, status="interrupted")["message"]
    assert "parts" not in message
    assert message["metadata"] == {"a": "x" * room}
    assert answer.house.frames(LAPTOP)[-1]["message"] == message
    ref = "\1" * 256
    for action, fields in (
        ("stream.close", {**answer.place(opened, 1), "status": "complete"}),
        ("stream.append", {**answer.place(opened, 0), "ops": []}),
        ("stream.resume", answer.place(opened, 0)),
        ("message.list", {}),
    ):
        reply = answer.house.post(
            WORKER, json.dumps({"action": action, "ref": ref, "conversation": answer.conversation, **fields})
        )
        assert reply["ref"] == ref
        assert reply.get("code") != "internal"
