"""The table's replicas in other regions, each asked by a client of its own, made when it is first needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from threadkeep.domain import ids, times
from threadkeep.domain.contests import Claim, Head
from threadkeep.domain.model import ConversationKey, StoredMessage
from threadkeep.ports import Gone
from threadkeep.schema import OWNER_SORT, PARTITION_KEY, SORT_GONE, SORT_HEAD, SORT_KEY, SORT_MESSAGE, SORT_PULSE
from threadkeep.stores import contest_items, erasure_items, table_keys, warm_items
from threadkeep.stores.aws_faults import warm_unavailable
from threadkeep.stores.warm_items import text

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class OtherTablesDynamoDB:
    """`threadkeep.ports.OtherTables` on the table of `threadkeep.schema`.

    Args:
        client: makes a region's client, built with `threadkeep.stores.aws_config.OTHER_REGION`.
        table: the table's name, the same everywhere.
    """

    def __init__(self, client: Callable[[str], DynamoDBClient], table: str) -> None:
        self._client = cache(client)
        self._table = table

    @warm_unavailable()
    def read_message(self, region: str, key: ConversationKey, message: str) -> StoredMessage | None:
        """See `OtherTables`. Strongly consistent there, since a moment ago may be all the time there was."""
        names = (SORT_KEY, *warm_items.PAGE_ATTRIBUTES)
        answer = self._client(region).get_item(
            TableName=self._table,
            Key=warm_items.primary_key(key, table_keys.message(message)),
            ConsistentRead=True,
            ProjectionExpression=", ".join(f"#{name}" for name in names),
            ExpressionAttributeNames={f"#{name}": name for name in names},
        )
        item = answer.get("Item")
        return None if item is None else warm_items.stored_from(key, item, item[warm_items.BODY]["B"])

    @warm_unavailable()
    def read_head(self, region: str, key: ConversationKey) -> Head | Gone | None:
        """See `OtherTables`. The head first: who deletes writes the tombstone before, so one of the two is seen."""
        head = self._item(region, key, SORT_HEAD)
        tombstone = self._item(region, key, SORT_GONE)
        if tombstone is not None:
            return Gone(erasure_items.tombstone_from(tombstone))
        return None if head is None else contest_items.head_from(head)

    @warm_unavailable()
    def read_claim(self, region: str, key: ConversationKey) -> Claim | None:
        """See `OtherTables`. Strongly consistent there: of two who each claim and then look, one sees the other."""
        claim = self._item(region, key, contest_items.claim_key(region))
        return None if claim is None else contest_items.claim_from(claim)

    @warm_unavailable()
    def read_active_at(self, region: str, key: ConversationKey) -> str | None:
        """See `OtherTables`. One query, back from the pulse, before which nothing sorts but the newest message."""
        answer = self._client(region).query(
            TableName=self._table,
            ConsistentRead=True,
            KeyConditionExpression="#pk = :pk AND #sk BETWEEN :messages AND :pulse",
            ProjectionExpression="#sk, #active_at",
            ExpressionAttributeNames={"#pk": PARTITION_KEY, "#sk": SORT_KEY, "#active_at": OWNER_SORT},
            ExpressionAttributeValues={
                ":pk": text(table_keys.partition(key)),
                ":messages": text(SORT_MESSAGE),
                ":pulse": text(SORT_PULSE),
            },
            ScanIndexForward=False,
            Limit=2,
        )
        return max(map(_active_at, answer["Items"]), default=None)

    def _item(self, region: str, key: ConversationKey, sort_key: str) -> dict[str, Any] | None:
        answer = self._client(region).get_item(
            TableName=self._table, Key=warm_items.primary_key(key, sort_key), ConsistentRead=True
        )
        return answer.get("Item")


def _active_at(item: dict[str, Any]) -> str:
    """When a pulse says that its conversation was active, or when a message began."""
    sort_key = item[SORT_KEY]["S"]
    if sort_key == SORT_PULSE:
        return str(item[OWNER_SORT]["S"])
    return times.to_rfc3339(ids.time_ms(table_keys.message_of(sort_key)))
