"""Deleting many items at once, none of them dropped."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from threadkeep.domain.errors import WarmUnavailable
from threadkeep.stores.attempts import attempts

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

ITEMS_MAX: Final = 25
"""Requests of one BatchWriteItem (DynamoDB API reference, recalled 2026-11-29)."""
ATTEMPTS_MAX: Final = 8


def batch_delete(
    client: DynamoDBClient,
    table: str,
    keys: Sequence[dict[str, Any]],
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Delete the items of these keys, each named once; what is not there is as good as deleted.

    Raises:
        WarmUnavailable: after `ATTEMPTS_MAX` attempts some were still left unprocessed. The others are gone.
    """
    for start in range(0, len(keys), ITEMS_MAX):
        _whole_batch(client, table, list(keys[start : start + ITEMS_MAX]), sleep)


def _whole_batch(
    client: DynamoDBClient, table: str, keys: list[dict[str, Any]], sleep: Callable[[float], None]
) -> None:
    """One batch, asked again for what DynamoDB left out: for want of capacity it answers 200 and says what remains."""
    requests: list[Any] = [{"DeleteRequest": {"Key": key}} for key in keys]
    for _ in attempts(ATTEMPTS_MAX, sleep):
        answer = client.batch_write_item(RequestItems={table: requests})
        requests = list(answer.get("UnprocessedItems", {}).get(table, []))
        if not requests:
            return
    raise WarmUnavailable(f"BatchWriteItem: {len(requests)} items left unprocessed after {ATTEMPTS_MAX} attempts")
