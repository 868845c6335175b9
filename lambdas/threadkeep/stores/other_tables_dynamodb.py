"""The table's replicas in other regions, each asked by a client of its own, made when it is first needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from threadkeep.domain.model import ConversationKey, StoredMessage
from threadkeep.schema import SORT_KEY
from threadkeep.stores import table_keys, warm_items
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
