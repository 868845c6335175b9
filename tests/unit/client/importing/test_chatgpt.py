from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.exports import (
    DATA,
    Told,
    Whole,
    chatgpt,
    conversation,
    expected,
    message,
    path_of,
    read,
    read_one,
    shown,
    texts,
    write,
)
from threadkeep_client.frames import json_bytes
from threadkeep_client.wire import Part, text_of


def said(built: Whole) -> list[list[str]]:
    return [[one.role, text_of(one.parts)] for one in path_of(built) if not one.metadata.get("hidden")]


def one_message(tmp_path: Path, content: Any, **fields: Any) -> Told:
    told = message("n", "user", "", 1.0, content=content) | fields
    return read_one(write(tmp_path / "f", [conversation({"n": (None, told)})]), "c").messages[0]


@pytest.mark.parametrize("kind", [["x"], {"x": 1}, 1, True])
def test_a_piece_whose_kind_is_no_text_is_kept_as_data(tmp_path: Path, kind: Any) -> None:
    piece = {"content_type": kind, "text": "t"}
    told = one_message(tmp_path, {"content_type": "multimodal_text", "parts": ["a", piece]})
    assert [part["type"] for part in told.parts] == ["text", "data"]
    assert piece in told.parts[1].values()


def test_a_long_chain_of_tools_answers_the_call_above_it_and_a_ring_of_them_none(tmp_path: Path) -> None:
    call = message("call", "assistant", "f()", 1.0) | {"recipient": "python"}
    chain: dict[str, Any] = {
        f"t{n}": (f"t{n - 1}" if n else "call", message(f"t{n}", "tool", "r", 2.0 + n)) for n in range(50)
    }
    ring: dict[str, Any] = {
        "r0": ("r1", message("r0", "tool", "r", 1.0)),
        "r1": ("r0", message("r1", "tool", "r", 1.0)),
    }
    built = read_one(
        write(tmp_path / "f", [conversation({"call": (None, call)} | dict(reversed(chain.items())) | ring)]), "c"
    )
    calls = [part["call_id"] for one in built.messages for part in one.parts if part["type"] == "tool_result"]
    assert sorted(calls) == sorted(["call"] * 50 + ["r0", "r1"])


# --- the cases' files ------------------------------------------------------------------------------------------------


def test_nodes_without_children_and_times_in_fractions_are_read() -> None:
    built = read_one(DATA / "import-slim-no-children.json", "c-slim")
    assert said(built) == expected("import-slim-no-children")["c-slim"]
    assert built.title == "Bread timer"
    assert [one.id[:13] for one in built.messages[:2]] == ["018bcfe5-6ce2", "018bcfe5-6fee"], "1.25 s and 2.030285 s"


def test_messages_without_metadata_are_read_and_one_bad_conversation_stops_no_other() -> None:
    found = read(DATA / "import-missing-metadata.json")
    wanted = expected("import-missing-metadata")
    assert {name: said(built) for name, built in found.items() if isinstance(built, Whole)} == wanted["imported"]
    assert [name for name, built in found.items() if isinstance(built, str)] == wanted["reported_failed"]
    assert found["c-broken"] == "its `mapping`, which holds the messages, must be an object"


def test_the_branch_at_which_its_reader_left_it_is_the_active_one_and_the_others_are_kept() -> None:
    built = read_one(DATA / "import-branches.json", "c-branch")
    wanted = expected("import-branches")["c-branch"]
    active = path_of(built, built.metadata["current_node"])
    assert texts(active) == wanted["active_path"]
    others = [one for one in built.messages if one not in active]
    assert texts(others) == wanted["other_branches_kept"]
    assert sum(one.parent is None for one in built.messages) == 2, "two questions begin it"


def test_a_current_node_that_is_gone_leaves_the_last_good_message_and_is_flagged() -> None:
    built = read_one(DATA / "import-bad-pointers.json", "c-dangling")
    assert texts(path_of(built)) == expected("import-bad-pointers")["c-dangling"]
    assert built.metadata["imported"]["flags"] == ["current_node_missing"]
    assert "current_node" not in built.metadata


