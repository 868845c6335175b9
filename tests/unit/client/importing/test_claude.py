from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.exports import DATA, Whole, expected, path_of, read, read_one, texts, write
from threadkeep_client.ids import time_ms
from threadkeep_client.wire import Part, text_of


def chat(tmp_path: Path, messages: list[Any], **fields: Any) -> Whole:
    return read_one(write(tmp_path / "f", [{"uuid": "k", "name": "n", "chat_messages": messages} | fields]), "k")


def said(name: str, text: str, sender: str = "human", **fields: Any) -> dict[str, Any]:
    return {"uuid": name, "sender": sender, "text": text, "created_at": "2024-03-09T07:00:01Z"} | fields


def test_of_messages_with_one_time_the_order_of_the_file_decides() -> None:
    built = read_one(DATA / "claude-export-same-timestamps.json", "k-1")
    names = {"user": "human"}
    found = [[names.get(one.role, one.role), text_of(one.parts)] for one in path_of(built)]
    assert found == expected("claude-export-same-timestamps")["k-1"]
    assert [time_ms(one.id) - time_ms(built.messages[0].id) for one in built.messages] == [0, 1, 2, 3]
    assert built.messages[1].parts[0] == {"type": "reasoning", "text": "steam, two plates"}
    assert built.title == "Kettle"


def test_a_message_without_a_name_takes_none_that_another_has(tmp_path: Path) -> None:
    built = chat(tmp_path, [{"uuid": "#1", "text": "a"}, {"text": "b"}, {"uuid": "#1", "text": "c"}, {"text": "d"}])
    assert texts(path_of(built)) == ["a", "b", "c", "d"]
    assert len({one.id for one in built.messages}) == 4


def test_where_messages_name_their_parents_there_are_branches(tmp_path: Path) -> None:
    built = chat(
        tmp_path,
        [
            said("a", "q", parent_message_uuid="00000000-0000-4000-8000-000000000000"),
            said("b", "one", "assistant", parent_message_uuid="a"),
            said("c", "two", "assistant", parent_message_uuid="a"),
        ],
        current_leaf_message_uuid="b",
    )
    by_text = {text_of(one.parts): one for one in built.messages}
    assert by_text["q"].parent is None
    assert by_text["one"].parent == by_text["two"].parent == by_text["q"].id
    assert texts(path_of(built)) == ["q", "one"]
    assert built.notes == {}


def test_tool_calls_and_results_are_paired_by_their_ids_or_places(tmp_path: Path) -> None:
    blocks = [
        {"type": "tool_use", "id": "t1", "name": "search", "input": {"q": "é"}},
        {
            "type": "tool_result",
            "tool_use_id": "t1",
            "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        },
        {"type": "tool_result", "content": {"x": 1}, "is_error": True},
        {"type": "text", "text": "done", "citations": [{"url": "u"}]},
        {"type": "not_seen_before", "x": 1},
        "bare",
        None,
    ]
    assert chat(tmp_path, [said("m", "", "assistant", content=blocks)]).messages[0].parts == [
        {"type": "tool_call", "call_id": "t1", "name": "search", "arguments": '{"q": "é"}', "state": "complete"},
        {"type": "tool_result", "call_id": "t1", "output": "a\nb"},
        {"type": "tool_result", "call_id": "m.2", "output": '{"x": 1}', "error": True},
        {"type": "text", "text": "done", "citations": [{"url": "u"}]},
        {"type": "data", "source": "claude", "kind": "not_seen_before", "value": {"type": "not_seen_before", "x": 1}},
        {"type": "text", "text": "bare"},
    ]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("another text", "another text"),
        ("Steam  is\nforced.", None),
        ("Steam is\n```\nThis block is not supported on your current device yet.\n```\n forced.", None),
        ("", None),
        (None, None),
    ],
)
def test_a_text_that_says_something_else_than_the_content_is_kept_and_counted(
    tmp_path: Path, text: str | None, kept: str | None
) -> None:
    content = [{"type": "text", "text": "Steam is "}, {"type": "text", "text": "forced."}]
    built = chat(tmp_path, [said("m", "x", "assistant", content=content) | {"text": text}])
    assert text_of(built.messages[0].parts) == "Steam is forced."
    assert built.messages[0].metadata["imported"].get("text") == kept
    assert built.notes == ({} if kept is None else {"texts_differ": 1})
    assert built.metadata["imported"].get("flags") == (None if kept is None else ["texts_differ"])


def test_attachments_and_files_are_kept_as_data(tmp_path: Path) -> None:
    attachment = {"file_name": "a.txt", "extracted_content": "inside"}
    told = said("m", "see", attachments=[attachment], files=[{"file_name": "p.png"}])
    parts: list[Part] = [
        {"type": "text", "text": "see"},
        {"type": "data", "source": "claude", "kind": "attachment", "value": attachment},
        {"type": "data", "source": "claude", "kind": "file", "value": {"file_name": "p.png"}},
    ]
    assert chat(tmp_path, [told]).messages[0].parts == parts


def test_ids_that_are_missing_or_said_twice_lose_no_message(tmp_path: Path) -> None:
    built = chat(tmp_path, [said("a", "1"), said("a", "2"), {"sender": "human", "text": "3"}, 7])
    assert texts(path_of(built)) == ["1", "2", "3"]
    assert built.notes["nodes_dropped"] == 1


def test_an_unknown_sender_is_kept_and_flagged(tmp_path: Path) -> None:
    built = chat(tmp_path, [said("a", "x", "robot")])
    assert built.messages[0].metadata["imported"]["role"] == "robot"
    assert built.metadata["imported"]["flags"] == ["roles_unknown"]


def test_an_empty_turn_is_kept_and_counted(tmp_path: Path) -> None:
    built = chat(tmp_path, [said("a", "", content=[{"type": "text", "text": ""}]), said("b", "x", "assistant")])
    assert [one.parts for one in built.messages] == [[], [{"type": "text", "text": "x"}]]
    assert built.notes["empty_messages"] == 1


@pytest.mark.parametrize(
    ("messages", "reason"),
    [(None, "its `chat_messages` must be a list of messages"), ([], "holds no messages")],
)
def test_a_conversation_without_messages_is_refused(tmp_path: Path, messages: Any, reason: str) -> None:
    assert read(write(tmp_path / "f", [{"uuid": "k", "chat_messages": messages}])) == {"k": reason}
