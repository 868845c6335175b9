"""Manifests in the table, beside the messages that their segments hold."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from threadkeep.domain.archive import Manifest
from threadkeep.domain.model import ConversationKey
from threadkeep.schema import PARTITION_KEY, SORT_KEY, SORT_SEGMENT
from threadkeep.stores import table_keys
from threadkeep.stores.aws_faults import warm_unavailable
from threadkeep.stores.batch_delete import batch_delete
from threadkeep.stores.manifest_items import manifest_from, manifest_item
from threadkeep.stores.put_once import put_once
from threadkeep.stores.warm_items import primary_key, text

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class ManifestsDynamoDB:
    """`threadkeep.ports.ManifestStore` on the table of `threadkeep.schema`.

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
    def read(self, key: ConversationKey) -> tuple[Manifest, ...]:
        """See `ManifestStore`. One query, of more pages only where the manifests take more than 1 MB."""
        manifests: list[Manifest] = []
        start: dict[str, Any] = {}
        while True:
            answer = self._client.query(
                TableName=self._table,
                ConsistentRead=True,
                KeyConditionExpression="#pk = :pk AND begins_with(#sk, :segment)",
                ExpressionAttributeNames={"#pk": PARTITION_KEY, "#sk": SORT_KEY},
                ExpressionAttributeValues={":pk": text(table_keys.partition(key)), ":segment": text(SORT_SEGMENT)},
                **start,
            )
            manifests += [manifest_from(key, item) for item in answer["Items"]]
            if "LastEvaluatedKey" not in answer:
                return tuple(manifests)
            start["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    @warm_unavailable()
    def put(self, key: ConversationKey, manifest: Manifest) -> Manifest | None:
        """See `ManifestStore`."""
        existing = put_once(self._client, self._table, manifest_item(key, manifest))
        return None if existing is None else manifest_from(key, existing)

    @warm_unavailable()
    def remove_messages(self, key: ConversationKey, messages: Sequence[str]) -> None:
        """See `ManifestStore`."""
        unique = dict.fromkeys(messages)  # DynamoDB refuses a batch that names an item twice
        keys = [primary_key(key, table_keys.message(message)) for message in unique]
        batch_delete(self._client, self._table, keys, self._sleep)
