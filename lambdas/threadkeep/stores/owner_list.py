"""A user's conversations, newest activity first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
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
        service_accounts: tenants and users whose lists are dealt out to `table_keys.OWNER_SHARDS` shards. What an
            account had before it was named is in the first of them, so it may be named at any time; not be taken out.
        sleep: seconds to pause between attempts at a batch.
    """

    def __init__(
        self,
        client: DynamoDBClient,
        table: str,
        service_accounts: Collection[tuple[str, str]],
        sleep: Callable[[float], None],
    ) -> None:
        self._client = client
        self._table = table
        self._service_accounts = frozenset(service_accounts)
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

    def shards_of(self, tenant: str, owner: str) -> int:
        """How many shards the owner's list has."""
        return shards_of(tenant, owner, self._service_accounts)

    def _query(self, tenant: str, owner: str, place: ListCursor | None, limit: int) -> tuple[list[ListCursor], bool]:
        """The entries behind a place, and whether there are more."""
        shards = self.shards_of(tenant, owner)
        if shards == 1:
            return self._ask(tenant, table_keys.owner(tenant, owner), limit, start=place)
        read = [self._shard(tenant, table_keys.owner(tenant, owner, shard), place, limit) for shard in range(shards)]
        entries = sorted((entry for found, _ in read for entry in found), key=_order, reverse=True)
        return entries[:limit], len(entries) > limit or any(more for _, more in read)

    def _shard(
        self, tenant: str, owner_key: str, place: ListCursor | None, limit: int
    ) -> tuple[list[ListCursor], bool]:
        """The first entries of a shard behind a place that may be of another.

        The index orders by time alone. So the place is looked for by its time, and what is of one time is read as a
        whole: between shards, equal times go by the conversations' ids.
        """
        found: list[ListCursor] = []
        last: ListCursor | None = None
        while True:
            asked, more = self._ask(tenant, owner_key, limit + 1, start=last, until=place)
            found += [entry for entry in asked if place is None or _order(entry) < _order(place)]
            if not more or not asked:
                return found, more
            last = asked[-1]
            if len(found) > limit and found[limit - 1].active_at != found[-1].active_at:
                return found, True

    def _ask(
        self,
        tenant: str,
        owner_key: str,
        limit: int,
        *,
        start: ListCursor | None,
        until: ListCursor | None = None,
    ) -> tuple[list[ListCursor], bool]:
        """One query: from behind an entry of this very shard on, of those no later than another entry."""
        request: dict[str, Any] = {}
        if start is not None:
            key = primary_key(ConversationKey(tenant, start.conversation), SORT_PULSE)
            request["ExclusiveStartKey"] = key | {OWNER_KEY: text(owner_key), OWNER_SORT: text(start.active_at)}
        names, values = {"#owner": OWNER_KEY}, {":owner": text(owner_key)}
        if until is not None:
            names["#active"], values[":until"] = OWNER_SORT, text(until.active_at)
        answer = self._client.query(
            TableName=self._table,
            IndexName=OWNER_INDEX,
            ScanIndexForward=False,
            Limit=limit,
            KeyConditionExpression="#owner = :owner" + ("" if until is None else " AND #active <= :until"),
            ExpressionAttributeNames=names,
            ExpressionAttributeValues=values,
            **request,
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


def _order(entry: ListCursor) -> tuple[str, str]:
    """The order of a list in several shards, oldest first."""
    return entry.active_at, entry.conversation


def shards_of(tenant: str, owner: str, service_accounts: Collection[tuple[str, str]]) -> int:
    """How many shards the owner's list has."""
    return table_keys.OWNER_SHARDS if (tenant, owner) in service_accounts else 1
