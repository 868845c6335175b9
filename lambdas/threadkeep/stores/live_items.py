"""The item ``live#<region>`` of a conversation: what streams in that region, an attribute a stream, by its id.

Of a stream: ``e`` epoch, ``p`` parent (the 16 bytes of its id; absent for a root), ``r`` role, ``x`` until when it is
believed (ms). Beside them ``v``, ``endpoint`` and the time from which on the table may drop the item. One without a
stream says nothing: it is not deleted, since that would take a right to delete messages too, but runs out.
"""

from __future__ import annotations

import base64
import uuid
from typing import Any, Final

from threadkeep.domain.ids import is_id
from threadkeep.domain.model import LiveStream
from threadkeep.schema import SORT_KEY, SORT_LIVE
from threadkeep.stores.warm_items import Item, number, text

FORMAT: Final = 1


def sort_key(region: str) -> str:
    """Of a region's item."""
    return SORT_LIVE + region


def region_of(sort_key_: str) -> str:
    """The region whose item it is."""
    return sort_key_.removeprefix(SORT_LIVE)


def stream_value(live: LiveStream, *, until_ms: int) -> dict[str, Any]:
    """The attribute of a stream."""
    value: dict[str, Any] = {"e": number(live.epoch), "r": text(live.role), "x": number(until_ms)}
    if live.parent is not None:
        value["p"] = {"B": uuid.UUID(live.parent).bytes}
    return {"M": value}


def streams_of(item: Item) -> dict[str, tuple[LiveStream, int]]:
    """The streams of an item, by their ids, each with until when it is believed (ms)."""
    region, endpoint = region_of(item[SORT_KEY]["S"]), item["endpoint"]["S"]
    return {
        name: (_stream_from(name, value["M"], region=region, endpoint=endpoint), int(value["M"]["x"]["N"]))
        for name, value in item.items()
        if is_id(name)
    }


def _stream_from(stream: str, value: dict[str, Any], *, region: str, endpoint: str) -> LiveStream:
    return LiveStream(
        stream=stream,
        epoch=int(value["e"]["N"]),
        offset=0,
        parent=_parent_from(value["p"]["B"]) if "p" in value else None,
        role=value["r"]["S"],
        region=region,
        endpoint=endpoint,
    )


def _parent_from(content: bytes | str) -> str:
    """An id out of its bytes, which a record of the table's stream has in base64, since Lambda's events are JSON."""
    return str(uuid.UUID(bytes=base64.b64decode(content) if isinstance(content, str) else content))
