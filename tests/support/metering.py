"""What clients ask of the table and of a bucket: their calls, and what the answers say they took."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

_METERED: Final = frozenset(
    {
        "BatchGetItem",
        "BatchWriteItem",
        "DeleteItem",
        "GetItem",
        "PutItem",
        "Query",
        "Scan",
        "TransactGetItems",
        "TransactWriteItems",
        "UpdateItem",
    }
)


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One call that was made.

    Attributes:
        operation: as the API names it, e.g. ``PutItem``.
        sort_keys: of the items that it names or puts; of a query, the lower bound.
        units: of the table and its indexes together; 0 where it was refused, since a refusal does not say. On AWS a
            refused condition takes the units of the write all the same (DynamoDB developer guide, "Condition
            expressions", read 2026-11-29).
        index_units: of these, those of the indexes.
        items: how many a query gave.
        is_refused: it was answered by an error.
    """

    operation: str
    sort_keys: tuple[str, ...]
    units: float
    index_units: float
    items: int
    is_refused: bool


class Meter:
    """The calls of one client, in order."""

    def __init__(self, client: DynamoDBClient) -> None:
        self.calls: list[Call] = []
        events = client.meta.events
        events.register("before-parameter-build.dynamodb.*", _ask)
        events.register("before-parameter-build.dynamodb.*", _keep_request)
        events.register("after-call.dynamodb.*", self._note)

    @contextmanager
    def counting(self) -> Iterator[list[Call]]:
        """The calls that are made within the block."""
        counted: list[Call] = []
        begin = len(self.calls)
        yield counted
        counted += self.calls[begin:]

    def _note(self, *, model: Any, parsed: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        told = parsed.get("ConsumedCapacity") or []
        tables = told if isinstance(told, list) else [told]
        of_indexes = [
            index["CapacityUnits"]
            for table in tables
            for kind in ("LocalSecondaryIndexes", "GlobalSecondaryIndexes")
            for index in table.get(kind, {}).values()
        ]
        self.calls.append(
            Call(
                operation=model.name,
                sort_keys=_sort_keys(context["asked"]),
                units=sum(table["CapacityUnits"] for table in tables),
                index_units=sum(of_indexes),
                items=parsed.get("Count", 0),
                is_refused="Error" in parsed,
            )
        )


def _ask(*, params: dict[str, Any], model: Any, **_: Any) -> None:
    if model.name in _METERED:
        params["ReturnConsumedCapacity"] = "INDEXES"


def _keep_request(*, params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
    context["asked"] = params


def _sort_keys(asked: dict[str, Any]) -> tuple[str, ...]:
    """Those that the request names."""
    keys = [asked[name] for name in ("Key", "Item") if name in asked]
    for of_table in asked.get("RequestItems", {}).values():
        requests = of_table["Keys"] if isinstance(of_table, dict) else [next(iter(each.values())) for each in of_table]
        keys += [each.get("Key", each.get("Item", each)) for each in requests]
    if "KeyConditionExpression" in asked:
        bounds = [value["S"] for name, value in asked["ExpressionAttributeValues"].items() if name != ":pk"]
        return (min(bounds),)
    return tuple(key["sk"]["S"] for key in keys if "sk" in key)


class ObjectCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call of an S3 client.

    Attributes:
        operation: as the API names it, e.g. ``GetObject``.
        object_key: which object.
        first_byte, size_bytes: what of it was given; of a PUT nothing.
    """

    operation: str
    object_key: str
    first_byte: int
    size_bytes: int


class ObjectMeter:
    """The calls of one S3 client, in order."""

    def __init__(self, client: S3Client) -> None:
        self.calls: list[ObjectCall] = []
        events = client.meta.events
        events.register("before-parameter-build.s3.*", _keep_request)
        events.register("after-call.s3.*", self._note)

    @contextmanager
    def counting(self) -> Iterator[list[ObjectCall]]:
        """The calls that are made within the block."""
        counted: list[ObjectCall] = []
        begin = len(self.calls)
        yield counted
        counted += self.calls[begin:]

    def _note(self, *, model: Any, parsed: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        asked = context["asked"]
        self.calls.append(
            ObjectCall(
                operation=model.name,
                object_key=asked.get("Key", ""),
                first_byte=int(asked.get("Range", "bytes=0-").removeprefix("bytes=").split("-")[0]),
                size_bytes=parsed.get("ContentLength", 0) if model.name == "GetObject" else 0,
            )
        )
