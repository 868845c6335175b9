from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.exports import DATA, Whole, read, read_one, write

CONVERSATION = "018bcfe5-6800-7000-8000-000000000001"
QUESTION = "018bcfe5-6800-7000-8000-000000000002"
ANSWER = "018bcfe5-6800-7000-8000-000000000003"
HEAD = {
    "type": "conversation",
    "id": CONVERSATION,
    "owner": "somebody",
    "title": "Rivers",
    "metadata": {"current_node": QUESTION, "newest_imported": ANSWER, "mine": [1, 1.0]},
    "retention_days": 30,
    "created_at": "2023-11-14T22:13:20.000Z",
    "active_at": "2023-11-15T22:13:20.000Z",
}
MESSAGES = [
    {
        "type": "message",
        "id": QUESTION,
        "conversation": CONVERSATION,
        "parent": None,
        "role": "user",
        "parts": [{"type": "text", "text": ""}, {"type": "odd", "x": {}}],
        "status": "complete",
        "created_at": "2023-11-14T22:13:20.000Z",
        "metadata": json.loads((DATA / "roundtrip-values.json").read_text()),
        "tokens": {"count": 1, "estimated": True},
        "reply": ANSWER,
    },
    {
        "type": "message",
        "id": ANSWER,
        "conversation": CONVERSATION,
        "parent": QUESTION,
        "role": "assistant",
        "parts": [{"type": "text", "text": "the Nile"}],
        "status": "failed",
        "metadata": {},
        "model": "m",
        "usage": {"output_tokens": 3},
        "error": {"code": "x"},
        "tokens": {"count": 3},
    },
]


def lines(tmp_path: Path, *values: Any) -> Path:
    path = tmp_path / "own.jsonl"
    path.write_text("\n".join(json.dumps(value, ensure_ascii=False) for value in values) + "\n")
    return path


def test_everything_is_as_it_was(tmp_path: Path) -> None:
    built = read_one(lines(tmp_path, HEAD, *MESSAGES), CONVERSATION)
    assert (built.id, built.title, built.retention_days) == (CONVERSATION, "Rivers", 30)
    assert built.metadata == HEAD["metadata"]
    for one, told in zip(built.messages, MESSAGES, strict=True):
        for name in ("id", "parent", "role", "parts", "status", "metadata", "model", "usage", "error", "reply"):
            assert getattr(one, name) == told.get(name), name
    assert repr(built.messages[0].metadata) == repr(MESSAGES[0]["metadata"]), "numbers keep their kinds"
    assert built.notes == {}


def test_a_conversation_without_messages_is_one_all_the_same(tmp_path: Path) -> None:
    assert read_one(lines(tmp_path, HEAD), CONVERSATION).messages == []


