"""The fold from ops to parts, what settling makes of them, and the cutting of a settled message."""

from __future__ import annotations

import json
import time
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from threadkeep.domain import ops
from threadkeep.domain.bounds import PIECE_BYTES_MAX
from threadkeep.domain.json_values import encode, read_object, read_text
from threadkeep.domain.ops import Assembly, BeginPart, GrowJson, GrowText, Parts, PieceOp, SetFields, SetMeta


def fold(data: str) -> Parts:
    assembly = Assembly()
    assembly.apply(ops.decode(data.encode()))
    return assembly.parts()


def parts_of(*texts: str) -> Parts:
    return tuple(read_object(text.encode()) for text in texts)


def unfold(parts: Parts) -> Parts:
    assembly = Assembly()
    for piece in ops.pieces(parts):
        assembly.apply(msgspec.json.decode(encode(piece), type=list[PieceOp]))
    return assembly.parts()


# --- reading --------------------------------------------------------------------------------------------------


def test_ops_read_as_what_they_are() -> None:
    read = ops.decode(b'[["part",0,{"type":"text"}],["text",0,"a"],["set",0,{"x":1.0}],["meta",{"m":1e400}]]')
    assert read == [
        BeginPart(0, {"type": Raw(b'"text"')}),
        GrowText(0, "a"),
        SetFields(0, {"x": Raw(b"1.0")}),
        SetMeta({"m": Raw(b"1e400")}),
    ]


@pytest.mark.parametrize(
    "data",
    [
        "{}",
        "[[]]",
        '[["text",0]]',
        '[["text","0","a"]]',
        '[["text",-1,"a"]]',
        '[["text",1000,"a"]]',
        '[["part",0,[]]]',
        '[["set",0,null]]',
        '[["gone",0]]',
        '["text",0,"a"]',
    ],
)
def test_what_is_no_list_of_ops_is_refused(data: str) -> None:
    with pytest.raises(msgspec.DecodeError):
        ops.decode(data.encode())


# --- folding --------------------------------------------------------------------------------------------------


def test_text_begins_a_text_part_where_there_is_none() -> None:
    assert encode(fold('[["text",0,"he"],["text",0,"llo"]]')) == b'[{"type":"text","text":"hello"}]'


@pytest.mark.parametrize(
    ("kind", "field"),
    [("text", "text"), ("reasoning", "text"), ("tool_call", "arguments"), ("tool_result", "output"), ("new", "text")],
)
def test_text_grows_the_field_of_the_parts_type(kind: str, field: str) -> None:
    (part,) = fold(f'[["part",0,{{"type":"{kind}","{field}":"a"}}],["text",0,"b"]]')
    assert part == {"type": Raw(f'"{kind}"'.encode()), field: Raw(b'"ab"')}


def test_a_growing_field_that_is_no_string_keeps_its_value_as_text() -> None:
    (part,) = fold('[["part",0,{"type":"tool_result","output":{"n":1.0}}],["text",0,"!"]]')
    assert part["output"] == Raw(b'"{\\"n\\":1.0}!"')


def test_a_part_begun_again_replaces_what_stood_there() -> None:
    assert encode(fold('[["text",0,"old"],["part",0,{"type":"data","n":1}]]')) == b'[{"type":"data","n":1}]'


def test_set_merges_in_its_turn() -> None:
    (part,) = fold('[["text",0,"a"],["set",0,{"text":"b","state":"x"}],["text",0,"c"]]')
    assert part == {"type": Raw(b'"text"'), "text": Raw(b'"bc"'), "state": Raw(b'"x"')}


def test_text_that_came_before_a_change_of_type_stays_in_its_field() -> None:
    (part,) = fold('[["text",0,"a"],["set",0,{"type":"tool_call"}],["text",0,"b"]]')
    assert part == {"type": Raw(b'"tool_call"'), "text": Raw(b'"a"'), "arguments": Raw(b'"b"')}


