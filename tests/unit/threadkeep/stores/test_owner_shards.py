"""Lists of owners of very many conversations, dealt out to shards: read as one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.support.conversations import NOW_MS, conversation
from tests.support.moto_table import TABLE, moto_clients
from threadkeep.domain import ids, times
from threadkeep.domain.model import Conversation
from threadkeep.schema import OWNER_INDEX, OWNER_KEY
from threadkeep.stores import table_keys
from threadkeep.stores.bodies_memory import BodiesMemory
from threadkeep.stores.warm_dynamodb import WarmDynamoDB

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

TENANT, SERVICE, PERSON = "acme", "importer", "ann"


@pytest.fixture
def table() -> Iterator[DynamoDBClient]:
    with moto_clients() as (table, _):
        yield table


def store(table: DynamoDBClient, *service_accounts: tuple[str, str]) -> WarmDynamoDB:
    return WarmDynamoDB(table, TABLE, BodiesMemory(), service_accounts=service_accounts)


def create(warm: WarmDynamoDB, owner: str, minute: int) -> Conversation:
    """A conversation that was active in that minute."""
    active_at = times.to_rfc3339(NOW_MS + minute * 60_000)
    new = msgspec.structs.replace(conversation(id=ids.mint(NOW_MS), owner=owner), active_at=active_at)
    assert warm.create_conversation(TENANT, new) is None
    return new


def pages(warm: WarmDynamoDB, owner: str, limit: int) -> list[list[tuple[str, str]]]:
    found, cursor = [], None
    while True:
        page = warm.list_conversations(TENANT, owner, limit=limit, cursor=cursor)
        found.append([(each.active_at, each.id) for each in page.conversations])
        cursor = page.cursor
        if cursor is None:
            return found


def shards(table: DynamoDBClient, owner: str) -> int:
    """How many of the owner's partitions hold anything."""
    count = 0
    for shard in range(table_keys.OWNER_SHARDS):
        answer = table.query(
            TableName=TABLE,
            IndexName=OWNER_INDEX,
            KeyConditionExpression=f"{OWNER_KEY} = :owner",
            ExpressionAttributeValues={":owner": {"S": table_keys.owner(TENANT, owner, shard)}},
        )
        count += bool(answer["Items"])
    return count


@pytest.mark.parametrize("limit", [1, 2, 5, 7, 39, 40, 100])
def test_each_is_listed_once_newest_first_whatever_is_of_one_minute(table: DynamoDBClient, limit: int) -> None:
    warm = store(table, (TENANT, SERVICE))
    made = [create(warm, SERVICE, minute) for minute in (0, 0, 0, 1, 1, 2, 3, 3) for _ in range(5)]
    found = pages(warm, SERVICE, limit)
    assert all(0 < len(page) <= limit for page in found)
    assert [entry for page in found for entry in page] == sorted(
        ((each.active_at, each.id) for each in made), reverse=True
    )


def test_its_writes_go_to_many_partitions_and_a_persons_to_one(table: DynamoDBClient) -> None:
    warm = store(table, (TENANT, SERVICE))
    for _ in range(60):
        create(warm, SERVICE, 0)
    for _ in range(5):
        create(warm, PERSON, 0)
    assert shards(table, SERVICE) == table_keys.OWNER_SHARDS
    assert shards(table, PERSON) == 1


def test_what_it_had_before_it_was_named_is_listed_with_the_rest(table: DynamoDBClient) -> None:
    before = [create(store(table), SERVICE, minute) for minute in range(6)]
    warm = store(table, (TENANT, SERVICE))
    after = [create(warm, SERVICE, minute) for minute in range(6)]
    found = {name for page in pages(warm, SERVICE, 5) for _, name in page}
    assert found == {each.id for each in (*before, *after)}


def test_the_same_name_in_another_tenant_is_a_person(table: DynamoDBClient) -> None:
    warm = store(table, ("umbrella", SERVICE))
    for _ in range(20):
        create(warm, SERVICE, 0)
    assert shards(table, SERVICE) == 1
