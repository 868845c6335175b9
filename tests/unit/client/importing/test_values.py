from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.client.importing.test_spans import CHUNKS, OBJECTS, VALUES
from threadkeep_client.importing import spans, values
from threadkeep_client.importing.draft import RefusedError
from threadkeep_client.importing.spans import Span
from threadkeep_client.importing.values import LEFT_OUT, TOO_DEEP, Outline, read_value

EACH = 100


def read(path: Path, data: bytes, *, each_bytes_max: int = EACH) -> Any:
    path.write_bytes(data)
    with path.open("rb") as file:
        return read_value(file, Span(0, len(data)), each_bytes_max=each_bytes_max)


@pytest.fixture
def in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything counts as large."""
    monkeypatch.setattr(values, "WHOLE_BYTES_MAX", 0)


@given(value=OBJECTS, chunk_bytes=CHUNKS, indent=st.none() | st.integers(0, 2), is_ascii=st.booleans())
def test_field_by_field_an_object_is_what_it_is_at_once(
    tmp_path_factory: pytest.TempPathFactory, value: Any, chunk_bytes: int, indent: int | None, *, is_ascii: bool
) -> None:
    data = json.dumps(value, indent=indent, ensure_ascii=is_ascii).encode("utf-8", "replace")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(values, "WHOLE_BYTES_MAX", 0)
        patch.setattr(spans, "_CHUNK_BYTES", chunk_bytes)
        found = read(tmp_path_factory.getbasetemp() / "f", data, each_bytes_max=10_000)
    assert found == json.loads(data)
    assert list(found) == list(json.loads(data))


@given(inner=st.lists(VALUES, max_size=4) | OBJECTS, chunk_bytes=CHUNKS, indent=st.none() | st.integers(0, 2))
def test_an_outline_finds_each_value_of_a_list_or_mapping(
    tmp_path_factory: pytest.TempPathFactory, inner: Any, chunk_bytes: int, indent: int | None
) -> None:
    path = tmp_path_factory.getbasetemp() / "f"
    path.write_text(json.dumps({"before": 1, "long": inner, "after": [2]}, indent=indent))
    opening = "{" if isinstance(inner, dict) else "["
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spans, "_CHUNK_BYTES", chunk_bytes)
        outline = Outline.read(path, Span(0, path.stat().st_size), "long", opening, each_bytes_max=EACH)
    assert outline.fields == {"before": 1, "after": [2]}
    assert outline.values is not None
    found = [outline.values[number] for number in range(len(outline.values))]
    assert found == (list(inner.values()) if isinstance(inner, dict) else inner)
    assert outline.names == (list(inner) if isinstance(inner, dict) else [])


@pytest.mark.usefixtures("in_pieces")
def test_what_is_too_large_is_left_out_and_all_around_it_is_read(tmp_path: Path) -> None:
    value = {"id": "a", "message": {"text": "x" * 200, "author": {"role": "user"}, "list": [0] * 99}, "parent": "b"}
    assert read(tmp_path / "f", json.dumps(value).encode()) == {
        "id": "a",
        "message": {"text": LEFT_OUT, "author": {"role": "user"}, "list": LEFT_OUT},
        "parent": "b",
    }


@pytest.mark.usefixtures("in_pieces")
def test_of_much_that_would_fit_each_by_itself_the_small_is_read(tmp_path: Path) -> None:
    value = {str(number): "x" * 80 for number in range(9)} | {"parent": "p"}
    found = read(tmp_path / "f", json.dumps(value).encode())
    assert [found[name] for name in found if found[name] is not LEFT_OUT] == ["x" * 80] * 2 + ["p"]


@pytest.mark.usefixtures("in_pieces")
def test_letters_that_are_written_as_six_bytes_count_as_what_they_are(tmp_path: Path) -> None:
    assert read(tmp_path / "f", json.dumps({"a": "é" * 45}).encode()) == {"a": "é" * 45}
    assert read(tmp_path / "f", json.dumps({"a": "é" * 101}, ensure_ascii=False).encode()) == {"a": LEFT_OUT}


@pytest.mark.usefixtures("in_pieces")
def test_very_many_fields_are_left_out_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "FIELDS_MAX", 3)
    assert read(tmp_path / "f", b'{"a": {"1": 1, "2": 2, "3": 3, "4": 4}, "b": 1}') == {"a": LEFT_OUT, "b": 1}


@pytest.mark.usefixtures("in_pieces")
@pytest.mark.parametrize(
    "data",
    [
        *(b'{"a": 1', b'{"a": 1,}', b'{"a" 1}', b"{1: 2}", b'{"a": 1} x', b'{"a": "x}', b'{"a": 1]', b'{,"a": 1}'),
        *(b"{,}", b'{"a": NaN}', b'{"a": }', b'{"a": 1 2}', b'{"' + b"x" * 5_000 + b'": 1}'),
    ],
)
def test_what_is_no_json_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(RefusedError, match="is not JSON, or cut off"):
        read(tmp_path / "f", data)


@pytest.mark.usefixtures("in_pieces")
@pytest.mark.parametrize("data", [b'{"a": "\xff"}', b'{"\xff": 1}'])
def test_what_is_not_utf_8_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(RefusedError, match="is not UTF-8"):
        read(tmp_path / "f", data)


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


@pytest.mark.parametrize("depth", [3_000, 20_000])
@pytest.mark.parametrize("is_large", [False, True])
def test_what_is_nested_deeper_than_can_be_read_is_left_out_where_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, depth: int, *, is_large: bool
) -> None:
    if is_large:
        monkeypatch.setattr(values, "WHOLE_BYTES_MAX", 0)
    deep = nested(depth)
    path, each = tmp_path / "f", 3 * depth
    assert read(path, deep, each_bytes_max=each) is TOO_DEEP
    assert read(path, b'{"a": 1, "b": {"c": %b, "d": [2]}}' % deep, each_bytes_max=each) == {
        "a": 1,
        "b": {"c": TOO_DEEP, "d": [2]},
    }
    with pytest.raises(RefusedError, match="is not JSON, or cut off"):
        read(path, b'{"a": tru, "b": %b}' % deep, each_bytes_max=each)
