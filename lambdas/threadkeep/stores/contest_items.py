"""What items of the table tell of contests (`threadkeep.domain.contests`).

A head has ``claimed``, when its id was claimed (ms), where there are several regions. The item ``claim#<region>`` says
who claims an id in that region: ``owner``, and ``at`` (ms). What a message's item has is in
`threadkeep.stores.warm_items`.
"""

from __future__ import annotations

import base64
from typing import Any, Final

from threadkeep.domain.bounds import ID_CLAIM_MS
from threadkeep.domain.contests import Claim, Ending, Head
from threadkeep.domain.model import ConversationKey
from threadkeep.schema import SORT_CLAIM, TTL_ATTRIBUTE
from threadkeep.stores.warm_items import Item, conversation_from, head_item, number, primary_key, text

CLAIMED: Final = "claimed"
OWNER: Final = "owner"
STATUS: Final = "s"
EPOCH: Final = "e"
_FORMAT: Final = 1
_MS: Final = 1_000


def claim_key(region: str) -> str:
    """Sort key of a region's claim."""
    return SORT_CLAIM + region


def region_of(sort_key: str) -> str:
    """The region whose claim it is."""
    return sort_key.removeprefix(SORT_CLAIM)


def claim_item(key: ConversationKey, region: str, claim: Claim) -> dict[str, Any]:
    """A region's claim. The table drops it some time after `ID_CLAIM_MS`."""
    return primary_key(key, claim_key(region)) | {
        "v": number(_FORMAT),
        OWNER: text(claim.owner),
        "at": number(claim.at_ms),
        TTL_ATTRIBUTE: number((claim.at_ms + ID_CLAIM_MS) // _MS),
    }


def claim_from(item: Item) -> Claim:
    """The claim of such an item."""
    return Claim(item[OWNER]["S"], int(item["at"]["N"]))


def claimed_head_item(tenant: str, head: Head) -> dict[str, Any]:
    """A head that says when its id was claimed."""
    claimed = {CLAIMED: number(head.claimed_ms)} if head.claimed_ms else {}
    return head_item(tenant, head.conversation) | claimed


def head_from(item: Item) -> Head:
    """The head of its item."""
    return Head(conversation_from(item), claim_of_head(item).at_ms)


def claim_of_head(item: Item) -> Claim:
    """Whose a head is, and since when."""
    return Claim(item[OWNER]["S"], int(item[CLAIMED]["N"]) if CLAIMED in item else 0)


def ending_of(item: Item) -> Ending:
    """How the message of an item came to its end."""
    return Ending(is_complete=STATUS not in item, epoch=int(item[EPOCH]["N"]) if EPOCH in item else 0)


def from_stream(image: Item) -> dict[str, Any]:
    """An item out of a record of the table's stream, which has bytes in base64, since Lambda's events are JSON."""
    return {name: _value(value) for name, value in image.items()}


def _value(value: dict[str, Any]) -> dict[str, Any]:
    ((kind, content),) = value.items()
    if kind == "B" and isinstance(content, str):
        return {"B": base64.b64decode(content)}
    return {kind: content}
