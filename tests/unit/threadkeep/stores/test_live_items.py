"""What streams in a region, as an item, reads alike from the table and from a record of its stream."""

from __future__ import annotations

import base64
import json
from typing import Any

from threadkeep.domain.model import LiveStream
from threadkeep.schema import SORT_KEY
from threadkeep.stores import live_items
from threadkeep.stores.warm_items import text

PARENT = "01a2291a-b20f-7774-a6e7-b3683057b586"
LIVE = LiveStream(
    stream="01a2291a-b227-7143-a96a-8cf553b5be34",
    epoch=1_800_000_000_800,
    offset=0,
    parent=PARENT,
    role="assistant",
    region="us-east-1",
    endpoint="wss://us.chat.example.com/prod",
)


def item(live: LiveStream) -> dict[str, Any]:
    return {
        SORT_KEY: text(live_items.sort_key(live.region)),
        "endpoint": text(live.endpoint or ""),
        live.stream: live_items.stream_value(live, until_ms=1_800_000_900_000),
    }


def as_in_a_record(found: dict[str, Any]) -> dict[str, Any]:
    """As Lambda hands it over: JSON, so bytes are base64 (event of a DynamoDB stream, Lambda developer guide)."""
    record: dict[str, Any] = json.loads(
        json.dumps(found, default=lambda content: base64.b64encode(content).decode("ascii"))
    )
    return record


def test_an_item_of_the_table() -> None:
    assert live_items.streams_of(item(LIVE)) == {LIVE.stream: (LIVE, 1_800_000_900_000)}


def test_an_item_of_a_record() -> None:
    assert live_items.streams_of(as_in_a_record(item(LIVE))) == {LIVE.stream: (LIVE, 1_800_000_900_000)}


def test_of_a_root() -> None:
    (found, _) = live_items.streams_of(as_in_a_record(item(LiveStream(**(_fields(LIVE) | {"parent": None})))))[
        LIVE.stream
    ]
    assert found.parent is None


def _fields(live: LiveStream) -> dict[str, Any]:
    return {name: getattr(live, name) for name in live.__struct_fields__}
