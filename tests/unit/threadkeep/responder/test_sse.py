from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from threadkeep.responder.sse import EVENT_BYTES_MAX, EventReader, EventTooLarge

STREAM = (
    b"\xef\xbb\xbfdata: one\n\n"
    b": keep-alive\n\n"
    b"event: message\r\nid: 7\r\ndata:two\r\ndata:  lines\r\n\r\n"
    b"retry: 3\n\n"
    b"data\n\n"
    b"data: na\xc3\xafve \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x91\xa9\n\n"
    b"data: never ended\n"
)
EVENTS = ["one", "two\n lines", "", "naïve 日本 👩"]


def read(*reads: bytes) -> list[str]:
    reader = EventReader()
    return [data for piece in reads for data in reader.feed(piece)]


def test_whole_events_are_read() -> None:
    assert read(STREAM) == EVENTS


def test_bytes_may_come_one_by_one() -> None:
    assert read(*(bytes([byte]) for byte in STREAM)) == EVENTS


@settings(deadline=None)
@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_the_cuts_make_no_difference(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(STREAM)]
    assert read(*(STREAM[start:end] for start, end in pairwise(edges))) == EVENTS


def test_an_event_is_given_as_soon_as_it_is_whole() -> None:
    reader = EventReader()
    assert list(reader.feed(b"data: a\n")) == []
    assert list(reader.feed(b"\ndata: b")) == ["a"]
    assert list(reader.feed(b"\r\n\r\n")) == ["b"]


def test_what_is_no_utf8_is_replaced() -> None:
    assert read(b"data: a\xffb\n\n") == ["a\ufffdb"]


@pytest.mark.parametrize("piece", [b"x" * 65_536, b"data: " + b"x" * 65_530 + b"\n"])
def test_an_event_without_end_is_refused(piece: bytes) -> None:
    reader = EventReader()
    for _ in range(EVENT_BYTES_MAX // 65_536):
        assert list(reader.feed(piece)) == []
    with pytest.raises(EventTooLarge):
        [*reader.feed(piece), *reader.feed(piece)]
