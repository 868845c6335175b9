"""Items of the table that another region's write has taken the place of, put back."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from threadkeep.domain.archive import entomb_ms
from threadkeep.domain.contests import Head
from threadkeep.domain.model import Conversation, ConversationKey
from threadkeep.ports import MessageReplaced
from threadkeep.schema import DUE_KEY, DUE_SORT, OWNER_KEY, OWNER_SORT, REGION_ATTRIBUTE, SORT_DUE, SORT_PULSE
from threadkeep.stores import contest_items, table_keys, warm_items
from threadkeep.stores.aws_faults import warm_unavailable
from threadkeep.stores.contest_items import CLAIMED, EPOCH, OWNER, STATUS
from threadkeep.stores.owner_list import shards_of
from threadkeep.stores.warm_items import number, primary_key, text
from threadkeep.stores.write_if import write_if

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class ReplacedDynamoDB:
    """`threadkeep.ports.ReplacedItems` on the table of `threadkeep.schema`.

    Every write is conditional on an item that is there and ranks behind: what has been deleted meanwhile comes back by
    none of them, and of several regions that put the same back the second changes nothing.

    Args:
        client: a DynamoDB client, built with `threadkeep.stores.aws_config.STORE`.
        table: the table's name.
        region: ours, to be named in what the others are told of.
        service_accounts: tenants and users whose lists are dealt out to shards.
    """

    def __init__(
        self,
        client: DynamoDBClient,
        table: str,
        region: str,
        *,
        service_accounts: Collection[tuple[str, str]] = (),
    ) -> None:
        self._client = client
        self._table = table
        self._written_by = {REGION_ATTRIBUTE: text(region)}
        self._service_accounts = service_accounts

    @warm_unavailable()
    def put_head(self, key: ConversationKey, head: Head) -> bool:
        """See `ReplacedItems`. Of a head that does not say when its id was claimed that is 0, as in `claim_of_head`."""
        is_same = "attribute_not_exists(#claimed)" if head.claimed_ms == 0 else "#claimed = :claimed"
        return self._put(
            contest_items.claimed_head_item(key.tenant, head) | self._written_by,
            condition=f"#owner <> :owner AND (#claimed > :claimed OR ({is_same} AND #owner > :owner))",
            names={"#owner": OWNER, "#claimed": CLAIMED},
            values={":owner": text(head.conversation.owner), ":claimed": number(head.claimed_ms)},
        )

    @warm_unavailable()
    def put_message(self, replaced: MessageReplaced) -> bool:
        """See `ReplacedItems`. As it was, to the byte: what may hold its body, an object, stays until the erasure."""
        was = replaced.was
        is_cut = "attribute_exists(#status)"
        is_earlier = "#epoch < :epoch" + (" OR attribute_not_exists(#epoch)" if was.epoch else "")
        return self._put(
            dict(replaced.image) | self._written_by,
            condition=f"attribute_exists(#role) AND ({is_cut} {'OR' if was.is_complete else 'AND'} ({is_earlier}))",
            names={"#role": "r", "#status": STATUS, "#epoch": EPOCH},
            values={":epoch": number(was.epoch)},
        )

    @warm_unavailable()
    def give_to(self, key: ConversationKey, conversation: Conversation) -> None:
        """See `ReplacedItems`. The list goes by the pulse, of which two regions may have written one each as well."""
        shards = shards_of(key.tenant, conversation.owner, self._service_accounts)
        shard = table_keys.owner_shard(key.conversation, shards)
        given = write_if(
            self._client.update_item,
            TableName=self._table,
            Key=primary_key(key, SORT_PULSE),
            UpdateExpression=f"SET {OWNER_KEY} = :key, {OWNER_SORT} = :now",
            ConditionExpression=f"attribute_exists({OWNER_KEY})",
            ExpressionAttributeValues={
                ":key": text(table_keys.owner(key.tenant, conversation.owner, shard)),
                ":now": text(conversation.active_at),
            },
        )
        if given is not None and conversation.expires_ms is not None:
            self._file(key, entomb_ms(conversation.expires_ms))

    def _file(self, key: ConversationKey, due_ms: int) -> None:
        """Have the conversation fall due then, unless it does earlier."""
        filed = warm_items.due_item(key, due_ms)
        write_if(
            self._client.update_item,
            TableName=self._table,
            Key=primary_key(key, SORT_DUE),
            UpdateExpression=f"SET v = :v, {DUE_KEY} = :key, {DUE_SORT} = :due",
            ConditionExpression=f"attribute_not_exists({DUE_SORT}) OR {DUE_SORT} > :due",
            ExpressionAttributeValues={":v": filed["v"], ":key": filed[DUE_KEY], ":due": filed[DUE_SORT]},
        )

    def _put(self, item: dict[str, Any], *, condition: str, names: dict[str, str], values: dict[str, Any]) -> bool:
        answer = write_if(
            self._client.put_item,
            TableName=self._table,
            Item=item,
            ConditionExpression=condition,
            ExpressionAttributeNames=names,
            ExpressionAttributeValues=values,
        )
        return answer is not None
