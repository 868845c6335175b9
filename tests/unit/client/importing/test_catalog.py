from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from tests.support.exports import Whole, chatgpt, listed, read, texts, write
from threadkeep_client.importing import catalog as module
from threadkeep_client.importing import values
from threadkeep_client.importing.reading import NO_CHAT

CONVERSATION = "018bcfe5-6800-7000-8000-000000000001"
MESSAGE = "018bcfe5-6800-7000-8000-00000000000{}"


def own_lines(conversation: str = CONVERSATION, **fields: object) -> list[str]:
    head = {"type": "conversation", "id": conversation, "active_at": "2024-01-01T00:00:00.000Z"}
    said = {"type": "message", "id": MESSAGE.format(2), "conversation": conversation, "parent": None, "role": "user"}
    return [json.dumps(head), json.dumps(said | {"parts": []} | fields)]


def test_the_oldest_activity_comes_first(tmp_path: Path) -> None:
    chats = [chatgpt(name, ["a"], created_s=at_s) for name, at_s in (("new", 3e8), ("old", 1e8), ("middle", 2e8))]
    assert [entry.source for entry in listed(write(tmp_path / "f", chats)).entries] == ["old", "middle", "new"]


def test_forms_are_told_by_what_is_there_even_mixed(tmp_path: Path) -> None:
    claude = {"uuid": "k", "chat_messages": [{"uuid": "1", "sender": "human", "text": "hi"}]}
    path = tmp_path / "f"
    path.write_text("\n".join([json.dumps(chatgpt("c", ["a"])), json.dumps(claude), *own_lines()]))
    forms = {entry.source: entry.form for entry in listed(path).entries}
    assert forms == {"c": "chatgpt", "k": "claude", CONVERSATION: "threadkeep"}
    assert all(isinstance(built, Whole) for built in read(path).values())


def test_one_bad_value_loses_none_of_the_others(tmp_path: Path) -> None:
    path = tmp_path / "f"
    good = [json.dumps(chatgpt(name, ["a"])) for name in ("a", "b")]
    path.write_bytes(f'[{good[0]}, 7, {{"x": oops}}, {{"no": "chat"}}, {good[1]}, '.encode() + b'{"\xff": 1}, {"cut')
    catalog = listed(path)
    assert [entry.source for entry in catalog.entries] == ["a", "b"]
    assert [(refusal.place, refusal.reason) for refusal in catalog.refusals] == [
        (2, "is no JSON object, and each conversation is one"),
        (3, "is not JSON, or cut off"),
        (4, "holds neither `mapping` (ChatGPT) nor `chat_messages` (Claude), and is no line of Threadkeep's own form"),
        (6, "is not UTF-8"),
        (7, "is not JSON, or cut off"),
    ]


def test_files_without_conversations_are_passed_over_with_a_reason(tmp_path: Path) -> None:
    write(tmp_path / "conversations.json", [chatgpt("a", ["x"])])
    write(tmp_path / "shared_conversations.json", [{"id": "s", "conversation_id": "a", "title": "t"}])
    write(tmp_path / "user.json", {"id": "u", "email": "e"})
    write(tmp_path / "empty.json", [])
    catalog = listed(tmp_path)
    assert [entry.source for entry in catalog.entries] == ["a"]
    assert catalog.refusals == []
    assert [each.name for each in catalog.passed_over] == ["empty.json", "shared_conversations.json", "user.json"]
    assert catalog.passed_over[0].reason == "holds nothing"


@pytest.mark.parametrize("whole_bytes_max", [0, 300, 1 << 20])
def test_a_large_conversation_is_known_without_being_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole_bytes_max: int
) -> None:
    monkeypatch.setattr(values, "WHOLE_BYTES_MAX", whole_bytes_max)
    monkeypatch.setattr(module, "_TOLD_BYTES_MAX", 100)
    path = write(
        tmp_path / "f", [chatgpt("large", ["x" * 3_000, "y"], created_s=2e8), chatgpt("small", ["x"]), {"a": []}]
    )
    catalog = listed(path)
    assert [(entry.source, entry.active_ms) for entry in catalog.entries] == [
        ("large", 200_000_002_000),
        ("small", 1_700_000_001_000),
    ]
    assert len(catalog.refusals) == 1
    built = read(path)["large"]
    assert isinstance(built, Whole)
    assert [len(text) for text in texts(built.messages)] == [3_000, 1]


def test_refusals_without_end_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REFUSALS_MAX", 3)
    catalog = listed(write(tmp_path / "f", [chatgpt("a", ["x"]), *range(10)]))
    assert (len(catalog.refusals), catalog.refusals_more) == (3, 7)


