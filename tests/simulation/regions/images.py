"""Records of a replica's stream, as Lambda is given them, with the images that the announcer reads."""

from __future__ import annotations

from typing import Any

from tests.simulation.regions.table import Address, Change
from threadkeep.domain.model import StoredMessage
from threadkeep.schema import PARTITION_KEY, REGION_ATTRIBUTE, SORT_KEY, SORT_ROOTS
from threadkeep.stores import contest_items, live_items, table_keys, warm_items
from threadkeep.stores.packing import pack


def record(change: Change, old: Any, number: int) -> dict[str, Any]:
    """The record of a change, behind so many others."""
    key, sort_key = change.address
    kind = "REMOVE" if change.value is None else "INSERT" if old is None else "MODIFY"
    told: dict[str, Any] = {
        "Keys": {PARTITION_KEY: {"S": table_keys.partition(key)}, SORT_KEY: {"S": sort_key}},
        "SequenceNumber": f"{number:021d}",
    }
    if change.value is not None:
        told["NewImage"] = _image(change.address, change.value, change.region)
    if old is not None:
        told["OldImage"] = _image(change.address, old, change.region) | _body(old)
    return {"eventName": kind, "dynamodb": told}


def _body(old: Any) -> dict[str, Any]:
    """What is read of a message that another one has taken the place of, which is seldom: it may be put back."""
    return {warm_items.BODY: {"B": pack(old.message)}} if isinstance(old, StoredMessage) else {}


def _image(address: Address, value: Any, region: str) -> dict[str, Any]:
    """An item as that region wrote it. What nobody reads of it is left out."""
    key, sort_key = address
    kind = sort_key.partition("#")[0]
    written_by = {REGION_ATTRIBUTE: warm_items.text(region)}
    if kind == "head":
        return contest_items.claimed_head_item(key.tenant, value) | written_by
    if kind == "m":
        return warm_items.message_item(key.tenant, value) | written_by
    item = warm_items.primary_key(key, sort_key)
    if sort_key == SORT_ROOTS:
        return item | written_by
    if kind == "live":
        item["endpoint"] = warm_items.text(endpoint(live_items.region_of(sort_key)))
        item |= {name: live_items.stream_value(live, until_ms=until_ms) for name, (live, until_ms) in value.items()}
    return item


def endpoint(region: str) -> str:
    """A region's own endpoint."""
    return f"wss://{region}.chat.example"
