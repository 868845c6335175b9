"""Our own form holds everything, as it is stored."""

from __future__ import annotations

import json

import pytest
from msgspec import UNSET, Raw, structs

from tests.support.conversations import ROUNDTRIP_VALUES, awkward_object, conversation, message
from tests.unit.threadkeep.exporting.conversations import FORMS, Story, as_json, damaged, written
from threadkeep.domain.json_values import encode
from threadkeep.domain.model import ConversationKey
from threadkeep.exporting import Form

JSONL = FORMS["jsonl"]


def lines(content: bytes) -> list[bytes]:
    assert content.endswith(b"\n")
    return content[:-1].split(b"\n")


def in_one_line(text: bytes) -> bytes:
    return text.replace(b"\n", b" ")


def test_a_line_is_the_protocols_object_and_its_type() -> None:
    story = Story()
    head, *rest = lines(written(JSONL, story.head, story.messages))
    assert head == b'{"type":"conversation",' + in_one_line(encode(story.head)[1:])
    assert rest == [b'{"type":"message",' + in_one_line(encode(one)[1:]) for one in story.messages]


def test_what_is_read_from_it_equals_what_is_stored() -> None:
    story = Story()
    read = [
        json.loads(line, parse_float=str, parse_int=str) for line in lines(written(JSONL, story.head, story.messages))
    ]
    assert [one.pop("type") for one in read] == ["conversation"] + ["message"] * len(story.messages)
    assert read == [as_json(story.head), *map(as_json, story.messages)]


@pytest.mark.parametrize("name", json.loads(ROUNDTRIP_VALUES.read_bytes()))
def test_every_awkward_value_stands_byte_for_byte(name: str) -> None:
    value = awkward_object()[name]
    head = conversation()
    one = message(ConversationKey("acme", head.id), ({"type": Raw(b'"data"'), name: value},), metadata={name: value})
    _, line = lines(written(JSONL, head, [one]))
    assert line.count(encode(name) + b":" + in_one_line(bytes(value))) == 2


def test_a_value_spread_over_lines_stands_in_one() -> None:
    head = conversation(metadata={"spread": Raw(b'[1,\r\n  2.50,\n"a\\nb"]')})
    (line,) = lines(written(JSONL, head, []))
    assert json.loads(line)["metadata"] == {"spread": [1, 2.5, "a\nb"]}
    assert b"2.50" in line


def test_what_could_not_be_read_is_told_behind_the_messages() -> None:
    story = Story()
    lost = damaged(story.second, story.tool)
    read = [json.loads(line) for line in lines(written(JSONL, story.head, [story.question, lost, story.last]))]
    assert [one["type"] for one in read] == ["conversation", "message", "message", "damaged"]
    assert read[-1] == {
        "type": "damaged",
        "conversation": story.head.id,
        "first": story.second.id,
        "last": story.tool.id,
        "count": 2,
    }


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_no_form_writes_a_message_that_comes_without_its_parts(form: Form) -> None:
    story = Story()
    bare = structs.replace(story.first, parts=UNSET, bytes=7)
    with pytest.raises(ValueError, match="with its parts"):
        written(form, story.head, [bare])


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_piece_is_no_larger_than_what_it_is_about(form: Form) -> None:
    """Pieces are passed on one by one: a writer that gathered them would hold the conversation."""
    story = Story()
    pieces = list(form.conversation(story.head, iter(story.messages), is_first=True))
    assert len(pieces) > len(story.messages)
