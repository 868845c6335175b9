"""The register of live streams by region, in the table: an item a region, which that region alone writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from threadkeep.domain.bounds import LIVE_ELSEWHERE_MS
from threadkeep.domain.model import ConversationKey, LiveStream
from threadkeep.schema import PARTITION_KEY, SORT_KEY, SORT_LIVE, TTL_ATTRIBUTE
from threadkeep.stores import live_items, table_keys
from threadkeep.stores.aws_faults import warm_unavailable
from threadkeep.stores.warm_items import number, primary_key, text
from threadkeep.stores.write_if import write_if

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_MS: Final = 1_000


class LiveDynamoDB:
    """`threadkeep.ports.LiveRegister` on the table of `threadkeep.schema`: one write to put, one to remove.

    Args:
        client: a DynamoDB client, built with `threadkeep.stores.aws_config.STORE`.
        table: the table's name.
        region: ours.
    """

    def __init__(self, client: DynamoDBClient, table: str, region: str) -> None:
        self._client = client
        self._table = table
        self._region = region

    @warm_unavailable()
    def put(self, key: ConversationKey, live: LiveStream, *, until_ms: int) -> None:
        """See `LiveRegister`. What the hot tier has lost meanwhile, and nobody removed, goes when its time is over."""
        answer = self._client.update_item(
            TableName=self._table,
            Key=primary_key(key, live_items.sort_key(self._region)),
            UpdateExpression="SET #stream = :stream, #v = :v, #endpoint = :endpoint, #ttl = :ttl",
            ExpressionAttributeNames={
                "#stream": live.stream,
                "#v": "v",
                "#endpoint": "endpoint",
                "#ttl": TTL_ATTRIBUTE,
            },
            ExpressionAttributeValues={
                ":stream": live_items.stream_value(live, until_ms=until_ms),
                ":v": number(live_items.FORMAT),
                ":endpoint": text(live.endpoint or ""),
                ":ttl": number(-(-until_ms // _MS)),
            },
            ReturnValues="ALL_NEW",
        )
        now_ms = until_ms - LIVE_ELSEWHERE_MS
        over = [name for name, (_, end_ms) in live_items.streams_of(answer["Attributes"]).items() if end_ms <= now_ms]
        for stream in over:
            self.remove(key, stream)

    @warm_unavailable()
    def remove(self, key: ConversationKey, stream: str) -> None:
        """See `LiveRegister`. On condition, since else an update makes an item where there is none."""
        write_if(
            self._client.update_item,
            TableName=self._table,
            Key=primary_key(key, live_items.sort_key(self._region)),
            UpdateExpression="REMOVE #stream",
            ConditionExpression="attribute_exists(#stream)",
            ExpressionAttributeNames={"#stream": stream},
        )

    @warm_unavailable()
    def read_others(self, key: ConversationKey, *, now_ms: int) -> tuple[LiveStream, ...]:
        """See `LiveRegister`. At half the price: what other regions wrote comes late in any case."""
        answer = self._client.query(
            TableName=self._table,
            ConsistentRead=False,
            KeyConditionExpression="#pk = :pk AND begins_with(#sk, :live)",
            ExpressionAttributeNames={"#pk": PARTITION_KEY, "#sk": SORT_KEY},
            ExpressionAttributeValues={":pk": text(table_keys.partition(key)), ":live": text(SORT_LIVE)},
        )
        told = [
            live
            for item in answer["Items"]
            if live_items.region_of(item[SORT_KEY]["S"]) != self._region
            for live, until_ms in live_items.streams_of(item).values()
            if until_ms > now_ms
        ]
        return tuple(sorted(told, key=lambda live: (live.stream, live.region)))
