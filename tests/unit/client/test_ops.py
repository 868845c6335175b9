from __future__ import annotations

import itertools
import json
import time
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from threadkeep.domain import ops as reference
from threadkeep_client.errors import TooLargeError
from threadkeep_client.frames import OPS_BYTES_MAX, json_bytes, to_json
from threadkeep_client.ops import Assembly, cut, fold, merge
from threadkeep_client.wire import Op

TEXT = st.text(st.sampled_from('ab"\\\n\0\x1f\x7fäあ😀\u2028'), max_size=60)
FIELDS = st.dictionaries(
    st.sampled_from(["type", "text", "arguments", "output", "state", "n"]),
    st.sampled_from(["text", "tool_call", "tool_result", "x", 1, 1.0, None, [1, 2.5], {"a": 10**30}]),
    max_size=3,
)
INDEX = st.integers(0, 3)
OP: st.SearchStrategy[Op] = st.one_of(
    st.builds(lambda index, fields: ["part", index, fields], INDEX, FIELDS),
    st.builds(lambda index, text: ["text", index, text], INDEX, TEXT),
    st.builds(lambda index, fields: ["set", index, fields], INDEX, FIELDS),
    st.builds(lambda fields: ["meta", fields], FIELDS),
)
OPS = st.lists(OP, max_size=12)


def folded_by_the_service(ops: list[Op]) -> tuple[Any, Any]:
    assembly = reference.Assembly()
    assembly.apply(reference.decode(to_json(ops).encode()))
    return json.loads(msgspec.json.encode(assembly.parts())), json.loads(msgspec.json.encode(assembly.metadata))


@settings(deadline=None, max_examples=50)
@given(OPS)
def test_ops_fold_as_in_the_service(ops: list[Op]) -> None:
    assembly = Assembly()
    assembly.apply(ops)
    assert (assembly.parts, assembly.metadata) == folded_by_the_service(ops)


@settings(deadline=None, max_examples=50)
@given(OPS, st.integers(160, 400))
def test_cutting_changes_nothing_and_every_batch_fits(ops: list[Op], bytes_max: int) -> None:
    batches = cut(ops, bytes_max)
    assert all(0 < json_bytes(batch) <= bytes_max for batch in batches)
    assert fold(op for batch in batches for op in batch) == fold(ops)


@settings(deadline=None, max_examples=50)
@given(OPS)
def test_merging_changes_nothing_and_leaves_no_neighbours(ops: list[Op]) -> None:
    merged = list(merge(ops))
    assert fold(merged) == fold(ops)
    for one, other in itertools.pairwise(merged):
        assert not (one[0] == other[0] == "text" and one[1] == other[1])