def test_a_ring_of_parents_ends_and_is_flagged() -> None:
    built = read_one(DATA / "import-bad-pointers.json", "c-cycle")
    assert texts(path_of(built)) == ["ring a", "ring b"]
    assert built.metadata["imported"]["flags"] == ["rings_cut"]


def test_an_orphan_is_kept_and_flagged() -> None:
    built = read_one(DATA / "import-bad-pointers.json", "c-orphan")
    assert sorted(texts(built.messages)) == ["floating", "kept"]
    assert built.metadata["imported"]["flags"] == ["orphans"]


def test_a_message_without_an_author_is_kept_as_an_assistants_and_flagged() -> None:
    built = read_one(DATA / "import-bad-pointers.json", "c-noroles")
    (only,) = built.messages
    assert (only.role, text_of(only.parts)) == ("assistant", "partial")
    assert only.metadata["imported"]["role_unknown"] is True
    assert built.metadata["imported"]["flags"] == ["roles_unknown"]


def test_every_kind_of_content_is_kept_and_what_was_hidden_stays_so() -> None:
    built = read_one(DATA / "import-multipart-mixed.json", "c-multi")
    wanted = expected("import-multipart-mixed")
    assert [shown(one.role, one.parts) for one in built.messages if not one.metadata.get("hidden")] == wanted["c-multi"]
    assert [one.role for one in built.messages if one.metadata.get("hidden")] == ["system"]
    assert built.notes["empty_messages"] == 1
    call, result = built.messages[2].parts[0], built.messages[3].parts[0]
    assert call["call_id"] == result["call_id"]
    assert [part["type"] for part in built.messages[1].parts] == ["data", "text"], "in their order"
    assert built.messages[6].parts == [{"type": "reasoning", "text": "check\nsign has no Sunday"}]


# --- content ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (None, []),
        ("plain", [{"type": "text", "text": "plain"}]),
        (["a", None, "", "b"], [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
        ({"content_type": "text"}, []),
        ({"parts": ["x"]}, [{"type": "text", "text": "x"}]),
        ({"content_type": "text", "parts": "one string"}, [{"type": "text", "text": "one string"}]),
        ({"content_type": "text", "parts": None}, []),
        ({"content_type": "text", "text": "beside"}, [{"type": "text", "text": "beside"}]),
        (
            {"content_type": "multimodal_text", "parts": [{"type": "text", "text": "t"}]},
            [{"type": "text", "text": "t"}],
        ),
        ({"content_type": "reasoning_recap", "content": "Thought"}, [{"type": "reasoning", "text": "Thought"}]),
        ({"content_type": "thoughts", "thoughts": []}, []),
        (
            {"content_type": "thoughts", "thoughts": 5},
            [
                {
                    "type": "data",
                    "source": "chatgpt",
                    "kind": "thoughts",
                    "value": {"content_type": "thoughts", "thoughts": 5},
                }
            ],
        ),
        (
            ["x", 7],
            [{"type": "text", "text": "x"}, {"type": "data", "source": "chatgpt", "kind": "content", "value": 7}],
        ),
        ("a\u0000b", [{"type": "text", "text": "a\u0000b"}]),
    ],
)
def test_content_of_any_shape_is_read(tmp_path: Path, content: Any, parts: list[Part]) -> None:
    assert one_message(tmp_path, content).parts == parts


def test_what_json_has_no_word_for_is_left_out_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "f"
    write(path, [conversation({"n": (None, message("n", "user", "", 1.0, content={"content_type": "odd", "x": 0.5}))})])
    path.write_text(path.read_text().replace("0.5", "1e999"))
    built = read_one(path, "c")
    assert built.notes["contents_dropped"] == 1
    assert "value" not in built.messages[0].parts[0]