def test_with_new_ids_the_tree_the_order_and_what_names_them_stay(tmp_path: Path) -> None:
    path = lines(tmp_path, HEAD, *MESSAGES)
    built = read_one(path, CONVERSATION, salt="1")
    again = read_one(path, CONVERSATION, salt="2")
    question, answer = built.messages
    assert not {built.id, question.id, answer.id} & {CONVERSATION, QUESTION, ANSWER, again.id}
    assert answer.parent == question.id < answer.id
    assert question.reply == answer.id
    assert built.metadata == {"current_node": question.id, "newest_imported": answer.id, "mine": [1, 1.0]}
    assert question.id[:13] == QUESTION[:13], "it keeps its date"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"id": "mine"}, "the `id` of each message must be one of Threadkeep's: a UUID of version 7, in lower case"),
        ({"role": "robot"}, f"the `role` of message {ANSWER} must be one of system, user, assistant, tool"),
        ({"status": "odd"}, f"the `status` of message {ANSWER} must be one of complete, stopped, failed, interrupted"),
        ({"parts": None, "bytes": 7}, f"the `parts` of message {ANSWER} must be a list of objects"),
        ({"parts": ["text"]}, f"the `parts` of message {ANSWER} must be a list of objects"),
        *(
            (
                {name: json.loads("[" * 300 + "]" * 300)},
                f"the `{name}` of message {ANSWER} must not be nested so deeply",
            )
            for name in ("parts", "metadata")
        ),
        ({"parent": 7}, f"the `parent` of message {ANSWER} must be the id of another message, or null"),
        ({"parent": CONVERSATION}, f"the parent of message {ANSWER} is not among the messages before it"),
        ({"parent": ANSWER}, f"the parent of message {ANSWER} is not among the messages before it"),
        ({"id": QUESTION, "parent": None}, "two messages have the same `id`"),
        ({"metadata": []}, f"the `metadata` of message {ANSWER} must be an object"),
        ({"usage": 1}, f"the `usage` of message {ANSWER} must be an object"),
    ],
)
def test_what_is_not_as_the_protocol_has_it_is_refused(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    assert read(lines(tmp_path, HEAD, MESSAGES[0], MESSAGES[1] | change)) == {CONVERSATION: reason}


def test_a_conversation_that_is_none_of_ours_is_refused(tmp_path: Path) -> None:
    assert read(lines(tmp_path, HEAD | {"id": "c"})) == {
        "c": "the conversation's `id` must be one of Threadkeep's: a UUID of version 7, in lower case"
    }


DAMAGED = {"type": "damaged", "conversation": CONVERSATION, "first": QUESTION, "last": QUESTION, "count": 1}


def test_what_could_not_be_exported_is_told_and_what_stood_under_it_begins_anew(tmp_path: Path) -> None:
    built = read_one(lines(tmp_path, HEAD, MESSAGES[1], DAMAGED), CONVERSATION)
    assert [(one.id, one.parent) for one in built.messages] == [(ANSWER, None)]
    assert built.notes["damaged"] == 1
    assert built.metadata == HEAD["metadata"], "nothing is added to what is ours"
    told = in_chatgpts_form()
    told["mapping"][QUESTION] = {"id": QUESTION, "parent": None, "children": [ANSWER], "message": None}
    told["metadata"]["damaged"] = [{name: DAMAGED[name] for name in ("first", "last", "count")}]
    same = read_one(write(tmp_path / "f", [told]), CONVERSATION)
    assert same.messages == built.messages
    assert same.notes == built.notes


def test_with_new_ids_an_answer_that_is_not_there_is_named_by_nobody(tmp_path: Path) -> None:
    path = lines(tmp_path, HEAD, MESSAGES[0])
    assert read_one(path, CONVERSATION).messages[0].reply == ANSWER
    built = read_one(path, CONVERSATION, salt="1")
    assert built.messages[0].reply is None
    assert built.notes == {"replies_dropped": 1}


def test_lines_of_a_later_version_are_passed_over(tmp_path: Path) -> None:
    later = {"type": "annotation", "conversation": CONVERSATION, "x": 1}
    built = read_one(lines(tmp_path, HEAD, MESSAGES[0], later, MESSAGES[1]), CONVERSATION)
    assert [one.id for one in built.messages] == [QUESTION, ANSWER]


def in_chatgpts_form() -> dict[str, Any]:
    """As our export writes it: what the form cannot say stands in `metadata.threadkeep`."""
    mapping: dict[str, Any] = {"root": {"id": "root", "parent": None, "children": [QUESTION], "message": None}}
    for told, parent in zip(MESSAGES, ("root", QUESTION), strict=True):
        own = {name: value for name, value in told.items() if name not in {"type", "conversation", "tokens"}}
        mapping[told["id"]] = {
            "id": told["id"],
            "parent": parent,
            "children": [ANSWER] if told is MESSAGES[0] else [],
            "message": {
                "id": told["id"],
                "author": {"role": told["role"]},
                "create_time": 1_700_000_000.0,
                "content": {"content_type": "text", "parts": ["what a reader sees"]},
                "status": "finished_successfully",
                "metadata": {"threadkeep": own},
            },
        }
    head = {name: value for name, value in HEAD.items() if name != "type"}
    times = {"create_time": 1_700_000_000.0, "update_time": 1_700_086_400.0}
    return {"id": CONVERSATION, "conversation_id": CONVERSATION, "title": "Rivers", **times} | {
        "mapping": mapping,
        "current_node": ANSWER,
        "metadata": {"threadkeep": head},
    }


def test_our_export_in_chatgpts_form_is_read_as_our_own_lines_are(tmp_path: Path) -> None:
    own = read_one(lines(tmp_path, HEAD, *MESSAGES), CONVERSATION)
    same = read_one(write(tmp_path / "f", [in_chatgpts_form()]), CONVERSATION)
    for name in ("id", "title", "metadata", "retention_days", "messages"):
        assert getattr(same, name) == getattr(own, name), name


def test_what_was_not_added_is_read_from_chatgpts_form_itself(tmp_path: Path) -> None:
    told = in_chatgpts_form()
    told["metadata"] = {"threadkeep": {}}
    for node in told["mapping"].values():
        if node["message"]:
            node["message"]["metadata"] = {"model_slug": "m"}
    built = read_one(write(tmp_path / "f", [told]), CONVERSATION)
    assert [(one.id, one.parent, one.role, one.model) for one in built.messages] == [
        (QUESTION, None, "user", None),
        (ANSWER, QUESTION, "assistant", "m"),
    ]
    assert [one.parts for one in built.messages] == [[{"type": "text", "text": "what a reader sees"}]] * 2
    assert [one.metadata for one in built.messages] == [{}, {}], "nothing is added to what is ours"
    assert isinstance(built, Whole)
