"""``python -m operations.tombstones save|replay``: what a table that is taken back must be told before it serves.

A backup knows nothing of what was deleted after it was made. So the tombstones are saved from the table as it was last,
and put into the one that takes its place; there the deletions run again, as they did at first.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import boto3

from threadkeep.schema import PARTITION_KEY, SORT_GONE, SORT_KEY
from threadkeep.stores.write_if import write_if

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_SAVED: Final = frozenset({"S", "N", "L"})
"""The types of a tombstone's attributes; all are JSON as DynamoDB's own API has them."""


def saved(client: DynamoDBClient, table: str) -> Iterator[str]:
    """Every tombstone of a table, a line of JSON each. Reads the whole table: that takes, and costs, what a scan does.

    Raises:
        ValueError: a tombstone holds what this does not know; nothing is left out.
    """
    pages = client.get_paginator("scan").paginate(
        TableName=table,
        ConsistentRead=True,
        FilterExpression="#sk = :gone",
        ExpressionAttributeNames={"#sk": SORT_KEY},
        ExpressionAttributeValues={":gone": {"S": SORT_GONE}},
    )
    for page in pages:
        for item in page["Items"]:
            unknown = {kind for value in item.values() for kind in value} - _SAVED
            if unknown:
                raise ValueError(f"a tombstone has attributes of {', '.join(sorted(unknown))}")
            yield json.dumps(item, sort_keys=True)


def replay(client: DynamoDBClient, table: str, lines: Iterable[str]) -> tuple[int, int]:
    """Put tombstones into a table where there is none yet; how many, and how many stood there already.

    Raises:
        ValueError: a line is no tombstone. Those before it are put; it may be run again.
    """
    put = stood = 0
    for line in lines:
        item: dict[str, Any] = json.loads(line)
        if item.get(SORT_KEY) != {"S": SORT_GONE} or PARTITION_KEY not in item:
            raise ValueError("a line is no tombstone")
        is_new = f"attribute_not_exists({PARTITION_KEY})"
        if write_if(client.put_item, TableName=table, Item=item, ConditionExpression=is_new) is None:
            stood += 1
        else:
            put += 1
    return put, stood


def main(words: Sequence[str]) -> int:
    """Run it.

    Returns:
        The exit code.
    """
    parser = argparse.ArgumentParser(prog="python -m operations.tombstones", description=__doc__)
    parser.add_argument("verb", choices=["save", "replay"])
    parser.add_argument("--table", required=True)
    parser.add_argument("--region", required=True)
    parser.add_argument("--file", required=True, type=Path)
    given = parser.parse_args(words)
    client = boto3.client("dynamodb", region_name=given.region)
    if given.verb == "save":
        lines = list(saved(client, given.table))
        given.file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        print(f"{len(lines)} tombstones of {given.table} saved in {given.file}")
    else:
        put, stood = replay(client, given.table, given.file.read_text(encoding="utf-8").splitlines())
        print(f"{put} tombstones put into {given.table}, {stood} stood there already")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
