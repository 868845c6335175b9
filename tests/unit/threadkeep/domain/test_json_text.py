"""JSON text is made encodable and measured, whatever stands in it and however much of it there is."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadkeep.domain.json_text import clean, is_utf8, measure

MIB = 1024 * 1024
TOKENS = st.lists(
    st.sampled_from([*'[]{}":,ab \u20ac\U0001f600', "\\\\", '\\"', "\\n", "\\u00e9", "\\ud83d", "\\ude00", "\\uDBFF"]),
    max_size=40,
).map("".join)


def loaded(text: bytes) -> object:
    return json.loads(text)


@pytest.mark.parametrize(
    ("text", "right"),
    [
        (rb'"\ud83d\ude00"', "\U0001f600"),
        (rb'"\ud83d"', "\ufffd"),
        (rb'"\ude00\ud83d"', "\ufffd\ufffd"),
        (rb'"\ud83d\ud83d\ude00"', "\ufffd\U0001f600"),
        (rb'"\\ud83d"', "\\ud83d"),
        (rb'"\\\ud83d"', "\\\ufffd"),
        (rb'"\ud83d\\ude00"', "\ufffd\\ude00"),
        (rb'"\uD83D \n\u00e9"', "\ufffd \n\u00e9"),
        ("\ud83d\ude00 \u20ac".join('""').encode("utf-8", "surrogatepass"), "\ufffd\ufffd \u20ac"),
        ('"\ud7ff\ue000\uffff"'.encode(), "\ud7ff\ue000\uffff"),
    ],
)
def test_half_surrogates_become_one_replacement_each_and_pairs_stay(text: bytes, right: str) -> None:
    assert loaded(clean(text)) == right


@given(st.text(alphabet=st.sampled_from('\\"nud8dDeEfF0019\u20ac'), max_size=60))
def test_what_is_json_stays_the_same_json_but_for_halves(inner: str) -> None:
    text = f'"{inner}"'.encode()
    try:
        before = json.loads(text)
    except ValueError:
        return
    after = json.loads(clean(text))
    assert after == re.sub("[\ud800-\udfff]", "\ufffd", before)
    after.encode()


def test_what_has_no_half_is_not_copied() -> None:
    text = rb'"\ud83d\ude00 \\ud83d plain"'
    assert clean(text) is text


@given(TOKENS)
def test_depth_is_counted_outside_of_strings(text: str) -> None:
    deepest = nested = 0
    in_string = escaped = False
    for character in text:
        if in_string:
            in_string = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            in_string = True
        elif character in "[{":
            nested += 1
            deepest = max(deepest, nested)
        elif character in "]}":
            nested -= 1
    assert measure(text.encode()).depth == deepest


@pytest.mark.parametrize(
    ("text", "right"),
    [
        (b"[]", 0),
        (b"[{}]", 0),
        (rb'[{"a":1,"b:":":","\\":{"c":1,"d":[{"e":1}]}}, {"f" : 2}]', 4),
        (b'{"a":{"b":1}}', 1),
        (b'{"a":1}', 0),
        (b'[{"a":1', 1),
    ],
)
def test_fields_are_counted_of_the_objects_in_a_list(text: bytes, right: int) -> None:
    assert measure(text).fields == right


@pytest.mark.parametrize(
    ("text", "right"),
    [
        (b'["' + b"a" * 8 * MIB + b'"]', 1),
        (b'["' + rb"\n" * 4 * MIB + b'"]', 1),
        (b'["' + rb"\"" * 4 * MIB, 1),  # never closed: a scan that began again at every quote would take hours
        (b'["' + b"\\" * 8 * MIB, 1),
        (b"[" * MIB, MIB),
    ],
    ids=["plain", "escapes", "open quotes", "backslashes", "brackets"],
)
def test_megabytes_are_measured_in_one_pass(text: bytes, right: int) -> None:
    assert measure(text).depth == right
    assert clean(text) is text


def test_megabytes_of_halves_are_cleaned_in_one_pass() -> None:
    assert clean(b'"' + rb"\ud800" * MIB + b'"') == b'"' + rb"\ufffd" * MIB + b'"'


@pytest.mark.parametrize("text", [b"", b"abc", "\u20ac" * 65_535 + "\U0001f600", "a" * 65_535 + "\u20ac"])
def test_utf8_is_told_across_pieces(text: bytes | str) -> None:
    assert is_utf8(text if isinstance(text, bytes) else text.encode())


@pytest.mark.parametrize("text", [b"\xff", b"a\xe2\x82", b"\xed\xa0\x80", b"a" * 65_535 + b"\xe2\x82", b"\xc0\xaf"])
def test_what_is_no_utf8_is_told(text: bytes) -> None:
    assert not is_utf8(text)
