"""Reading a stream or a settled message from any place, page by page."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from tests.support.house import LAPTOP, PHONE, WORKER, Answer, Frame, House, text_part
from threadkeep.domain import ops
from threadkeep.domain.bounds import LEASE_MS, OPS_BYTES_MAX, PIECE_BYTES_MAX, SEAL_OLD_MS
from threadkeep.domain.json_values import encode


@pytest.fixture
def answer(house: House) -> Answer:
    return Answer(house)


def read(house: House, conversation: str, stream: str, epoch: int = 0, offset: int = 0) -> tuple[list[Frame], Any]:
    """All pages from a place on, and the parts that their ops add up to."""
    pages: list[Frame] = []
    assembly = ops.Assembly()
    while not pages or pages[-1]["more"]:
        page = house.ok(LAPTOP, "stream.resume", conversation=conversation, stream=stream, epoch=epoch, offset=offset)
        if pages:
            assert (page["epoch"], page["at"]) == (epoch, offset), "a page begins where the one before it ended"
        assert page["offset"] > page["at"] or not page["more"]
        epoch, offset = page["epoch"], page["offset"]
        assembly.apply(msgspec.json.decode(encode(page["ops"]), type=list[ops.PieceOp]))
        pages.append(page)
        assert len(pages) < 100, "the pages come to an end"
    if "parts" in pages[-1].get("message", {}):
        return pages, pages[-1]["message"]["parts"]
    return pages, json.loads(encode(assembly.parts()))


# --- live -----------------------------------------------------------------------------------------------------


def test_a_live_stream_is_read_from_the_start_with_its_texts_joined(answer: Answer) -> None:
    opened = answer.written("a", "b", "c")
    page = answer.resumed()
    fields = {"epoch": opened["epoch"], "at": 0, "ops": [["text", 0, "abc"]], "offset": 3, "more": False}
    assert page == {"type": "stream.resume.ok", "ref": "r", "state": "live"} | fields


def test_every_offset_is_a_place_to_resume(answer: Answer) -> None:
    opened = answer.written("a", "b", "c")
    for at, rest in enumerate(("abc", "bc", "c")):
        page = answer.resumed(opened["epoch"], at)
        assert (page["at"], page["ops"], page["offset"]) == (at, [["text", 0, rest]], 3)
    page = answer.resumed(opened["epoch"], 3)
    assert (page["at"], page["ops"], page["offset"], page["more"]) == (3, [], 3, False)


def test_a_seal_left_behind_is_finished_by_whoever_reads_it(answer: Answer) -> None:
    """The close that sealed it died before the put, and nobody repeats it."""
    house = answer.house
    opened = answer.written("a")
    house.warm.unavailable = True
    assert answer.close(opened, 1)["code"] == "unavailable"
    house.warm.unavailable = False
    house.clock.ms += SEAL_OLD_MS - 1
    assert answer.resumed()["state"] == "live", "whoever sealed it may be about to put it"
    house.clock.ms += 1
    page = answer.resumed()
    assert (page["state"], page["message"]["status"]) == ("settled", "complete")
    assert page["message"]["parts"] == [text_part("a")]


def test_a_dead_stream_is_ended_by_whoever_reads_it(answer: Answer) -> None:
    answer.written("a")
    answer.house.clock.ms += LEASE_MS
    page = answer.resumed()
    assert (page["state"], page["message"]["status"]) == ("settled", "interrupted")
    assert page["message"]["parts"] == [text_part("a")]


def test_a_place_of_another_epoch_or_beyond_the_end_starts_anew(answer: Answer) -> None:
    opened = answer.written("a", "b")
    for epoch, offset in ((opened["epoch"] - 1, 1), (opened["epoch"] + 1, 1), (opened["epoch"], 3)):
        page = answer.resumed(epoch, offset)
        assert (page["epoch"], page["at"], page["ops"]) == (opened["epoch"], 0, [["text", 0, "ab"]])


def test_a_long_live_stream_comes_in_pages_and_live_deltas_go_on_from_there(answer: Answer) -> None:
    text = "界" * 5_000
    opened = answer.written(*[text] * 5)
    answer.house.ok(LAPTOP, "conversation.subscribe", conversation=answer.conversation)
    pages, parts = read(answer.house, answer.conversation, answer.stream)
    assert len(pages) == 5
    assert {page["state"] for page in pages} == {"live"}
    assert parts == [text_part(text * 5)]
    answer.append(opened, 5, "on")
    assert [frame["at"] for frame in answer.house.frames(LAPTOP)] == [pages[-1]["offset"]]


# --- settled --------------------------------------------------------------------------------------------------


def test_a_settled_message_that_fits_comes_whole(answer: Answer) -> None:
    opened = answer.written("a", "b")
    message = answer.close(opened, 2)["message"]
    page = answer.resumed(opened["epoch"], 1)
    assert page == {
        "type": "stream.resume.ok",
        "ref": "r",
        "state": "settled",
        "epoch": opened["epoch"] + 1,
        "at": page["at"],
        "ops": [],
        "offset": page["at"],
        "more": False,
        "message": message,
    }


def test_a_message_that_was_no_stream_is_read_in_epoch_1(house: House) -> None:
    conversation = house.conversation()
    message = house.message(conversation)
    page = house.ok(PHONE, "stream.resume", conversation=conversation, stream=message, epoch=0, offset=0)
    assert (page["epoch"], page["state"], page["message"]["id"]) == (1, "settled", message)


def large_answer(answer: Answer, **opening: Any) -> tuple[Frame, list[dict[str, Any]]]:
    """A settled answer of many kinds, much larger than a frame; what its closing said, and its parts."""
    opened = answer.open(**opening)
    parts: list[dict[str, Any]] = [
        {"type": "reasoning", "text": "界" * 15_000},
        {
            "type": "tool_call",
            "call_id": "c",
            "name": "f",
            "arguments": '{"x":"' + "\0" * 9_000 + '"}',
            "state": "done",
        },
        {"type": "tool_result", "call_id": "c", "output": "😀" * 7_000},
        {"type": "vendor", "data": list(range(2_500))},
        text_part("end"),
    ]
    offset = 0

    def append(*batch: Any) -> None:
        nonlocal offset
        answer.house.ok(
            WORKER, "stream.append", conversation=answer.conversation, ops=batch, **answer.place(opened, offset)
        )
        offset += 1

    for index, part in enumerate(parts):
        field = {"tool_call": "arguments", "tool_result": "output"}.get(part["type"], "text")
        append(["part", index, part | {field: ""} if field in part else part])
        for cut in ops.cut_text(part.get(field, ""), OPS_BYTES_MAX // 2):
            append(["text", index, cut])
    message = answer.close(opened, offset)["message"]
    assert "parts" not in message
    assert message["bytes"] == len(encode(parts))
    return message | {"epoch": opened["epoch"] + 1}, parts


@pytest.mark.parametrize("metadata_bytes", [0, 3_000, 12_000, 16_000])
def test_a_settled_message_larger_than_a_frame_folds_back_to_its_parts_page_by_page(
    answer: Answer, metadata_bytes: int
) -> None:
    message, parts = large_answer(answer, metadata={"a": "x" * metadata_bytes})
    epoch = message.pop("epoch")
    pages, read_parts = read(answer.house, answer.conversation, answer.stream)
    assert read_parts == parts
    assert {(page["state"], page["epoch"]) for page in pages} == {("settled", epoch)}
    assert max(len(encode(page["ops"])) for page in pages) <= PIECE_BYTES_MAX
    assert pages[-1]["message"] == message
    assert all(page.get("message", message) == message for page in pages)


def test_its_pages_are_always_cut_alike_and_resumed_at_any(answer: Answer) -> None:
    message, _ = large_answer(answer)
    pages, _ = read(answer.house, answer.conversation, answer.stream)
    for number, page in enumerate(pages):
        assert answer.resumed(message["epoch"], number) == page
    end = answer.resumed(message["epoch"], len(pages))
    assert (end["at"], end["ops"], end["offset"], end["more"]) == (len(pages), [], len(pages), False)
    assert end["message"]["id"] == answer.stream


def test_a_place_in_the_stream_is_none_in_its_settled_message(answer: Answer) -> None:
    message, _ = large_answer(answer)
    for epoch, offset in ((message["epoch"] - 1, 3), (message["epoch"] + 1, 3), (message["epoch"], 99)):
        page = answer.resumed(epoch, offset)
        assert (page["epoch"], page["at"], page["offset"]) == (message["epoch"], 0, 1)


def test_a_message_sent_larger_than_a_frame_can_be_read_again(house: House) -> None:
    conversation = house.conversation()
    parts = [text_part("界" * 7_700), {"type": "data", "n": 1}]
    message = house.ok(PHONE, "message.create", conversation=conversation, parent=None, role="user", parts=parts)
    _, read_parts = read(house, conversation, message["message"]["id"])
    assert read_parts == parts


@pytest.mark.parametrize("letters", [22_000, 22_400, 22_500, 22_600, 23_000, 24_000])
def test_a_value_sent_larger_than_a_page_can_be_read_again(house: House, letters: int) -> None:
    conversation = house.conversation()
    parts = [{"type": "data", "x": "x" * letters}]
    message = house.ok(PHONE, "message.create", conversation=conversation, parent=None, role="user", parts=parts)
    _, read_parts = read(house, conversation, message["message"]["id"])
    assert read_parts == parts


def test_the_name_of_a_field_is_bounded_where_it_is_sent(house: House) -> None:
    conversation = house.conversation()

    def send(name: str) -> Frame:
        parts = [{"type": "data", name: "x" * 20_000}]
        return house.say(
            PHONE, "message.create", conversation=conversation, parent=None, role="user", parts=parts, fork=True
        )

    assert send("\0" * 171)["code"] == "too_large"
    _, parts = read(house, conversation, send("\0" * 170)["message"]["id"])
    assert parts == [{"type": "data", "\0" * 170: "x" * 20_000}]


def test_the_name_of_a_field_is_bounded_in_a_body_too(answer: Answer) -> None:
    answer.house.lose_hot()
    place = {"stream": answer.stream, "epoch": 7}
    body: dict[str, Any] = {"parent": answer.question, "role": "assistant", "body": [{"type": "data", "x" * 1_023: 1}]}
    assert answer.close(place, 0, **body)["code"] == "too_large"


@pytest.mark.parametrize(("begun", "field"), [("text", "text"), ("tool_call", "arguments"), ("tool_result", "output")])
@pytest.mark.parametrize("kind", ["text", "tool_call", "vendor", None])
def test_a_part_that_grew_as_one_kind_and_ended_as_another_is_read_again(
    answer: Answer, begun: str, field: str, kind: str | None
) -> None:
    opened = answer.open()
    batches: list[list[Any]] = [[["part", 0, {"type": begun, "state": "done"}]]]
    batches += [[["text", 0, str(number) + "x" * 9_000]] for number in range(5)]
    batches += [[["set", 0, {"type": kind}]], [["text", 0, "y" * 9_000]]]
    for offset, batch in enumerate(batches):
        place = answer.place(opened, offset)
        answer.house.ok(WORKER, "stream.append", conversation=answer.conversation, ops=batch, **place)
    answer.close(opened, len(batches))
    (stored,) = answer.house.warm.read_messages(
        answer.house.key(answer.conversation), after=answer.question, limit=1
    ).messages
    whole = answer.house.warm.read_message(answer.house.key(answer.conversation), stored.message.id)
    assert whole is not None
    _, parts = read(answer.house, answer.conversation, answer.stream)
    assert parts == json.loads(encode(whole.message.parts))
    assert len(parts[0][field]) >= 45_000