@pytest.mark.parametrize("character", ["a", "ä", "あ", "😀", "\n", "\0", '"', "\u2028"])
def test_long_text_is_cut_between_characters_into_full_batches(character: str) -> None:
    text = character * 50_000
    batches = cut([["part", 0, {"type": "text", "text": ""}], ["text", 0, text]])
    assert "".join(op[2] for batch in batches for op in batch if op[0] == "text") == text
    sizes = [json_bytes(batch) for batch in batches]
    assert max(sizes) <= OPS_BYTES_MAX
    assert min(sizes[:-1]) > OPS_BYTES_MAX - 8
    assert len(batches) == -(-50_000 * (json_bytes(character) - 2) // (OPS_BYTES_MAX - 20))


def test_an_emoji_of_many_code_points_may_be_cut_but_no_code_point() -> None:
    family = "👨‍👩‍👧‍👦"
    batches = cut([["text", 0, family * 2_000]])
    assert "".join(batch[0][2] for batch in batches) == family * 2_000
    for batch in batches:
        batch[0][2].encode()


def test_what_cannot_be_cut_and_does_not_fit_is_refused_by_name() -> None:
    with pytest.raises(TooLargeError, match="a 'part' op takes 20,0"):
        cut([["part", 0, {"type": "data", "text": "x" * 20_000}]])


def test_text_grows_the_field_of_its_part() -> None:
    ops: list[Op] = [
        ["part", 0, {"type": "reasoning", "text": ""}],
        ["text", 0, "hm"],
        ["part", 1, {"type": "tool_call", "call_id": "c", "name": "f", "arguments": "", "state": "started"}],
        ["text", 1, '{"a":'],
        ["part", 2, {"type": "tool_result", "call_id": "c", "output": ""}],
        ["text", 2, "42"],
        ["text", 1, "1}"],
        ["set", 1, {"state": "done"}],
        ["part", 3, {"type": "chart", "text": "kept", "points": [1, 1.0, 10**20]}],
        ["text", 4, "implied"],
    ]
    assert fold(ops) == [
        {"type": "reasoning", "text": "hm"},
        {"type": "tool_call", "call_id": "c", "name": "f", "arguments": '{"a":1}', "state": "done"},
        {"type": "tool_result", "call_id": "c", "output": "42"},
        {"type": "chart", "text": "kept", "points": [1, 1.0, 10**20]},
        {"type": "text", "text": "implied"},
    ]


@settings(deadline=None, max_examples=15)
@given(st.lists(st.tuples(FIELDS, st.sampled_from([0, 100, 20_000])), max_size=4))
def test_the_pieces_of_a_settled_message_add_up_to_it(described: list[tuple[dict[str, Any], int]]) -> None:
    parts = [
        {**fields, "type": kind, "long": {"あ\n": list(range(size // 4))}, growing: "😀\0" * size}
        for (fields, size), (kind, growing) in zip(
            described,
            [("text", "text"), ("tool_call", "arguments"), ("tool_result", "output"), ("x", "y")],
            strict=False,
        )
    ]
    raw = tuple({name: msgspec.Raw(to_json(value).encode()) for name, value in part.items()} for part in parts)
    assembly = Assembly()
    for piece in reference.pieces(raw):
        assembly.apply(json.loads(msgspec.json.encode(piece)))
    assert repr(assembly.parts) == repr([json.loads(to_json(part)) for part in parts])


@pytest.mark.parametrize("last", ["}", "NaN]"])
def test_pieces_of_json_that_add_up_to_none_are_an_error(last: str) -> None:
    with pytest.raises(ValueError, match=r"Expecting|no JSON"):
        fold([["part", 0, {"type": "x"}], ["json", 0, "n", "[1,", False], ["json", 0, "n", last, True]])


def test_a_part_of_very_many_fields_is_folded_in_no_time() -> None:
    begun_s = time.process_time()
    [part] = fold([["set", 0, {f"f{number}": number}] for number in range(50_000)])
    assert len(part) == 50_000
    assert time.process_time() - begun_s < 5


def test_fields_set_between_pieces_of_text_do_not_touch_the_text() -> None:
    """Counted: a `set` copies nothing of the text so far, which is joined when it is looked at."""
    copied: list[int] = []

    class Counted(str):
        """A string that counts the characters of what it is added up to."""

        __slots__ = ()

        def __add__(self, other: str) -> Counted:
            copied.append(len(self) + len(other))
            return Counted(str(self) + other)

    assembly = Assembly()
    pairs = 1_000
    assembly.apply([["part", 0, {"type": "text", "text": Counted("x" * pairs)}]])
    for _ in range(pairs):
        assembly.apply([["text", 0, "a"], ["set", 0, {"s": 1}]])
    assert assembly.parts == [{"type": "text", "text": "x" * pairs + "a" * pairs, "s": 1}]
    assert sum(copied) <= 2 * pairs


def test_ops_of_a_later_version_change_nothing() -> None:
    assert fold([["text", 0, "a"], ["colour", 0, "red"], ["text", "0", "b"], ["part", 1], ["text", 0, "c"]]) == [
        {"type": "text", "text": "ac"}
    ]


def test_looking_at_the_text_does_not_disturb_its_growth() -> None:
    assembly = Assembly()
    seen = []
    for letter in "abc":
        assembly.apply([["text", 0, letter]])
        seen.append(assembly.text)
    assert seen == ["a", "ab", "abc"]
    assembly.parts[0]["text"] = "spoilt"
    assert assembly.text == "abc"
