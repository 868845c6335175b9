"""Tombstones and lines of receipts as items of the table, and back."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from threadkeep.domain.erasure import ReceiptLine, Tombstone
from threadkeep.domain.errors import Unreadable
from threadkeep.schema import PARTITION_KEY, SORT_GONE, SORT_KEY
from threadkeep.stores import table_keys
from threadkeep.stores.warm_items import Item, number, text

_FORMAT: Final = 1


def tombstone_attributes(tombstone: Tombstone) -> dict[str, Any]:
    """What a ``gone`` item holds beside its key."""
    return {
        "v": number(_FORMAT),
        "owner": text(tombstone.owner),
        "erased_at": text(tombstone.erased_at),
        "reason": text(tombstone.reason),
        "regions": {"L": [text(region) for region in tombstone.regions]},
        "pitr_days": number(tombstone.pitr_days),
        "second_pass_ms": number(tombstone.second_pass_ms),
    }


def tombstone_from(item: Item) -> Tombstone:
    """The tombstone of a ``gone`` item.

    Raises:
        Unreadable: it is of a format that this version does not know.
    """
    if item["v"]["N"] != str(_FORMAT):
        conversation = table_keys.conversation_of(item[PARTITION_KEY]["S"])
        raise Unreadable(conversation, SORT_GONE, f"its item is of format {item['v']['N']}, not {_FORMAT}")
    return msgspec.convert(
        {
            "owner": item["owner"]["S"],
            "erased_at": item["erased_at"]["S"],
            "reason": item["reason"]["S"],
            "regions": [region["S"] for region in item["regions"]["L"]],
            "pitr_days": int(item["pitr_days"]["N"]),
            "second_pass_ms": int(item["second_pass_ms"]["N"]),
        },
        Tombstone,
    )


def line_from(item: Item) -> ReceiptLine:
    """The line of a receipt."""
    region, store = table_keys.receipt_line_of(item[SORT_KEY]["S"])
    return msgspec.convert(
        {
            "region": region,
            "store": store,
            "found": int(item["found"]["N"]),
            "removed": int(item["removed"]["N"]),
            "passes": int(item["passes"]["N"]),
            "state": item["state"]["S"],
            "updated_at": item["updated_at"]["S"],
        },
        ReceiptLine,
    )
