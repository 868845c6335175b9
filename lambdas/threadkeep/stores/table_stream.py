"""Records of the table's stream, as far as we read them."""

from __future__ import annotations

from typing import Any

from threadkeep.domain import ids
from threadkeep.domain.erasure import Landed
from threadkeep.schema import PARTITION_KEY, SORT_GONE, SORT_KEY
from threadkeep.stores import table_keys


def read_landed(record: dict[str, Any]) -> Landed | None:
    """The new item of a conversation that the record tells of.

    None for what else there is: items that changed or went, receipt lines, and items of no conversation.
    """
    keys = record["dynamodb"]["Keys"]
    partition, sort_key = str(keys[PARTITION_KEY]["S"]), str(keys[SORT_KEY]["S"])
    if record["eventName"] != "INSERT" or sort_key.startswith(SORT_GONE + "#"):
        return None
    key = table_keys.key_of(partition)
    return Landed(key, is_tombstone=sort_key == SORT_GONE) if ids.is_id(key.conversation) else None
