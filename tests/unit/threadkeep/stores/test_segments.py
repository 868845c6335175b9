"""How small a segment is, and what of it a reader of another age can bear."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from tests.support.conversations import NOW_MS, message, text_parts
from tests.support.metered import as_written, of_usual_sizes
from threadkeep.domain import ids
from threadkeep.domain.json_values import encode
from threadkeep.domain.model import ConversationKey, StoredMessage
from threadkeep.stores import segments
from threadkeep.stores.segments import Line, SegmentWriter, read_lines
from threadkeep.stores.zstandard import compress, decompress

KEY = ConversationKey("acme", ids.mint(NOW_MS))


def spoken(said: Iterator[tuple[str, str]], count: int) -> list[StoredMessage]:
    """So many messages."""
    made: list[StoredMessage] = []
    at_ms, seeded = NOW_MS, random.Random(7)  # noqa: S311 -- a case
    for role, text in itertools.islice(said, count):
        at_ms += seeded.randrange(5_000, 60_000)
        fields: dict[str, Any] = {"parent": made[-1].message.id} if made else {}
        if role == "assistant":
            usage = {"input_tokens": Raw(b"3000"), "output_tokens": Raw(str(len(text) // 4).encode())}
            fields |= {"model": "gpt-4o-2024-05-13", "usage": usage}
        told = message(KEY, text_parts(text), now_ms=at_ms, role=role, **fields)
        made.append(StoredMessage(told, at_ms if role == "assistant" else 0))
    return made


@pytest.mark.parametrize("said", [as_written, of_usual_sizes])
def test_a_member_takes_at_most_nine_twentieths_of_what_is_said_in_it(
    said: Callable[[], Iterator[tuple[str, str]]],
) -> None:
    """One ranged read of it is what a page of a cold conversation costs.

    Measured 2026-11-29: 0.38 to 0.41 of real messages, 0.38 to 0.42 of usual sizes.
    """
    left = iter(spoken(said(), 1_500))
    writer = SegmentWriter(KEY)
    held = list(left)
    for stored in held:
        writer.add(Line.of(stored))
    segment = writer.finish()
    rest = iter(held)
    shares = []
    for member in segment.members:
        texts = [one.message.parts[0]["text"] for one in itertools.islice(rest, member.count) if one.message.parts]
        shares.append(member.size_bytes / sum(len(msgspec.json.decode(text).encode()) for text in texts))
    assert next(rest, None) is None
    assert max(shares) <= 0.44


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
    assert len(decompress(segment.content)) > 300_000
    assert sum(member.count for member in segment.members) == count > 10
    assert next(read_lines(segment.content)).parts == spread


def test_a_line_may_say_more_than_this_version_knows() -> None:
    (stored,) = spoken(as_written(), 1)
    line = Line.of(stored).to_bytes()
    (read,) = read_lines(compress(line[:-2] + b',"later":{"x":[1]}}\n'))
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
    assert decompress(segment.content).count(b"\n") == 3
    assert b"\r" not in decompress(segment.content)
    assert [line.to_stored() for line in read_lines(segment.content)] == said
