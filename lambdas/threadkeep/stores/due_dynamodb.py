"""What is due for the archive: the sparse index over due entries, which are items of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from threadkeep.domain import times
from threadkeep.ports import DueEntry
from threadkeep.schema import DUE_INDEX, DUE_KEY, DUE_SORT, PARTITION_KEY, SORT_DUE
from threadkeep.stores import table_keys, warm_items
from threadkeep.stores.aws_faults import warm_unavailable
from threadkeep.stores.warm_items import primary_key, text
from threadkeep.stores.write_if import write_if

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class DueDynamoDB:
    """`threadkeep.ports.DueList` on the index `threadkeep.schema.DUE_INDEX`.

    Args:
        client: a DynamoDB client, built with `threadkeep.stores.aws_config.STORE`.
        table: the table's name.
    """

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    @warm_unavailable()
    def read(self, day: str, shard: int, *, until_ms: int, limit: int, after: DueEntry | None) -> tuple[DueEntry, ...]:
        """See `DueList`. One query, unless its page of 1 MB ends before the limit does."""
        found: list[DueEntry] = []
        start: dict[str, Any] = {} if after is None else {"ExclusiveStartKey": _index_key(after)}
        while len(found) < limit:
            answer = self._client.query(
                TableName=self._table,
                IndexName=DUE_INDEX,
                Limit=limit - len(found),
                KeyConditionExpression="#key = :key AND #due <= :until",
                ExpressionAttributeNames={"#key": DUE_KEY, "#due": DUE_SORT},
                ExpressionAttributeValues={":key": text(f"{day}#{shard}"), ":until": text(times.to_rfc3339(until_ms))},
                **start,
            )
            found += [
                DueEntry(table_keys.key_of(item[PARTITION_KEY]["S"]), item[DUE_SORT]["S"]) for item in answer["Items"]
            ]
            if "LastEvaluatedKey" not in answer:
                break
            start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}
        return tuple(found)

    @warm_unavailable()
    def refile(self, entry: DueEntry, *, due_ms: int | None) -> bool:
        """See `DueList`. Conditional on what the index said, which may be old, and never a new entry's beginning."""
        names = {"#key": DUE_KEY, "#due": DUE_SORT}
        values: dict[str, Any] = {":was": text(entry.due_at)}
        expression = "REMOVE #key, #due"
        if due_ms is not None:
            expression = "SET #key = :key, #due = :due"
            filed = warm_items.due(entry.key, due_ms)
            values |= {":key": filed[DUE_KEY], ":due": filed[DUE_SORT]}
        answer = write_if(
            self._client.update_item,
            TableName=self._table,
            Key=primary_key(entry.key, SORT_DUE),
            UpdateExpression=expression,
            ConditionExpression="#due = :was",
            ExpressionAttributeNames=names,
            ExpressionAttributeValues=values,
        )
        return answer is not None


def _index_key(entry: DueEntry) -> dict[str, Any]:
    """Where an entry stands in the index, for the next page to begin behind it."""
    due_key = table_keys.due_key(entry.key.conversation, entry.due_at)
    return primary_key(entry.key, SORT_DUE) | {DUE_KEY: text(due_key), DUE_SORT: text(entry.due_at)}
