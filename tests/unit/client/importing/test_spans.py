from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadkeep_client.importing import spans as module
from threadkeep_client.importing.spans import spans

# What could be taken for structure, and letters of several bytes.
TEXTS = st.text(st.sampled_from('"\\{}[],\n:a\u00e9\U0001f642\ud83d'), max_size=6)
VALUES = st.recursive(
    st.none() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=3)
CHUNKS = st.sampled_from([1, 2, 3, 7, 64, 1 << 20])


def values_of(data: bytes) -> list[bytes]:
    found = [data[span.start : span.end].strip() for span in spans(io.BytesIO(data))]
    return [value for value in found if value]


def chunked(data: bytes, chunk_bytes: int) -> list[bytes]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CHUNK_BYTES", chunk_bytes)
        return values_of(data)


@given(
    values=st.lists(VALUES, max_size=5),
    chunk_bytes=CHUNKS,
    indent=st.none() | st.integers(0, 2),
    is_ascii=st.booleans(),
)
def test_the_elements_of_an_array_are_found_wherever_chunks_end(
    values: list[object], chunk_bytes: int, indent: int | None, *, is_ascii: bool
) -> None:
    data = json.dumps(values, indent=indent, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
    found = chunked(data, chunk_bytes)
    assert [json.loads(value.decode("utf-8", "surrogatepass")) for value in found] == values


@given(values=st.lists(OBJECTS, max_size=5), chunk_bytes=CHUNKS, indent=st.none() | st.integers(0, 2))
def test_values_one_after_another_are_found_pretty_printed_or_not(
    values: list[object], chunk_bytes: int, indent: int | None
) -> None:
    data = "\n".join(json.dumps(value, indent=indent) for value in values).encode()
    if data:
        assert [json.loads(value) for value in chunked(data, chunk_bytes)] == values


@pytest.mark.parametrize("chunk_bytes", range(1, 40))
def test_what_looks_like_structure_in_a_text_is_none(chunk_bytes: int) -> None:
    values = [{'"]},{': '\\"}]'}, "\\\\", {"x": ['"[', ",\n{"]}, '\\"']
    assert [json.loads(value) for value in chunked(json.dumps(values).encode(), chunk_bytes)] == values


def test_what_is_damaged_loses_nothing_else() -> None:
    assert values_of(b'[{"a": 1}, {"b": nonsense}, 7, {"c": "]},{"}]') == [
        b'{"a": 1}',
        b'{"b": nonsense}',
        b"7",
        b'{"c": "]},{"}',
    ]


def test_what_is_cut_off_comes_last_as_it_is() -> None:
    assert values_of(b'[{"a": 1}, {"b": "x') == [b'{"a": 1}', b'{"b": "x']
    assert values_of(b'{"a": 1}\n{"b": [') == [b'{"a": 1}', b'{"b": [']


def test_what_follows_an_array_stands_by_itself() -> None:
    assert values_of(b'[{"a": 1}] {"b": 2}\n') == [b'{"a": 1}', b'{"b": 2}']


def test_a_byte_order_mark_and_blanks_are_passed_over() -> None:
    assert values_of(b'\xef\xbb\xbf \n [ {"a": 1} ]') == [b'{"a": 1}']
    assert values_of(b'\xef\xbb\xbf{"a": 1}') == [b'{"a": 1}']


@pytest.mark.parametrize("data", [b"", b" ", b"[]", b"[ ]", b"\xef\xbb\xbf"])
def test_nothing_holds_nothing(data: bytes) -> None:
    assert values_of(data) == []
