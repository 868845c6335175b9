"""ChatGPT's form: what its readers ask for stands where they look, and the rest beside it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from tests.support.conversations import NOW_MS, conversation, message
from tests.unit.threadkeep.exporting.conversations import FORMS, TITLE, Story, as_json, damaged, parts, written
from threadkeep.domain import times
from threadkeep.domain.json_values import encode
from threadkeep.domain.model import Conversation, ConversationKey, Message
from threadkeep.exporting import Entry

CHATGPT = FORMS["chatgpt"]


def read(head: Conversation, entries: list[Entry]) -> Any:
    """The one conversation of a file, numbers as they were written."""
    (one,) = json.loads(written(CHATGPT, head, entries), parse_float=str, parse_int=str)
    return one


def restored(node: dict[str, Any]) -> Any:
    """A message again, as docs/protocol.md, section 7, says."""
    said = node["message"]
    own = said["metadata"]["threadkeep"]
    return {"parts": [{"type": "text", "text": text} for text in said["content"]["parts"]]} | own


def test_a_conversation_says_title_times_and_where_it_was_left() -> None:
    story = Story()
    one = read(story.head, [*story.messages])
    assert (one["id"], one["conversation_id"], one["title"]) == (story.head.id, story.head.id, TITLE)
    assert one["create_time"] == f"{NOW_MS // 1_000}.{NOW_MS % 1_000:03d}"
    assert one["current_node"] == story.last.id
    assert one["update_time"] == one["mapping"][story.last.id]["message"]["create_time"]
    assert one["metadata"] == {"threadkeep": as_json(story.head)}


def left_at(story: Story, current: Message, newest: Message) -> Conversation:
    """The head, as an import notes where its reader left it."""
    return msgspec.structs.replace(
        story.head,
        metadata={"current_node": Raw(encode(current.id)), "newest_imported": Raw(encode(newest.id))},
    )


def test_an_imported_conversation_was_left_where_its_import_says() -> None:
    story = Story()
    one = read(left_at(story, story.first, story.last), [*story.messages])
    assert one["current_node"] == story.first.id
    assert one["update_time"] == one["mapping"][story.last.id]["message"]["create_time"]


def test_once_it_has_gone_on_it_was_left_at_its_newest_message() -> None:
    story = Story()
    head = left_at(story, story.first, story.tool)
    assert read(head, [*story.messages])["current_node"] == story.last.id
    unreadable = read(head, [*story.messages[:-1], damaged(story.last, story.last)])
    assert unreadable["current_node"] == story.tool.id, "what cannot be read is newer all the same"


def test_a_place_that_is_not_in_the_file_is_none_to_begin_at() -> None:
    story = Story()
    head = left_at(story, story.first, story.last)
    entries: list[Entry] = [one for one in story.messages if one is not story.first]
    assert read(head, entries)["current_node"] == story.last.id


def test_nodes_name_their_parents_and_their_children_in_order() -> None:
    story = Story()
    mapping = read(story.head, [*story.messages])["mapping"]
    assert {name: (node["id"], node["parent"]) for name, node in mapping.items()} == {
        one.id: (one.id, one.parent) for one in story.messages
    }
    children = {one.id: [below.id for below in story.messages if below.parent == one.id] for one in story.messages}
    assert {name: node["children"] for name, node in mapping.items()} == children
    assert children[story.question.id] == [story.first.id, story.second.id]


def test_a_message_says_who_when_and_what() -> None:
    story = Story()
    mapping = read(story.head, [*story.messages])["mapping"]
    first, second = mapping[story.first.id]["message"], mapping[story.second.id]["message"]
    assert (first["id"], first["author"], first["status"]) == (
        story.first.id,
        {"role": "assistant"},
        "finished_successfully",
    )
    assert first["create_time"] == f"{(NOW_MS + 2) // 1_000}.{(NOW_MS + 2) % 1_000:03d}"
    assert times.from_rfc3339(story.first.created_at) == NOW_MS + 2
    assert first["content"] == {"content_type": "text", "parts": ["Osaka"]}
    assert first["metadata"]["model_slug"] == "model-1"
    assert second["status"] == "finished_partial_completion"
    assert second["content"]["parts"] == []


def test_every_message_comes_back_whole() -> None:
    story = Story()
    mapping = read(story.head, [*story.messages])["mapping"]
    assert [restored(mapping[one.id]) for one in story.messages] == [as_json(one) for one in story.messages]


@pytest.mark.parametrize(
    ("role", "said", "stands_twice"),
    [
        ("user", [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], False),
        ("user", [], False),
        ("user", [{"type": "text", "text": ""}], True),
        ("user", [{"type": "text", "text": "a", "lang": "de"}], True),
        ("user", [{"type": "text", "text": 7}], True),
        ("user", [{"type": "text"}], True),
        ("user", [{"text": "a"}], True),
        ("tool", [{"type": "text", "text": "a"}], True),
    ],
)
def test_parts_stand_beside_wherever_texts_do_not_say_them(
    role: str, said: list[dict[str, Any]], *, stands_twice: bool
) -> None:
    head = conversation()
    one = message(ConversationKey("acme", head.id), parts(*said), role=role)
    node = read(head, [one])["mapping"][one.id]
    assert ("parts" in node["message"]["metadata"]["threadkeep"]) is stands_twice
    assert restored(node) == as_json(one)


def test_what_could_not_be_read_leaves_a_whole_tree_and_is_told() -> None:
    story = Story()
    one = read(story.head, [story.question, damaged(story.second, story.tool), story.last])
    assert one["metadata"]["damaged"] == [{"first": story.second.id, "last": story.tool.id, "count": "2"}]
    lost = one["mapping"][story.tool.id]
    assert lost == {"id": story.tool.id, "parent": None, "children": [story.last.id], "message": None}
    assert one["mapping"][story.last.id]["parent"] == story.tool.id


def test_conversations_stand_in_one_array_also_none_and_empty_ones() -> None:
    assert json.loads(CHATGPT.start() + CHATGPT.end()) == []
    heads = [conversation(), conversation(title="x")]
    body = b"".join(
        piece for number, head in enumerate(heads) for piece in CHATGPT.conversation(head, [], is_first=number == 0)
    )
    found = json.loads(CHATGPT.start() + body + CHATGPT.end())
    assert [(one["id"], one["mapping"], one["current_node"]) for one in found] == [
        (head.id, {}, None) for head in heads
    ]


def test_it_holds_the_ids_of_those_alone_whose_parents_are_to_come() -> None:
    """A long line: when a message is written, that of its child is all that is held."""
    head = conversation()
    key = ConversationKey("acme", head.id)
    above: Message | None = None
    story: list[Message] = []
    for number in range(50):
        above = message(key, now_ms=NOW_MS + number, parent=None if above is None else above.id)
        story.append(above)
    writer = CHATGPT.conversation(head, reversed(story), is_first=True)
    next(writer)
    held = [len(writer.gi_frame.f_locals["children"]) for _ in story if next(writer)]  # type: ignore[attr-defined]
    assert max(held) <= 1
