"""Reading many items at once, none of them dropped."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from threadkeep.domain.errors import WarmUnavailable
from threadkeep.schema import PARTITION_KEY, SORT_KEY
from threadkeep.stores.attempts import attempts
from threadkeep.stores.warm_items import Item

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

KEYS_MAX: Final = 100
"""Keys of one BatchGetItem (DynamoDB API reference, read 2026-11-29)."""
ATTEMPTS_MAX: Final = 5


def batch_get(
    client: DynamoDBClient,
    table: str,
    keys: Sequence[dict[str, Any]],
    sleep: Callable[[float], None] = time.sleep,
    *,
    consistent: bool = True,
) -> dict[tuple[str, str], Item]:
    """The items that exist among these keys, by partition and sort key.

    Not ``consistent``, it costs half and may lack what was written a moment ago.

    Raises:
        WarmUnavailable: after `ATTEMPTS_MAX` attempts some keys were still left unprocessed.
    """
    found: dict[tuple[str, str], Item] = {}
    for start in range(0, len(keys), KEYS_MAX):
        batch = list(keys[start : start + KEYS_MAX])
        for item in _whole_batch(client, table, batch, sleep, consistent=consistent):
            found[item[PARTITION_KEY]["S"], item[SORT_KEY]["S"]] = item
    return found


def _whole_batch(
    client: DynamoDBClient,
    table: str,
    keys: list[dict[str, Any]],
    sleep: Callable[[float], None],
    *,
    consistent: bool,
) -> Iterator[Item]:
    """One batch, asked again for what DynamoDB left out (it may: for throttling, or beyond 16 MB)."""
    for _ in attempts(ATTEMPTS_MAX, sleep):
        answer = client.batch_get_item(RequestItems={table: {"Keys": keys, "ConsistentRead": consistent}})
        yield from answer["Responses"].get(table, [])
        unprocessed: dict[str, Any] = dict(answer.get("UnprocessedKeys", {}))
        keys = unprocessed.get(table, {}).get("Keys", [])
        if not keys:
            return
    raise WarmUnavailable(f"BatchGetItem: {len(keys)} keys left unprocessed after {ATTEMPTS_MAX} attempts")
