"""Exports in the table: an item for each, and a few places for those of a user that are under way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from threadkeep.domain import times
from threadkeep.domain.bounds import EXPORTS_RUNNING_MAX
from threadkeep.domain.errors import Unreadable
from threadkeep.domain.exports import Export
from threadkeep.domain.json_values import encode
from threadkeep.schema import PARTITION_KEY, SORT_EXPORT, SORT_KEY, TTL_ATTRIBUTE
from threadkeep.stores import table_keys
from threadkeep.stores.aws_faults import warm_unavailable
from threadkeep.stores.write_if import write_if

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_FORMAT: Final = "1"
_EXPORT: Final = msgspec.json.Decoder(Export)


class ExportsDynamoDB:
    """`threadkeep.ports.ExportStore` on the table of `threadkeep.schema`.

    Args:
        client: a DynamoDB client, built with `threadkeep.stores.aws_config.STORE`.
        table: the table's name.
    """

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    @warm_unavailable()
    def claim(self, tenant: str, export: Export, *, now_ms: int, until_ms: int) -> bool:
        """See `ExportStore`. Each place is an item, taken by one conditional write; the user's own are asked first."""
        places = [self._place(tenant, export.owner, number) for number in range(EXPORTS_RUNNING_MAX)]
        mine, free = "taken_by = :me", f"attribute_not_exists({PARTITION_KEY}) OR until_ms <= :now"
        values = {":me": {"S": export.id}, ":until": {"N": str(until_ms)}, ":ttl": _seconds(until_ms)}
        set_it = f"SET taken_by = :me, until_ms = :until, {TTL_ATTRIBUTE} = :ttl"
        return any(self._update(place, set_it, mine, values) for place in places) or any(
            self._update(place, set_it, free, {**values, ":now": {"N": str(now_ms)}}) for place in places
        )

    @warm_unavailable()
    def release(self, tenant: str, export: Export) -> None:
        """See `ExportStore`. The item stays until it expires: whoever makes exports needs no right to delete."""
        for number in range(EXPORTS_RUNNING_MAX):
            place = self._place(tenant, export.owner, number)
            self._update(
                place,
                "SET until_ms = :never",
                "taken_by = :me",
                {":me": {"S": export.id}, ":never": {"N": "0"}},
            )

    @warm_unavailable()
    def put(self, tenant: str, export: Export) -> bool:
        """See `ExportStore`."""
        condition = f"attribute_not_exists({PARTITION_KEY}) OR (running = :true AND notes = :notes)"
        return self._put(tenant, export, condition, {})

    @warm_unavailable()
    def hand_on(self, tenant: str, export: Export, *, before: str | None) -> bool:
        """See `ExportStore`. The client's own second attempt, where an answer was lost, finds it as it left it."""
        return self._put(
            tenant, export, "running = :true AND notes IN (:notes, :before)", {":before": {"S": before or ""}}
        )

    def _put(self, tenant: str, export: Export, condition: str, values: dict[str, Any]) -> bool:
        expires_ms = times.from_rfc3339(export.expires_at)
        item: dict[str, Any] = self._key(tenant, export.id) | {
            "v": {"N": _FORMAT},
            "export": {"S": encode(export).decode()},
            "running": {"BOOL": export.state == "running"},
            "notes": {"S": export.notes or ""},
            TTL_ATTRIBUTE: _seconds(expires_ms),
        }
        put = write_if(
            self._client.put_item,
            TableName=self._table,
            Item=item,
            ConditionExpression=condition,
            ExpressionAttributeValues={":true": {"BOOL": True}, ":notes": item["notes"], **values},
        )
        return put is not None

    @warm_unavailable()
    def read(self, tenant: str, export: str, *, now_ms: int) -> Export | None:
        """See `ExportStore`. DynamoDB takes what has expired away within days, so the time is looked at here.

        Raises:
            Unreadable: the item is of a format that this version does not know.
        """
        answer = self._client.get_item(TableName=self._table, Key=self._key(tenant, export), ConsistentRead=True)
        item = answer.get("Item")
        if item is None:
            return None
        if item["v"]["N"] != _FORMAT:
            raise Unreadable(export, SORT_EXPORT, f"its item is of format {item['v']['N']}, not {_FORMAT}")
        found = _EXPORT.decode(item["export"]["S"])
        return found if times.from_rfc3339(found.expires_at) > now_ms else None

    def _update(self, key: dict[str, Any], expression: str, condition: str, values: dict[str, Any]) -> bool:
        updated = write_if(
            self._client.update_item,
            TableName=self._table,
            Key=key,
            UpdateExpression=expression,
            ConditionExpression=condition,
            ExpressionAttributeValues=values,
        )
        return updated is not None

    def _key(self, tenant: str, export: str) -> dict[str, Any]:
        return {PARTITION_KEY: {"S": table_keys.export(tenant, export)}, SORT_KEY: {"S": SORT_EXPORT}}

    def _place(self, tenant: str, owner: str, number: int) -> dict[str, Any]:
        return {PARTITION_KEY: {"S": table_keys.exporting(tenant, owner)}, SORT_KEY: {"S": f"place#{number}"}}


def _seconds(ms: int) -> dict[str, str]:
    """A time as DynamoDB's TTL reads it; not before that."""
    return {"N": str(-(-ms // 1_000))}