def test_content_nested_too_deeply_is_left_out_and_counted(tmp_path: Path) -> None:
    deep: Any = []
    for _ in range(60):
        deep = [deep]
    built = read_one(
        write(
            tmp_path / "f",
            [conversation({"n": (None, message("n", "user", "", 1.0, content={"content_type": "x", "x": deep}))})],
        ),
        "c",
    )
    assert built.notes["contents_dropped"] == 1


@pytest.mark.parametrize("depth", [60, 300, 3_000, 20_000])
def test_however_deep_it_is_the_rest_of_the_conversation_is_read(tmp_path: Path, depth: int) -> None:
    """The standard decoder reads some hundreds deep."""
    said = {"content_type": "multimodal_text", "parts": ["DEEP"]}
    nodes = {
        "n": (None, message("n", "user", "", 1.0, content=said) | {"metadata": {"kept": 1, "x": "DEEP"}}),
        "m": ("n", message("m", "assistant", "next", 2.0)),
    }
    path = write(tmp_path / "f", [conversation(nodes, own="DEEP")])
    path.write_text(path.read_text().replace('"DEEP"', "[" * depth + "]" * depth))
    built = read_one(path, "c")
    (part,) = built.messages[0].parts
    assert (part["type"], part["omitted"]) == ("data", "it is nested too deeply")
    assert built.messages[0].metadata["imported"]["metadata"] == {"kept": 1}
    assert text_of(built.messages[1].parts) == "next"
    assert (built.notes["contents_dropped"], built.notes["metadata_dropped"]) == (1, 2)


@pytest.mark.parametrize("depth", range(36, 52))
def test_at_the_bound_of_depth_one_content_is_left_out_at_most(tmp_path: Path, depth: int) -> None:
    deep: Any = []
    for _ in range(depth):
        deep = [deep]
    told = one_message(tmp_path, {"content_type": "multimodal_text", "parts": ["said", {"x": deep}]})
    assert told.parts[0] == {"type": "text", "text": "said"}
    assert len(told.parts) == 2


def test_a_message_larger_than_the_service_keeps_says_so_in_its_place(tmp_path: Path) -> None:
    parts = [{"asset": "x" * 3_000_000}] * 3
    nodes = {
        "n": (None, message("n", "user", "", 1.0, content={"content_type": "multimodal_text", "parts": parts})),
        "m": ("n", message("m", "assistant", "next", 2.0)),
    }
    built = read_one(write(tmp_path / "f", [conversation(nodes)]), "c")
    assert built.messages[0].parts[0]["omitted"] == "it takes more than 8,388,608 bytes"
    assert built.messages[1].parent == built.messages[0].id
    assert built.notes["contents_dropped"] == 1


def test_more_parts_than_the_service_takes_become_one_that_holds_the_rest(tmp_path: Path) -> None:
    told = one_message(tmp_path, [str(number) for number in range(1_200)])
    assert len(told.parts) == 1_000
    assert [part["text"] for part in told.parts[-1]["value"]][-1] == "1199"


# --- what stands around it -------------------------------------------------------------------------------------------


def test_children_tell_a_parent_where_nodes_do_not(tmp_path: Path) -> None:
    told = chatgpt("c", ["a", "b", "c"])
    for node in told["mapping"].values():
        node.pop("parent")
    assert texts(path_of(read_one(write(tmp_path / "f", [told]), "c"))) == ["a", "b", "c"]


def test_what_the_export_says_of_a_message_is_kept_under_one_name(tmp_path: Path) -> None:
    told = one_message(
        tmp_path,
        {"content_type": "text", "parts": ["x"]},
        metadata={"model_slug": "m-1", "finish_details": {"type": "stop"}},
        author={"role": "assistant", "name": "n"},
        status="finished_partial_completion",
        weight=0.0,
    )
    assert told.metadata == {
        "imported": {
            "from": "chatgpt",
            "id": "n",
            "name": "n",
            "status": "finished_partial_completion",
            "weight": 0.0,
            "metadata": {"model_slug": "m-1", "finish_details": {"type": "stop"}},
        }
    }
    assert (told.model, told.status) == ("m-1", "stopped")


