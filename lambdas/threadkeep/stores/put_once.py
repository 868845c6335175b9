"""Putting an item that is never written over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from threadkeep.domain.errors import WarmUnavailable
from threadkeep.schema import PARTITION_KEY, SORT_KEY
from threadkeep.stores.aws_faults import code_of
from threadkeep.stores.warm_items import Item
from threadkeep.stores.write_if import REFUSED

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


def put_once(client: DynamoDBClient, table: str, item: dict[str, Any]) -> Item | None:
    """Put an item where there is none; else the one that stands there.

    Raises:
        WarmUnavailable: it was refused for an item that has been removed since.
    """
    try:
        client.put_item(
            TableName=table,
            Item=item,
            ConditionExpression=f"attribute_not_exists({PARTITION_KEY})",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    except ClientError as error:
        if code_of(error) != REFUSED:
            raise
        told: dict[str, Any] = dict(error.response)
        # Not every implementation of the API returns the item with the refusal.
        existing: Item | None = told.get("Item") or _read(client, table, item)
        if existing is None:
            raise WarmUnavailable("PutItem: refused for an item that has been removed since") from error
        return existing
    return None


def _read(client: DynamoDBClient, table: str, item: dict[str, Any]) -> Item | None:
    key = {name: item[name] for name in (PARTITION_KEY, SORT_KEY)}
    return client.get_item(TableName=table, Key=key, ConsistentRead=True).get("Item")