def test_fields_set_between_pieces_of_text_do_not_touch_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted: with the whole string written again at every `set`, one stream would hold up the sweeper."""
    written, read = [], []

    def counted_encode(value: Any) -> bytes:
        written.append(encode(value))
        return written[-1]

    def counted_read(value: Raw | None) -> str | None:
        read.append(bytes(value or b""))
        return read_text(value)

    monkeypatch.setattr(ops, "encode", counted_encode)
    monkeypatch.setattr(ops, "read_text", counted_read)
    pairs = 1_000
    (part,) = fold(json.dumps([["text", 0, "x" * 100_000]] + [["text", 0, "a"], ["set", 0, {"s": 1}]] * pairs))
    assert len(bytes(part["text"])) == 100_000 + pairs + 2
    assert sum(map(len, written)) < 110_000
    assert sum(map(len, read)) < 1_000


def test_the_field_that_grows_is_replaced_when_it_is_set_and_keeps_its_order() -> None:
    (part,) = fold('[["part",0,{"s":1}],["text",0,"a"],["set",0,{"t":2}],["set",0,{"text":"b"}],["text",0,"c"]]')
    assert list(part.items()) == [("s", Raw(b"1")), ("text", Raw(b'"bc"')), ("t", Raw(b"2"))]


def test_text_goes_on_in_a_field_whose_type_comes_back() -> None:
    (part,) = fold(
        '[["text",0,"a"],["set",0,{"type":"tool_call"}],["text",0,"b"],["set",0,{"type":"text"}],["text",0,"c"]]'
    )
    assert part == {"type": Raw(b'"text"'), "text": Raw(b'"ac"'), "arguments": Raw(b'"b"')}


def test_parts_stand_in_order_of_their_index_gaps_left_out() -> None:
    assert [part["text"] for part in fold('[["text",7,"c"],["text",0,"a"],["text",3,"b"]]')] == [
        Raw(b'"a"'),
        Raw(b'"b"'),
        Raw(b'"c"'),
    ]


def test_meta_merges_into_the_metadata_it_began_with_and_leaves_that_alone() -> None:
    begun = {"a": Raw(b"1"), "b": Raw(b"1")}
    assembly = Assembly(begun)
    assembly.apply([SetMeta({"b": Raw(b"2"), "c": Raw(b"3")})])
    assert assembly.metadata == {"a": Raw(b"1"), "b": Raw(b"2"), "c": Raw(b"3")}
    assert begun == {"a": Raw(b"1"), "b": Raw(b"1")}


def test_parts_once_given_out_do_not_change_with_later_ops() -> None:
    assembly = Assembly()
    assembly.apply([GrowText(0, "a")])
    before, metadata = assembly.parts(), assembly.metadata
    assembly.apply([GrowText(0, "b"), SetMeta({"m": Raw(b"1")})])
    assert (before, metadata) == (({"type": Raw(b'"text"'), "text": Raw(b'"a"')},), {})
    assert assembly.parts() == ({"type": Raw(b'"text"'), "text": Raw(b'"ab"')},)


def test_merging_joins_neighbours_of_one_string_only() -> None:
    merged = ops.merge(
        [
            GrowText(0, "a"),
            GrowText(0, "b"),
            GrowText(1, "c"),
            GrowText(0, "d"),
            SetMeta({}),
            GrowText(0, "e"),
            GrowText(0, "f"),
        ]
    )
    assert merged == [GrowText(0, "ab"), GrowText(1, "c"), GrowText(0, "d"), SetMeta({}), GrowText(0, "ef")]
    assert ops.merge([]) == []


# --- settling -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ['{"type":"text","text":""}', '{"type":"text"}', '{"type":"reasoning","text":""}'])
def test_no_empty_text_is_stored(part: str) -> None:
    kept = '{"type":"text","text":" "}'
    assert ops.settled(parts_of(part, kept)) == parts_of(kept)


@pytest.mark.parametrize(
    "part",
    [
        '{"type":"text","text":0}',
        '{"type":"data","text":""}',
        '{"type":"blob","ref":""}',
        '{"type":"unknown"}',
        "{}",
        '{"type":"tool_result","call_id":"1","output":""}',
    ],
)
def test_what_is_no_empty_text_is_kept_as_it_is(part: str) -> None:
    assert ops.settled(parts_of(part)) == parts_of(part)


@pytest.mark.parametrize("state", ["", '"started"', '"arguments"', '"running"', '""', "null", "3"])
def test_a_tool_call_that_waits_for_ever_is_incomplete(state: str) -> None:
    field = f',"state":{state}' if state else ""
    (call,) = ops.settled(parts_of('{"type":"tool_call","call_id":"1"' + field + "}"))
    assert call["state"] == Raw(b'"incomplete"')


@pytest.mark.parametrize("state", ["done", "failed", "incomplete", "denied"])
def test_a_tool_call_that_says_how_it_ended_is_believed(state: str) -> None:
    parts = parts_of(f'{{"type":"tool_call","call_id":"1","state":"{state}"}}')
    assert ops.settled(parts) == parts


def test_a_tool_call_with_its_result_stays_and_another_calls_result_does_not_help() -> None:
    call, other = '{"type":"tool_call","call_id":"1"}', '{"type":"tool_call","call_id":"2"}'
    result = '{"type":"tool_result","call_id":"1","output":"x"}'
    settled = ops.settled(parts_of(call, other, result))
    assert settled[0] == parts_of(call)[0]
    assert settled[1]["state"] == Raw(b'"incomplete"')
    assert settled[2] == parts_of(result)[0]


def test_a_call_and_a_result_that_name_no_call_are_no_pair() -> None:
    call, _ = ops.settled(parts_of('{"type":"tool_call"}', '{"type":"tool_result","output":"x"}'))
    assert call["state"] == Raw(b'"incomplete"')


# --- cutting --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "bytes_max", "cuts"),
    [
        ("", 6, []),
        ("abcdef", 6, ["abcdef"]),
        ("abcdefg", 6, ["abcdef", "g"]),
        ("€€€", 6, ["€€", "€"]),
        ("🙂🙂", 6, ["🙂", "🙂"]),
        ("\0\0", 6, ["\0", "\0"]),
        ("\0a", 7, ["\0a"]),
        ('""""', 6, ['"""', '"']),
    ],
)
def test_cuts_fall_between_characters_and_count_json_bytes(text: str, bytes_max: int, cuts: list[str]) -> None:
    assert list(ops.cut_text(text, bytes_max)) == cuts


