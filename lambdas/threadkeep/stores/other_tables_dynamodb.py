"""The table's replicas in other regions, each asked by a client of its own, made when it is first needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from threadkeep.domain.model import Conversation, ConversationKey, StoredMessage
from threadkeep.ports import Gone
from threadkeep.schema import SORT_GONE, SORT_HEAD, SORT_KEY
from threadkeep.stores import erasure_items, table_keys, warm_items
from threadkeep.stores.aws_faults import warm_unavailable

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
    def read_head(self, region: str, key: ConversationKey) -> Conversation | Gone | None:
        """See `OtherTables`. The head first: who deletes writes the tombstone before, so one of the two is seen."""
        head = self._item(region, key, SORT_HEAD)
        tombstone = self._item(region, key, SORT_GONE)
        if tombstone is not None:
            return Gone(erasure_items.tombstone_from(tombstone))
        return None if head is None else warm_items.conversation_from(head)

    def _item(self, region: str, key: ConversationKey, sort_key: str) -> dict[str, Any] | None:
        answer = self._client(region).get_item(
            TableName=self._table, Key=warm_items.primary_key(key, sort_key), ConsistentRead=True
        )
        return answer.get("Item")
