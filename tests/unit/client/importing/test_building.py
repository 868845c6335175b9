from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from tests.support.exports import ANN, DATA, NOW_MS, Whole, conversation, message, read_one, write
from threadkeep_client.ids import ID_PATTERN, time_ms
from threadkeep_client.importing.building import Identity

BRANCHES = DATA / "import-branches.json"


def ids(built: Whole) -> set[str]:
    return {built.id, *(one.id for one in built.messages)}


def build(tmp_path: Path, nodes: dict[str, tuple[str | None, float | None]], **fields: object) -> Whole:
    said = {name: (parent, message(name, "user", name, at_s)) for name, (parent, at_s) in nodes.items()}
    return read_one(write(tmp_path / "f", [conversation(said, **fields)]), "c")


def seconds(built: Whole) -> dict[str, float]:
    return {one.parts[0]["text"]: time_ms(one.id) / 1_000 for one in built.messages}


def test_the_same_file_has_the_same_ids_every_time() -> None:
    first, again = read_one(BRANCHES, "c-branch"), read_one(BRANCHES, "c-branch", now_ms=NOW_MS + 10**9)
    assert first == again
    assert all(ID_PATTERN.fullmatch(name) for name in ids(first))


@pytest.mark.parametrize("other", [Identity("acme", "bob"), Identity("other", "ann"), Identity("acmea", "nn")])
def test_another_users_import_has_other_ids(other: Identity) -> None:
    mine, theirs = read_one(BRANCHES, "c-branch", identity=ANN), read_one(BRANCHES, "c-branch", identity=other)
    assert not ids(mine) & ids(theirs)
    assert [one.parts for one in mine.messages] == [one.parts for one in theirs.messages]


def test_a_salt_makes_other_ids() -> None:
    assert not ids(read_one(BRANCHES, "c-branch")) & ids(read_one(BRANCHES, "c-branch", salt="s"))


def test_ids_tell_when_it_was_written_and_messages_come_in_their_order() -> None:
    built = read_one(BRANCHES, "c-branch")
    assert time_ms(built.id) == 1_700_000_000_000
    assert [time_ms(one.id) for one in built.messages] == [
        1_700_000_000_000 + s * 1_000 for s in (1, 2, 20, 25, 26, 40, 41)
    ]


def test_a_missing_time_is_the_parents_or_the_conversations(tmp_path: Path) -> None:
    built = build(tmp_path, {"a": (None, None), "b": ("a", None), "c": ("b", 1_700_000_009.0)})
    assert seconds(built) == {"a": 1_700_000_000.0, "b": 1_700_000_000.001, "c": 1_700_000_009.0}
    assert built.notes["times_missing"] == 2


def test_where_the_conversation_says_no_time_either_it_is_that_of_its_first_message(tmp_path: Path) -> None:
    built = build(tmp_path, {"a": (None, None), "b": ("a", 1_600_000_000.0)}, create_time=None)
    assert time_ms(built.id) == 1_600_000_000_000
    assert seconds(built) == {"a": 1_600_000_000.0, "b": 1_600_000_000.001}


def test_a_time_that_is_not_later_than_the_parents_is_moved_behind_it(tmp_path: Path) -> None:
    built = build(tmp_path, {"a": (None, 1_700_000_005.0), "b": ("a", 1_700_000_005.0), "c": ("b", 1_700_000_001.0)})
    assert seconds(built) == {"a": 1_700_000_005.0, "b": 1_700_000_005.001, "c": 1_700_000_005.002}
    assert [one.parent for one in built.messages] == [None, built.messages[0].id, built.messages[1].id]


def test_a_time_that_is_yet_to_come_is_none(tmp_path: Path) -> None:
    built = build(tmp_path, {"a": (None, 2e9), "b": ("a", 1_700_000_003.0)}, create_time=2e9)
    assert seconds(built) == {"a": 1_700_000_003.0, "b": 1_700_000_003.001}
    assert time_ms(built.id) == 1_700_000_003_000


def test_without_any_time_there_is_still_an_order(tmp_path: Path) -> None:
    built = build(tmp_path, {"a": (None, None), "b": ("a", None)}, create_time=None)
    assert [one.parts[0]["text"] for one in built.messages] == ["a", "b"]


def test_where_its_reader_left_it_is_told_only_if_it_is_not_the_newest(tmp_path: Path) -> None:
    nodes: dict[str, tuple[str | None, float | None]] = {"a": (None, 1.0), "b": ("a", 2.0), "c": ("a", 3.0)}
    assert "current_node" not in build(tmp_path, nodes, current_node="c").metadata
    left = build(tmp_path, nodes, current_node="b")
    assert left.metadata["current_node"] == left.messages[1].id


def token(claims: object) -> str:
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"h.{payload}.s"


def test_whose_import_it_is_is_read_from_the_token() -> None:
    assert Identity.from_token(token({"tenant": "t", "sub": "s"})) == Identity("t", "s")


@pytest.mark.parametrize(
    "text", ["", "opaque", "a.b.c", "a.!.c", token([1]), token({"sub": "s"}), token({"tenant": "t"})]
)
def test_where_a_token_says_nothing_nobody_is_named(text: str) -> None:
    assert Identity.from_token(text) is None
