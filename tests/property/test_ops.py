"""The fold: however ops are merged, batched or cut, the message that they build is one and the same."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from threadkeep.domain import ops
from threadkeep.domain.bounds import PIECE_BYTES_MAX
from threadkeep.domain.json_values import JsonObject, encode
from threadkeep.domain.ops import Assembly, BeginPart, GrowText, Op, Parts, PieceOp, SetFields, SetMeta

# Characters of one to four bytes, combining ones, and control characters, which take six in JSON. No half surrogates:
# the gateway cleans those before they come here.
texts = st.text(st.sampled_from('ab "\\/\n\0\x1f\x7fé€\u0301\u2028🙂𝄞'), max_size=12)
numbers = st.sampled_from(["1", "1.0", "1e400", "-0.0", "9007199254740993", "0.1", "1E+2"])
values = st.recursive(
    numbers | st.sampled_from(["null", "true", "[]", "{}"]) | texts.map(lambda text: encode(text).decode()),
    lambda inner: st.lists(inner, max_size=3).map(lambda items: "[" + ", ".join(items) + "]"),
    max_leaves=4,
).map(lambda text: Raw(text.encode()))
kinds = st.sampled_from(["text", "reasoning", "tool_call", "tool_result", "data", "new"])
names = st.sampled_from(["text", "arguments", "output", "state", "call_id", "x", ""])
fields = st.dictionaries(names, values, max_size=3)
typed_fields = st.builds(lambda kind, rest: {"type": Raw(encode(kind)), **rest}, kinds, fields)
indexes = st.integers(0, 3)
one_op: st.SearchStrategy[Op] = st.one_of(
    st.builds(BeginPart, indexes, fields | typed_fields),
    st.builds(GrowText, indexes, texts),
    st.builds(GrowText, indexes, texts),
    st.builds(SetFields, indexes, fields | typed_fields),
    st.builds(SetMeta, fields),
)
op_lists = st.lists(one_op, max_size=25)


def travelled(piece: list[PieceOp]) -> list[PieceOp]:
    return msgspec.json.decode(encode(piece), type=list[PieceOp])


def fold(batches: Sequence[Sequence[PieceOp]]) -> tuple[Parts, JsonObject]:
    assembly = Assembly()
    for batch in batches:
        assembly.apply(batch)
    return assembly.parts(), assembly.metadata


@given(op_lists)
@settings(deadline=None)
def test_merged_ops_build_the_same_message(listed: list[Op]) -> None:
    merged = ops.merge(listed)
    assert fold([merged]) == fold([listed])
    assert len(merged) <= len(listed)
    assert ops.merge(merged) == merged


@given(op_lists, st.data())
@settings(deadline=None)
def test_batches_and_looks_in_between_change_nothing(listed: list[Op], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(listed)))
    assembly = Assembly()
    assembly.apply(listed[:at])
    assembly.parts()
    assembly.apply(listed[at:])
    assert (assembly.parts(), assembly.metadata) == fold([listed])


@given(op_lists)
@settings(deadline=None)
def test_ops_travel_unchanged(listed: list[Op]) -> None:
    assert ops.decode(encode(listed)) == listed


@given(op_lists)
@settings(deadline=None)
def test_settling_twice_is_settling_once_and_leaves_nothing_empty_or_unpaired(listed: list[Op]) -> None:
    settled = ops.settled(fold([listed])[0])
    assert ops.settled(settled) == settled
    assert not [part for part in settled if ops.kind(part) == "text" and part.get("text") == Raw(b'""')]
    answered = {bytes(part["call_id"]) for part in settled if ops.kind(part) == "tool_result" and "call_id" in part}
    for part in settled:
        if ops.kind(part) == "tool_call" and bytes(part.get("call_id", Raw(b"null"))) not in answered:
            assert "state" in part


long_texts = st.builds(lambda text, times: text * times, texts, st.integers(1, 6_000))
long_values = st.builds(
    lambda value, times: Raw(b"[" + b", ".join([bytes(value)] * times) + b"]"), values, st.integers(1, 3_000)
)
long_parts = st.builds(
    lambda kind, rest, text, is_first: (
        {ops.growing_field({"type": Raw(encode(kind))}): Raw(encode(text))} | ({"type": Raw(encode(kind))} | rest)
        if is_first
        else {"type": Raw(encode(kind))} | rest | {ops.growing_field({"type": Raw(encode(kind))}): Raw(encode(text))}
    ),
    kinds,
    st.dictionaries(st.sampled_from(["state", "call_id", "x", "output"]), values | long_values, max_size=3),
    long_texts,
    st.booleans(),
)
part_lists = st.lists(long_parts | fields, max_size=5).map(tuple)


@given(part_lists)
@settings(deadline=None)
def test_pieces_fit_fold_back_byte_for_byte_and_are_always_cut_alike(parts: Parts) -> None:
    pieces = list(ops.pieces(parts))
    assert max(len(encode(piece)) for piece in pieces) <= PIECE_BYTES_MAX
    assert encode(fold([travelled(piece) for piece in pieces])[0]) == encode(parts)
    assert list(ops.pieces(fold(pieces)[0])) == pieces


@given(texts, st.integers(1, 3_000), st.integers(6, 200))
@settings(deadline=None)
def test_cuts_join_to_the_text_and_keep_their_bound(text: str, times: int, bytes_max: int) -> None:
    whole = text * times
    cuts = list(ops.cut_text(whole, bytes_max))
    assert "".join(cuts) == whole
    sizes = [len(encode(cut)) - 2 for cut in cuts]
    assert all(0 < size <= bytes_max for size in sizes)
