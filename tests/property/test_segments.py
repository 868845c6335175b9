"""Whatever JSON clients write, and however they space it: a segment gives it back, and anybody reads its lines."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.conversations import NOW_MS, message
from threadkeep.domain import ids
from threadkeep.domain.json_values import JsonObject, encode, read_object
from threadkeep.domain.model import ConversationKey, StoredMessage
from threadkeep.stores.segments import Line, SegmentWriter, read_lines
from threadkeep.stores.zstandard import decompress

KEY = ConversationKey("acme", ids.mint(NOW_MS))

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def objects(draw: st.DrawFn) -> JsonObject:
    """A client's object, spaced as JSON may be: with line breaks of every kind wherever a token ends."""
    value: dict[str, Any] = draw(st.dictionaries(texts, values, max_size=4))
    written = json.dumps(value, indent=draw(st.sampled_from([None, 0, 2])), ensure_ascii=draw(st.booleans()))
    return read_object(written.replace("\n", draw(st.sampled_from(["\n", "\r\n", "\r", " ", "\n\n"]))).encode())


@given(st.lists(st.tuples(st.lists(objects(), max_size=3), objects()), min_size=1, max_size=5))
def test_a_segment_gives_back_every_byte_of_what_clients_wrote(
    contents: list[tuple[list[JsonObject], JsonObject]],
) -> None:
    said = [
        StoredMessage(message(KEY, tuple(parts), now_ms=NOW_MS + number, metadata=metadata), number)
        for number, (parts, metadata) in enumerate(contents)
    ]
    writer = SegmentWriter(KEY)
    for stored in said:
        writer.add(Line.of(stored))
    segment = writer.finish()
    assert encode([line.to_stored() for line in read_lines(segment.content)]) == encode(said)
    lines = decompress(segment.content).split(b"\n")
    assert lines.pop() == b""
    assert [json.loads(line)["metadata"] for line in lines] == [
        json.loads(encode(metadata)) for _, metadata in contents
    ]
