from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from threadkeep_client.errors import TooLargeError
from threadkeep_client.frames import FRAME_BYTES_MAX, clean, decode, encode, json_bytes, to_json

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(deadline=None, max_examples=50)
@given(JSON)
def test_every_value_comes_back_equal_with_its_kind(value: Any) -> None:
    frame = decode(encode({"type": "x", "value": value}))
    assert frame is not None
    assert repr(frame["value"]) == repr(value)


def test_numbers_keep_their_kind() -> None:
    frame = decode(
        '{"type":"x","n":[1,1.0,1e0,-0.0,9007199254740993,123456789012345678901234567890,1e400,-1' + "0" * 5_000 + "]}"
    )
    assert frame is not None
    assert [repr(number) for number in frame["n"]] == [
        "1",
        "1.0",
        "1.0",
        "-0.0",
        "9007199254740993",
        "123456789012345678901234567890",
        "inf",
        "-inf",
    ]


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
def test_what_json_has_no_word_for_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json(number)


def test_nothing_is_escaped_needlessly() -> None:
    assert to_json(["ä", "あ", "😀", "\u2028", "\x7f", "/"]) == '["ä","あ","😀","\u2028","\x7f","/"]'
    assert to_json('"\\\n\0') == '"\\"\\\\\\n\\u0000"'


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("plain", "plain"),
        ("\ud83d\ude00", "😀"),
        ("a\ud83d", "a\ufffd"),
        ("\ude00b", "\ufffdb"),
        ("\ud83d\ud83d\ude00", "\ufffd😀"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\0\ud800\0", "\0\ufffd\0"),
    ],
)
def test_half_surrogates_are_joined_or_replaced(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned
    assert to_json({"k" + text: text}).encode()


def test_bytes_are_counted_as_they_go_over_the_wire() -> None:
    assert json_bytes("あ") == 5
    assert json_bytes("😀") == 6
    assert json_bytes("\0") == 8
    assert json_bytes("\ud83d\ude00") == 6


def test_a_frame_is_at_most_24_kib_of_utf8() -> None:
    room = FRAME_BYTES_MAX - len(encode({"action": "a", "text": ""}))
    assert len(encode({"action": "a", "text": "あ" * (room // 3)}).encode()) > FRAME_BYTES_MAX - 3
    with pytest.raises(TooLargeError, match="a takes 24,57") as refused:
        encode({"action": "a", "text": "あ" * (room // 3 + 1)})
    assert refused.value.code == "too_large"


@pytest.mark.parametrize(
    "text",
    [
        '{"message":"Internal server error","connectionId":"c","requestId":"r"}',
        "Task timed out",
        "",
        "[]",
        '{"type":1}',
        '{"type":"x","n":NaN}',
        "[" * 100_000,
        b"\xff",
    ],
)
def test_what_is_no_frame_of_ours_is_none(text: str | bytes) -> None:
    assert decode(text) is None
