"""How small a segment is, and what of it a reader of another age can bear."""

from __future__ import annotations

import gzip
import itertools
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from tests.support.conversations import NOW_MS, message, text_parts
from threadkeep.domain import ids
from threadkeep.domain.json_values import encode
from threadkeep.domain.model import ConversationKey, StoredMessage
from threadkeep.stores import segments
from threadkeep.stores.segments import Line, SegmentWriter, read_lines

CHATS = Path(__file__).parents[3] / "data" / "chats-demo.jsonl"
KEY = ConversationKey("acme", ids.mint(NOW_MS))


def spoken(count: int) -> list[StoredMessage]:
    """So many messages as people and models wrote them, the same texts again where there are no more."""
    chats = [json.loads(line)["messages"] for line in CHATS.read_text("utf-8").splitlines()]
    said: list[StoredMessage] = []
    for number, turn in enumerate(itertools.islice(itertools.cycle(itertools.chain(*chats)), count)):
        at_ms = NOW_MS + 20_000 * number
        fields: dict[str, Any] = {"parent": said[-1].message.id} if said else {}
        if "model" in turn:
            fields |= {"model": turn["model"], "usage": {"output_tokens": Raw(str(len(turn["text"]) // 4).encode())}}
        made = message(KEY, text_parts(turn["text"]), now_ms=at_ms, role=turn["role"], **fields)
        said.append(StoredMessage(made, at_ms if turn["role"] == "assistant" else 0))
    return said


def test_a_member_takes_at_most_nine_twentieths_of_its_raw_text() -> None:
    """One ranged read of it is what a page of a cold conversation costs; half of what is said, without what is around.

    Measured 2026-11-29 with these texts: 0.34 and 0.45.
    """
    said = spoken(5_000)
    writer = SegmentWriter(KEY)
    for stored in said:
        writer.add(Line.of(stored))
    segment = writer.finish()
    left = iter(said)
    for member in segment.members:
        held = list(itertools.islice(left, member.count))
        raw = sum(len(Line.of(one).to_bytes()) for one in held)
        text = sum(len(msgspec.json.decode(part["text"]).encode()) for one in held for part in one.message.parts or ())
        assert member.size_bytes <= 0.45 * raw
        assert member.size_bytes <= 0.5 * text
    assert next(left, None) is None


def test_messages_that_fit_a_segment_by_what_they_say_fit_it_with_all_their_line_breaks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who gathers them counts the messages as they are; an archiver that is then refused would be so for ever."""
    monkeypatch.setattr(segments, "SEGMENT_BYTES_MAX", 300_000)
    spread = ({"type": Raw(b'"data"'), "spread": Raw(b"[" + b"\n\r" * 11_000 + b"]")},)
    writer = SegmentWriter(KEY)
    size_bytes = count = 0
    while True:
        stored = StoredMessage(message(KEY, spread, now_ms=NOW_MS + count), 1)
        size_bytes += len(encode(stored))
        if size_bytes > 300_000:
            break
        writer.add(Line.of(stored))
        count += 1
    segment = writer.finish()
    assert len(gzip.decompress(segment.content)) > 300_000
    assert sum(member.count for member in segment.members) == count > 10
    assert next(read_lines(segment.content)).parts == spread


def test_a_line_may_say_more_than_this_version_knows() -> None:
    (stored,) = spoken(1)
    line = Line.of(stored).to_bytes()
    (read,) = read_lines(gzip.compress(line[:-2] + b',"later":{"x":[1]}}\n'))
    assert read.to_stored() == stored


@pytest.mark.parametrize("text", ["", "\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e", 'a\n"b"\r\\n', "\x00", "\U0001f3a8"])
def test_no_text_breaks_a_line(text: str) -> None:
    """What Python, or anybody else, takes for the end of a line, is none here but a line feed."""
    said = [
        StoredMessage(message(KEY, text_parts(text), now_ms=NOW_MS + number, metadata={text: Raw(b"1")}))
        for number in range(3)
    ]
    writer = SegmentWriter(KEY)
    for stored in said:
        writer.add(Line.of(stored))
    segment = writer.finish()
    assert gzip.decompress(segment.content).count(b"\n") == 3
    assert b"\r" not in gzip.decompress(segment.content)
    assert [line.to_stored() for line in read_lines(segment.content)] == said
