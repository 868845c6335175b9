"""A user's conversations, newest activity first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from threadkeep.domain.model import Conversation, ConversationKey
from threadkeep.ports import ConversationPage
from threadkeep.schema import OWNER_INDEX, OWNER_KEY, OWNER_SORT, PARTITION_KEY, SORT_GONE, SORT_HEAD, SORT_PULSE
from threadkeep.stores import table_keys, warm_items
from threadkeep.stores.batch_get import batch_get
from threadkeep.stores.list_cursor import ListCursor
from threadkeep.stores.warm_items import primary_key, text

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

LIST_ROUNDS_MAX: Final = 5
"""Queries for one page of conversations: entries that stand for nothing (any more) are skipped only so long."""


class OwnerList:
    """The index names the conversations, the heads tell of them, the tombstones hide them.

    Args:
        client: a DynamoDB client.
        table: the table's name.
        sleep: seconds to pause between attempts at a batch.
    """

    def __init__(self, client: DynamoDBClient, table: str, sleep: Callable[[float], None]) -> None:
        self._client = client
        self._table = table
        self._sleep = sleep

    def read(self, tenant: str, owner: str, *, limit: int, cursor: str | None) -> ConversationPage:
        """A page; its cursor is the last place looked at. The page may hold less than it could, and yet go on.

        Raises:
            Refused: ``bad_request`` for a cursor that no page gave.
            WarmUnavailable: some heads could not be read.
        """
        place = None if cursor is None else ListCursor.from_text(cursor)
        found: list[Conversation] = []
        for _ in range(LIST_ROUNDS_MAX):
            # One more than wanted shows whether the list goes on.
            entries, more = self._query(tenant, owner, place, limit + 1 - len(found))
            wanted = entries[: limit - len(found)]
            found += self._visible(tenant, owner, wanted)
            place = wanted[-1] if wanted else place
            if not more and len(wanted) == len(entries):
                return ConversationPage(tuple(found), None)
            if len(found) == limit:
                break
        return ConversationPage(tuple(found), None if place is None else place.to_text())

    def _query(self, tenant: str, owner: str, place: ListCursor | None, limit: int) -> tuple[list[ListCursor], bool]:
        owner_key = text(table_keys.owner(tenant, owner))
        start: dict[str, Any] = {}
        if place is not None:
            key = primary_key(ConversationKey(tenant, place.conversation), SORT_PULSE)
            start["ExclusiveStartKey"] = key | {OWNER_KEY: owner_key, OWNER_SORT: text(place.active_at)}
        answer = self._client.query(
            TableName=self._table,
            IndexName=OWNER_INDEX,
            ScanIndexForward=False,
            Limit=limit,
            KeyConditionExpression="#owner = :owner",
            ExpressionAttributeNames={"#owner": OWNER_KEY},
            ExpressionAttributeValues={":owner": owner_key},
            **start,
        )
        entries = [
            ListCursor(item[OWNER_SORT]["S"], table_keys.conversation_of(item[PARTITION_KEY]["S"]))
            for item in answer["Items"]
        ]
        return entries, "LastEvaluatedKey" in answer

    def _visible(self, tenant: str, owner: str, entries: list[ListCursor]) -> Iterator[Conversation]:
        keys = [ConversationKey(tenant, entry.conversation) for entry in entries]
        wanted = [primary_key(key, sort_key) for key in keys for sort_key in (SORT_GONE, SORT_HEAD)]
        items = batch_get(self._client, self._table, wanted, self._sleep)
        for key, entry in zip(keys, entries, strict=True):
            partition = table_keys.partition(key)
            head = items.get((partition, SORT_HEAD))
            # A pulse without a head, or with another's, is what an attempt to create left behind.
            if head is not None and head["owner"]["S"] == owner and (partition, SORT_GONE) not in items:
                yield warm_items.conversation_from(head, entry.active_at)