def test_metadata_that_does_not_fit_is_left_out_field_by_field_and_counted(tmp_path: Path) -> None:
    extra = {"a": 1, "large": "x" * 20_000, "b": 2, **{f"m{number}": "y" * 1_000 for number in range(20)}}
    told = message("n", "user", "t", 1.0, metadata=extra)
    built = read_one(write(tmp_path / "f", [conversation({"n": (None, told)})]), "c")
    metadata = built.messages[0].metadata
    kept = metadata["imported"]["metadata"]
    assert {"a", "b", "m0"} <= set(kept)
    assert "large" not in kept
    assert 15_000 < json_bytes(metadata) <= 16 * 1024
    assert built.notes["metadata_dropped"] == len(extra) - len(kept)


def test_a_conversations_own_metadata_stays_within_its_bound_with_flags_and_current_node(tmp_path: Path) -> None:
    nodes = {
        "a": (None, message("a", "user", "x", 1.0)),
        "b": ("a", message("b", "assistant", "y", 2.0)),
        "o": ("gone", message("o", "assistant", "z", 3.0)),
    }
    told = conversation(nodes, current_node="b", **{f"f{number}": "y" * 100 for number in range(300)})
    built = read_one(write(tmp_path / "f", [told]), "c")
    assert {"current_node", "newest_imported", "imported"} == set(built.metadata)
    assert built.metadata["imported"]["flags"] == ["orphans"]
    assert json_bytes(built.metadata) <= 16 * 1024


def test_system_and_hidden_messages_are_kept_with_their_role_and_marked(tmp_path: Path) -> None:
    nodes = {
        "s": (None, message("s", "system", "be kind", 1.0)),
        "h": ("s", message("h", "user", "context", 2.0, metadata={"is_visually_hidden_from_conversation": True})),
        "u": ("h", message("u", "user", "hello", 3.0)),
    }
    built = read_one(write(tmp_path / "f", [conversation(nodes)]), "c")
    assert [(one.role, one.metadata.get("hidden", False)) for one in built.messages] == [
        ("system", True),
        ("user", True),
        ("user", False),
    ]


def test_a_tools_message_answers_the_nearest_call_above_it(tmp_path: Path) -> None:
    nodes = {
        "call": (None, message("call", "assistant", "{}", 1.0, recipient="browser")),
        "first": ("call", message("first", "tool", "one", 2.0)),
        "second": ("first", message("second", "tool", "two", 3.0)),
        "answer": ("second", message("answer", "assistant", "so", 4.0)),
        "stray": ("answer", message("stray", "tool", "three", 5.0)),
    }
    built = read_one(write(tmp_path / "f", [conversation(nodes)]), "c")
    assert [one.parts[0].get("call_id") for one in built.messages] == ["call", "call", "call", None, "stray"]


@pytest.mark.parametrize("mapping", [{}, {"r": {"id": "r", "message": None}}, {"r": 7}])
def test_a_conversation_without_messages_is_refused(tmp_path: Path, mapping: Any) -> None:
    assert read(write(tmp_path / "f", [{"id": "c", "mapping": mapping}])) == {"c": "holds no messages"}


def test_a_title_that_is_too_long_is_cut_and_counted(tmp_path: Path) -> None:
    built = read_one(write(tmp_path / "f", [chatgpt("c", ["a"]) | {"title": "t" * 600}]), "c")
    assert built.title == "t" * 512
    assert built.notes["titles_cut"] == 1


@pytest.mark.parametrize(
    ("title", "text", "count"), [("\ud83d", "\udcff", 2), ("t", "\ud83d\ude00 \ufffd", 0), ("t", "\ud83d", 1)]
)
def test_halves_of_characters_are_counted_where_they_are_replaced(
    tmp_path: Path, title: str, text: str, count: int
) -> None:
    told = chatgpt("c", ["a", text]) | {"title": title}
    built = read_one(write(tmp_path / "f", [told]), "c")
    assert built.notes == ({"halves_replaced": count} if count else {})
    assert built.metadata["imported"].get("flags") == (["halves_replaced"] if count else None)
