"""The warm tier in DynamoDB: a partition per conversation, strongly consistent within its region."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from threadkeep.domain import archive, ids, times
from threadkeep.domain.bounds import ARCHIVE_IDLE_MS, BODY_INLINE_BYTES_MAX, PULSE_EVERY_MS
from threadkeep.domain.contests import Head
from threadkeep.domain.json_values import JsonObject, encode
from threadkeep.domain.model import Conversation, ConversationKey, StoredMessage
from threadkeep.domain.tail import SEVERAL, Several
from threadkeep.ports import BodyStore, ConversationPage, Gone, MessagePage
from threadkeep.schema import (
    DUE_SORT,
    OWNER_SORT,
    PARTITION_KEY,
    REGION_ATTRIBUTE,
    SORT_DUE,
    SORT_GONE,
    SORT_HEAD,
    SORT_KEY,
    SORT_MESSAGE,
    SORT_PULSE,
    SORT_ROOTS,
)
from threadkeep.stores import contest_items, erasure_items, table_keys, warm_items
from threadkeep.stores.aws_faults import warm_unavailable
from threadkeep.stores.owner_list import OwnerList
from threadkeep.stores.packing import pack
from threadkeep.stores.put_once import put_once
from threadkeep.stores.warm_items import Item, primary_key, text
from threadkeep.stores.write_if import write_if

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_THERE: Final = f"attribute_exists({PARTITION_KEY})"
_PAGE_ATTRIBUTES: Final = (SORT_KEY, *warm_items.PAGE_ATTRIBUTES)
_BEHIND_MESSAGES: Final = SORT_MESSAGE + "~"


class WarmDynamoDB:
    """`threadkeep.ports.WarmStore` on the table of `threadkeep.schema`.

    A message's item holds its body (packed) as pages of messages show it. Where that lacks the parts, because no frame
    could hold them, the item holds the whole body too, or the pointer to it (`threadkeep.stores.warm_items`).

    Args:
        client: a DynamoDB client, built with `threadkeep.stores.aws_config.STORE`.
        table: the table's name.
        bodies: where bodies go that take more than `BODY_INLINE_BYTES_MAX`.
        idle_ms: how long a conversation rests before it is for the archive.
        writer: our region, to be named in what others are told of; empty where there are no others.
        service_accounts: tenants and users whose lists are dealt out to shards.
        sleep: seconds to pause between attempts at a batch; tests own it.
    """

    def __init__(
        self,
        client: DynamoDBClient,
        table: str,
        bodies: BodyStore,
        *,
        idle_ms: int = ARCHIVE_IDLE_MS,
        writer: str = "",
        service_accounts: Collection[tuple[str, str]] = (),
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._table = table
        self._bodies = bodies
        self._idle_ms = idle_ms
        self._written_by = {REGION_ATTRIBUTE: text(writer)} if writer else {}
        self._owner_list = OwnerList(client, table, service_accounts, sleep)

    # --- conversations ----------------------------------------------------------------------------------------

    @warm_unavailable()
    def create_conversation(
        self, tenant: str, conversation: Conversation, *, claimed_ms: int = 0
    ) -> Conversation | Gone | None:
        """See `WarmStore`. The head comes last: a crash before it leaves nothing to see, a retry completes."""
        standing = self.read_head(ConversationKey(tenant, conversation.id))
        if standing is not None:
            return standing
        pulse = warm_items.pulse_item(
            tenant,
            conversation,
            owner_shards=self._owner_list.shards_of(tenant, conversation.owner),
        )
        due = self._due_item(
            ConversationKey(tenant, conversation.id),
            times.from_rfc3339(conversation.active_at),
            ends_ms=conversation.expires_ms,
        )
        leftovers = [put_once(self._client, self._table, item) is not None for item in (pulse, due)]
        head = contest_items.claimed_head_item(tenant, Head(conversation, claimed_ms)) | self._written_by
        existing = put_once(self._client, self._table, head)
        if existing is not None:
            return warm_items.conversation_from(existing)
        if any(leftovers):
            # Of an attempt that broke off, perhaps another user's: whoever's the head is has the pulse too.
            for item in (pulse, due):
                self._client.put_item(TableName=self._table, Item=item)
        return None

    @warm_unavailable()
    def read_head(self, key: ConversationKey) -> Conversation | Gone | None:
        """See `WarmStore`. One query: the tombstone sorts right before the head, with its receipt between them.

        With a retention the pulse is read too, since what has expired is as good as gone.
        """
        answer = self._client.query(
            TableName=self._table,
            ConsistentRead=True,
            KeyConditionExpression="#pk = :pk AND #sk BETWEEN :gone AND :head",
            ExpressionAttributeNames={"#pk": PARTITION_KEY, "#sk": SORT_KEY},
            ExpressionAttributeValues={
                ":pk": text(table_keys.partition(key)),
                ":gone": text(SORT_GONE),
                ":head": text(SORT_HEAD),
            },
        )
        items = {item[SORT_KEY]["S"]: item for item in answer["Items"]}
        if SORT_GONE in items:
            return Gone(erasure_items.tombstone_from(items[SORT_GONE]))
        if SORT_HEAD not in items:
            return None
        conversation = warm_items.conversation_from(items[SORT_HEAD])
        if conversation.retention_days is None:
            return conversation
        return msgspec.structs.replace(conversation, active_at=self.read_active_at(key) or conversation.active_at)

    @warm_unavailable()
    def read_active_at(self, key: ConversationKey) -> str | None:
        """See `WarmStore`."""
        item = self._get(primary_key(key, SORT_PULSE))
        return None if item is None else str(item[OWNER_SORT]["S"])

    @warm_unavailable()
    def update_conversation(
        self,
        key: ConversationKey,
        *,
        owner: str,
        title: str | UnsetType | None = UNSET,
        metadata: JsonObject | UnsetType = UNSET,
    ) -> Conversation | None:
        """See `WarmStore`. Looks for the tombstone first: a head that an erasure has not reached yet is none.

        The write is on condition all the same: another owner's head may take this one's place in between.
        """
        head = self.read_head(key)
        if not isinstance(head, Conversation) or head.owner != owner:
            return None
        values: dict[str, Any] = {}
        if title is not UNSET and title is not None:
            values["title"] = text(title)
        if metadata is not UNSET:
            values["metadata"] = text(encode(metadata).decode())
        removed = ["title"] if title is None else []
        if not values and not removed:
            return head
        values |= self._written_by
        item = self._update(
            primary_key(key, SORT_HEAD),
            values,
            removed,
            condition="#owner = :owner",
            condition_names={"#owner": contest_items.OWNER},
            condition_values={":owner": text(owner)},
        )
        return None if item is None else warm_items.conversation_from(item)

    @warm_unavailable()
    def list_conversations(self, tenant: str, owner: str, *, limit: int, cursor: str | None) -> ConversationPage:
        """See `WarmStore`."""
        return self._owner_list.read(tenant, owner, limit=limit, cursor=cursor)

    @warm_unavailable()
    def touch(self, key: ConversationKey, *, now_ms: int, ends_ms: int | None = None) -> None:
        """See `WarmStore`. In the ordinary case one read: noted within this minute, or nothing there.

        It is asked first since a refused condition takes the units of the write (DynamoDB developer guide, "Read and
        write operations", read 2026-11-29), five times what the read costs.

        An entry in the archive's index stays where it is, and whoever meets it there asks for the activity: to move it
        along would cost a write a turn. It is filed anew where there is none, and where the conversation has rested for
        so long that the archive may be taking it out just now: filed before the activity is noted, and elsewhere than
        it was, it is not what the archive means to take.
        """
        noted = self._noted(key)
        active = noted.get(SORT_PULSE)
        if active is None:
            return
        active_at = active[OWNER_SORT]["S"]
        rests = active_at < times.to_rfc3339(now_ms - self._idle_ms)
        if rests or DUE_SORT not in noted.get(SORT_DUE, {}):
            self._client.put_item(TableName=self._table, Item=self._due_item(key, now_ms, ends_ms=ends_ms))
        minute_ago = times.to_rfc3339(now_ms - PULSE_EVERY_MS)
        if active_at < minute_ago:
            self._update(
                primary_key(key, SORT_PULSE),
                {OWNER_SORT: text(times.to_rfc3339(now_ms))},
                condition=f"{_THERE} AND {OWNER_SORT} < :minute_ago",
                condition_values={":minute_ago": text(minute_ago)},
            )

    def _noted(self, key: ConversationKey) -> dict[str, Item]:
        """Pulse and due entry, as far as they are there. One query, as dear as either."""
        answer = self._client.query(
            TableName=self._table,
            ConsistentRead=True,
            KeyConditionExpression="#pk = :pk AND #sk BETWEEN :pulse AND :due",
            ProjectionExpression="#sk, #active, #due",
            ExpressionAttributeNames={
                "#pk": PARTITION_KEY,
                "#sk": SORT_KEY,
                "#active": OWNER_SORT,
                "#due": DUE_SORT,
            },
            ExpressionAttributeValues={
                ":pk": text(table_keys.partition(key)),
                ":pulse": text(SORT_PULSE),
                ":due": text(SORT_DUE),
            },
        )
        return {item[SORT_KEY]["S"]: item for item in answer["Items"]}

    def _due_item(self, key: ConversationKey, active_ms: int, *, ends_ms: int | None) -> dict[str, Any]:
        return warm_items.due_item(key, archive.due_ms(active_ms, idle_ms=self._idle_ms, ends_ms=ends_ms))

    # --- messages ---------------------------------------------------------------------------------------------

    @warm_unavailable()
    def put_message(self, tenant: str, stored: StoredMessage) -> StoredMessage | None:
        """See `WarmStore`. A large body is kept before the item that points to it."""
        key = ConversationKey(tenant, stored.message.conversation)
        item = warm_items.message_item(tenant, stored) | self._written_by
        packed = pack(stored.message)
        shown = warm_items.in_page(stored)
        if shown is stored:
            item[warm_items.BODY] = {"B": packed}
        elif len(packed) <= BODY_INLINE_BYTES_MAX:
            item |= {warm_items.BODY: {"B": pack(shown.message)}, warm_items.WHOLE: {"B": packed}}
        else:
            pointer = self._bodies.put(key, stored.message.id, packed)
            item |= {warm_items.BODY: {"B": pack(shown.message)}, warm_items.POINTER: text(pointer)}
        existing = put_once(self._client, self._table, item)
        return None if existing is None else self._whole(key, existing)

    @warm_unavailable()
    def read_message(self, key: ConversationKey, message: str) -> StoredMessage | None:
        """See `WarmStore`."""
        item = self._get(primary_key(key, table_keys.message(message)))
        return None if item is None else self._whole(key, item)

    @warm_unavailable()
    def has_message(self, key: ConversationKey, message: str) -> bool:
        """See `WarmStore`."""
        return self._get(primary_key(key, table_keys.message(message)), SORT_KEY) is not None

    @warm_unavailable()
    def newest_id(self, key: ConversationKey) -> str | None:
        """See `WarmStore`."""
        newest, _ = self._query_messages(key, SORT_MESSAGE, _BEHIND_MESSAGES, 1, (SORT_KEY,))
        return table_keys.message_of(newest[0][SORT_KEY]["S"]) if newest else None

    @warm_unavailable()
    def read_first(self, key: ConversationKey) -> StoredMessage | Several | None:
        """See `WarmStore`. One query: what says that there are several roots sorts right before the messages."""
        items, _ = self._query_messages(key, SORT_ROOTS, _BEHIND_MESSAGES, 1, _PAGE_ATTRIBUTES, newest_first=False)
        if items and items[0][SORT_KEY]["S"] == SORT_ROOTS:
            return SEVERAL
        return warm_items.stored_from(key, items[0], items[0][warm_items.BODY]["B"]) if items else None

    @warm_unavailable()
    def note_several(self, key: ConversationKey) -> None:
        """See `WarmStore`. Of what two regions say at once either may stand."""
        put_once(self._client, self._table, primary_key(key, SORT_ROOTS) | self._written_by)

    @warm_unavailable()
    def read_messages(
        self,
        key: ConversationKey,
        *,
        before: str | None = None,
        after: str | None = None,
        limit: int,
        consistent: bool = True,
    ) -> MessagePage:
        """See `WarmStore`."""
        low = SORT_MESSAGE if after is None else table_keys.message(after)
        high = _BEHIND_MESSAGES if before is None else table_keys.message(before)
        if low >= high:
            return MessagePage((), more=False)
        # BETWEEN takes its bounds in, where they are messages, and refuses them crossed. None is asked for beyond that:
        # it would only tell for certain whether there are older ones, and a page of 20 would cost a twentieth more.
        asked = limit + sum(bound is not None and ids.is_id(bound) for bound in (before, after))
        items, more = self._query_messages(key, low, high, asked, _PAGE_ATTRIBUTES, consistent=consistent)
        inside = [item for item in items if low < item[SORT_KEY]["S"] < high]
        found = [warm_items.stored_from(key, item, item[warm_items.BODY]["B"]) for item in inside[:limit]]
        return MessagePage(tuple(found), more=len(inside) > limit or (more and items[-1][SORT_KEY]["S"] > low))

    def _query_messages(
        self,
        key: ConversationKey,
        low: str,
        high: str,
        limit: int,
        attributes: tuple[str, ...],
        *,
        consistent: bool = True,
        newest_first: bool = True,
    ) -> tuple[list[Item], bool]:
        """The newest of the items between both bounds (taken in), over as many pages of 1 MB as they take.

        Or the oldest, if told. And whether there may be more: it may say so at the very end.
        """
        found: list[Item] = []
        start: dict[str, Any] = {}
        while True:
            answer = self._client.query(
                TableName=self._table,
                ConsistentRead=consistent,
                ScanIndexForward=not newest_first,
                Limit=limit - len(found),
                KeyConditionExpression="#pk = :pk AND #sk BETWEEN :low AND :high",
                ProjectionExpression=", ".join(f"#{name}" for name in attributes),
                ExpressionAttributeNames={f"#{name}": name for name in {PARTITION_KEY, SORT_KEY, *attributes}},
                ExpressionAttributeValues={
                    ":pk": text(table_keys.partition(key)),
                    ":low": text(low),
                    ":high": text(high),
                },
                **start,
            )
            found += answer["Items"]
            if "LastEvaluatedKey" not in answer:
                return found, False
            if len(found) >= limit:
                return found, True
            start["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def _whole(self, key: ConversationKey, item: Item) -> StoredMessage:
        if warm_items.POINTER in item:
            return warm_items.stored_from(key, item, self._bodies.get(item[warm_items.POINTER]["S"]))
        packed = item.get(warm_items.WHOLE, item[warm_items.BODY])
        return warm_items.stored_from(key, item, packed["B"])

    # --- one item ---------------------------------------------------------------------------------------------

    def _get(self, item_key: dict[str, Any], *attributes: str) -> Item | None:
        """An item, or just these attributes of it (plain names, none reserved)."""
        projection: dict[str, Any] = {"ProjectionExpression": ",".join(attributes)} if attributes else {}
        answer = self._client.get_item(TableName=self._table, Key=item_key, ConsistentRead=True, **projection)
        return answer.get("Item")

    def _update(
        self,
        item_key: dict[str, Any],
        values: dict[str, Any],
        removed: Sequence[str] = (),
        *,
        condition: str,
        condition_names: dict[str, str] | None = None,
        condition_values: dict[str, Any] | None = None,
    ) -> Item | None:
        """Set and remove attributes; the item as it then stands, None where the condition is refused."""
        sets = [f"#{name} = :{name}" for name in values]
        expression = "SET " + ", ".join(sets) if sets else ""
        expression += " REMOVE " + ", ".join(f"#{name}" for name in removed) if removed else ""
        request: dict[str, Any] = {
            "UpdateExpression": expression,
            "ConditionExpression": condition,
            "ExpressionAttributeNames": {f"#{name}": name for name in (*values, *removed)} | (condition_names or {}),
        }
        expressed = {f":{name}": value for name, value in values.items()} | (condition_values or {})
        if expressed:  # DynamoDB refuses an empty map
            request["ExpressionAttributeValues"] = expressed
        answer = write_if(
            self._client.update_item, TableName=self._table, Key=item_key, ReturnValues="ALL_NEW", **request
        )
        return None if answer is None else answer["Attributes"]
