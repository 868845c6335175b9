"""Tombstones and receipts in DynamoDB: ``gone`` and the items that sort right behind it in its partition."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from threadkeep.domain import times
from threadkeep.domain.bounds import ERASURE_ITEMS_MAX
from threadkeep.domain.erasure import ReceiptLine, Store, Tombstone
from threadkeep.domain.model import ConversationKey
from threadkeep.schema import PARTITION_KEY, SORT_GONE, SORT_KEY
from threadkeep.stores import erasure_items, table_keys
from threadkeep.stores.aws_faults import warm_unavailable
from threadkeep.stores.batch_delete import batch_delete
from threadkeep.stores.batch_get import batch_get
from threadkeep.stores.put_once import put_once
from threadkeep.stores.warm_items import primary_key, text

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_BEHIND_LINES: Final = SORT_GONE + "#~"


class ErasuresDynamoDB:
    """`threadkeep.ports.ErasureStore` on the table of `threadkeep.schema`.

    Args:
        client: a DynamoDB client, built with `threadkeep.stores.aws_config.STORE`.
        table: the table's name.
        sleep: seconds to pause between attempts at a batch; tests own it.
    """

    def __init__(self, client: DynamoDBClient, table: str, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._client = client
        self._table = table
        self._sleep = sleep

    @warm_unavailable()
    def put_tombstone(self, key: ConversationKey, tombstone: Tombstone) -> Tombstone | None:
        """See `ErasureStore`."""
        item = primary_key(key, SORT_GONE) | erasure_items.tombstone_attributes(tombstone)
        standing = put_once(self._client, self._table, item)
        return None if standing is None else erasure_items.tombstone_from(standing)

    @warm_unavailable()
    def read(self, key: ConversationKey) -> tuple[Tombstone | None, tuple[ReceiptLine, ...]]:
        """See `ErasureStore`. One query: a receipt is a few lines a region."""
        answer = self._client.query(
            TableName=self._table,
            ConsistentRead=True,
            KeyConditionExpression="#pk = :pk AND #sk BETWEEN :gone AND :behind",
            ExpressionAttributeNames={"#pk": PARTITION_KEY, "#sk": SORT_KEY},
            ExpressionAttributeValues={
                ":pk": text(table_keys.partition(key)),
                ":gone": text(SORT_GONE),
                ":behind": text(_BEHIND_LINES),
            },
        )
        items = {str(item[SORT_KEY]["S"]): item for item in answer["Items"]}
        tombstone = items.pop(SORT_GONE, None)
        lines = tuple(erasure_items.line_from(items[name]) for name in sorted(items))
        return None if tombstone is None else erasure_items.tombstone_from(tombstone), lines

    @warm_unavailable()
    def gone(self, keys: Sequence[ConversationKey]) -> frozenset[ConversationKey]:
        """See `ErasureStore`. At half the price: what lands so soon behind a tombstone is taken by the second pass."""
        wanted = [primary_key(key, SORT_GONE) for key in keys]
        found = batch_get(self._client, self._table, wanted, self._sleep, consistent=False)
        return frozenset(key for key in keys if (table_keys.partition(key), SORT_GONE) in found)

    @warm_unavailable()
    def note(
        self, key: ConversationKey, region: str, store: Store, *, count: int, is_pass: bool, is_done: bool, now_ms: int
    ) -> None:
        """See `ErasureStore`. Numbers are added where they lie; a line that is done is never said to run again."""
        state = ":state" if is_done else "if_not_exists(#state, :state)"
        self._client.update_item(
            TableName=self._table,
            Key=primary_key(key, table_keys.receipt_line(region, store)),
            UpdateExpression=f"ADD #found :count, #removed :count, #passes :passes SET #state = {state}, #at = :at",
            ExpressionAttributeNames={
                "#found": "found",
                "#removed": "removed",
                "#passes": "passes",
                "#state": "state",
                "#at": "updated_at",
            },
            ExpressionAttributeValues={
                ":count": {"N": str(count)},
                ":passes": {"N": str(int(is_pass))},
                ":state": text("done" if is_done else "running"),
                ":at": text(times.to_rfc3339(now_ms)),
            },
        )

    @warm_unavailable()
    def clear(self, key: ConversationKey) -> int:
        """See `ErasureStore`. Asks for keys only, over as many pages as it takes to find some."""
        found: list[dict[str, Any]] = []
        start: dict[str, Any] = {}
        while len(found) < ERASURE_ITEMS_MAX:
            answer = self._client.query(
                TableName=self._table,
                ConsistentRead=True,
                Limit=ERASURE_ITEMS_MAX,
                KeyConditionExpression="#pk = :pk",
                ProjectionExpression="#pk, #sk",
                ExpressionAttributeNames={"#pk": PARTITION_KEY, "#sk": SORT_KEY},
                ExpressionAttributeValues={":pk": text(table_keys.partition(key))},
                **start,
            )
            found += [dict(item) for item in answer["Items"] if not _is_receipt(str(item[SORT_KEY]["S"]))]
            if "LastEvaluatedKey" not in answer:
                break
            start["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
        found = found[:ERASURE_ITEMS_MAX]
        batch_delete(self._client, self._table, found, self._sleep)
        return len(found)


def _is_receipt(sort_key: str) -> bool:
    """The tombstone, or a line of its receipt."""
    return sort_key == SORT_GONE or sort_key.startswith(SORT_GONE + "#")