@pytest.mark.parametrize("op", ['["set",0,{"f%d":0}]', '["meta",{"f%d":0}]'])
def test_very_many_fields_are_folded_in_no_time(op: str) -> None:
    begun_s = time.process_time()
    assembly = Assembly()
    assembly.apply(ops.decode(f"[{','.join(op % number for number in range(50_000))}]".encode()))
    fields = {**assembly.metadata, **dict(*assembly.parts())}
    assert len(fields) == 50_000
    assert time.process_time() - begun_s < 5


def test_a_small_part_is_one_op_and_no_parts_are_one_empty_piece() -> None:
    parts = parts_of('{"type":"text","text":"caf\\u00e9"}')
    assert list(ops.pieces(parts)) == [[BeginPart(0, parts[0])]]
    assert list(ops.pieces(())) == [[]]


@pytest.mark.parametrize("character", ["a", "€", "🙂", "\0", "\n", '"', "e\u0301"])
def test_a_long_string_comes_back_byte_for_byte_in_pieces_of_a_frame(character: str) -> None:
    parts = (
        {"type": Raw(b'"tool_call"'), "arguments": Raw(encode(character * 30_001)), "call_id": Raw(b'"1"')},
        *parts_of('{"type":"text","text":"end"}'),
    )
    assert encode(unfold(parts)) == encode(parts)
    assert max(len(encode(piece)) for piece in ops.pieces(parts)) <= PIECE_BYTES_MAX


def test_a_part_of_many_large_fields_is_dealt_out() -> None:
    fields = "".join(f',"f{number}":"{"x" * 7_000}"' for number in range(20))
    parts = parts_of('{"type":"tool_result","output":"' + "y" * 20_000 + '","call_id":"1"' + fields + "}")
    assert encode(unfold(parts)) == encode(parts)
    assert max(len(encode(piece)) for piece in ops.pieces(parts)) <= PIECE_BYTES_MAX


@pytest.mark.parametrize("name", ["n", "text", "output", "\0" * 170])
@pytest.mark.parametrize(
    "value",
    [
        '"' + "x" * 100_000 + '"',
        '"' + "\\u754c\u754c\\n" * 9_000 + '"',
        "[" + "1.0, " * 20_000 + "1e400]",
        '{"a":' * 60 + '"' + "\u754c" * 10_000 + '"' + "}" * 60,
        "9" * 20_000,
    ],
    ids=["string", "escapes", "list", "nested", "number"],
)
def test_any_long_value_is_read_in_pieces_byte_for_byte(name: str, value: str) -> None:
    (part,) = parts_of('{"type":"tool_call","arguments":{}}')
    parts = (part | {name: Raw(value.encode()), "": Raw(b"1.0")}, *parts_of('{"type":"text","text":"end"}'))
    assert encode(unfold(parts)) == encode(parts)
    assert max(len(encode(piece)) for piece in ops.pieces(parts)) <= PIECE_BYTES_MAX


def test_a_value_is_there_with_its_last_piece_and_not_before() -> None:
    assembly = Assembly()
    assembly.apply([BeginPart(0, {"x": Raw(b"null"), "y": Raw(b"1")}), GrowJson(0, "x", "[1.0", last=False)])
    assert encode(assembly.parts()) == b'[{"x":null,"y":1}]'
    assembly.apply([GrowJson(0, "x", ", 2]", last=True)])
    assert encode(assembly.parts()) == b'[{"x":[1.0, 2],"y":1}]'


def test_no_producer_says_a_piece_of_json() -> None:
    with pytest.raises(msgspec.ValidationError):
        ops.decode(b'[["json",0,"x","1",true]]')


def test_needless_escapes_in_a_long_string_are_not_kept_but_what_they_say_is() -> None:
    parts = parts_of('{"type":"text","text":"' + "\\u00e9" * 1_000 + '"}')
    assert unfold(parts) == ({"type": Raw(b'"text"'), "text": Raw(encode("é" * 1_000))},)