def test_a_conversation_without_an_id_goes_by_what_it_holds(tmp_path: Path) -> None:
    nameless = {name: value for name, value in chatgpt("a", ["x"]).items() if name not in {"id", "conversation_id"}}
    first = listed(write(tmp_path / "f", [nameless, chatgpt("b", ["x"])])).entries[0].source
    again = listed(write(tmp_path / "g", [nameless])).entries[0].source
    assert first == again
    assert first.startswith("sha256:")


def test_messages_of_our_own_form_belong_to_the_conversation_before_them(tmp_path: Path) -> None:
    path = tmp_path / "f"
    other = CONVERSATION[:-1] + "9"
    path.write_text("\n".join([*own_lines(), *own_lines(other)]))
    found = read(path)
    assert {name: len(built.messages) for name, built in found.items() if isinstance(built, Whole)} == {
        CONVERSATION: 1,
        other: 1,
    }


@pytest.mark.parametrize("form", ["array", "pretty", "one line"])
def test_our_own_lines_need_not_be_lines(tmp_path: Path, form: str) -> None:
    values = [json.loads(line) for line in own_lines()]
    path = tmp_path / "f"
    match form:
        case "array":
            path.write_text(json.dumps(values))
        case "pretty":
            path.write_text("\n".join(json.dumps(value, indent=2) for value in values))
        case _:
            path.write_text("".join(json.dumps(value) for value in values))
    built = read(path)[CONVERSATION]
    assert isinstance(built, Whole)
    assert len(built.messages) == 1


@pytest.mark.parametrize(
    ("line", "reason", "refused"),
    [
        ('{"type": "message", "id": "x", "cut', "value 3 of the file is not JSON, or cut off", []),
        (
            own_lines("elsewhere")[1] + own_lines("elsewhere")[1],
            "value 3 of the file is a line that does not stand behind its conversation",
            ["elsewhere"],
        ),
    ],
)
def test_what_stands_damaged_among_our_own_messages_spoils_their_conversation_alone(
    tmp_path: Path, line: str, reason: str, refused: list[str]
) -> None:
    path = tmp_path / "f"
    path.write_text("\n".join([*own_lines(), line]))
    catalog = listed(path)
    assert [entry.damage for entry in catalog.entries] == [reason]
    assert [refusal.source for refusal in catalog.refusals] == refused, "what is told twice is counted twice"


SOUND = json.dumps([chatgpt("a", ["x"])])
OTHER = json.dumps([chatgpt("b", ["y" * 200])])


@pytest.mark.parametrize("within", ["", "e.zip/"])
@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("conversations-001.json", OTHER[:150], "is not JSON, or cut off"),
        ("conversations-001.json", OTHER[:-1], "ends before its list does: it is cut off"),
        ("conversations-001.json", OTHER[:-1] + ", ", "ends before its list does: it is cut off"),
        ("conversations-001.json", "[", "ends before its list does: it is cut off"),
        ("in/Conversations (1).json", "", "is no JSON"),
        ("conversations.json", "\0" * 100, "is no JSON"),
        ("conversations.json.part", '[{"title": "a', "is not JSON, or cut off"),
        ("conversations-001.json", '{"odd": 1}', NO_CHAT),
        ("export.bin", OTHER[:300], "is not JSON, or cut off"),
        ("anything.json", '[{"title": "a', "is not JSON, or cut off"),
        ("kept.txt", '{"type": "conversation", "id"', "is not JSON, or cut off"),
    ],
)
def test_a_file_that_may_have_held_conversations_and_cannot_be_read_is_refused(
    tmp_path: Path, name: str, content: str, reason: str, within: str
) -> None:
    folder = tmp_path / "shards"
    folder.mkdir()
    files = {"conversations-000.json": SOUND, "user.json": '{"id": "u"}', "p.png": "\x89PNG", name: content}
    if within:
        with zipfile.ZipFile(folder / "e.zip", "w") as archive:
            for each, said in files.items():
                archive.writestr(each, said)
    for each, said in files.items() if not within else ():
        (folder / each).parent.mkdir(exist_ok=True)
        (folder / each).write_text(said)
    catalog = listed(folder)
    assert [entry.source for entry in catalog.entries][:1] == ["a"]
    assert [(refusal.file, refusal.reason) for refusal in catalog.refusals] == [(within + name, reason)]
    assert {each.name for each in catalog.passed_over} == {f"{within}p.png", f"{within}user.json"}


def test_what_is_no_chat_beside_others_is_harmless(tmp_path: Path) -> None:
    write(tmp_path / "conversations.json", [])
    (tmp_path / "notes.md").write_text("[a link](https://example.org)")
    (tmp_path / "style.txt").write_text("{ color: red")
    catalog = listed(tmp_path)
    assert catalog.refusals == []
    assert [each.name for each in catalog.passed_over] == ["conversations.json", "notes.md", "style.txt"]
