"""Who claims a conversation's id in a region: one suite for every implementation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.support.conversations import NOW_MS, tombstone
from tests.support.moto_table import TABLE, empty_table, moto_clients
from threadkeep.domain import ids
from threadkeep.domain.bounds import ID_CLAIM_MS
from threadkeep.domain.contests import Claim
from threadkeep.domain.model import ConversationKey
from threadkeep.ports import ErasureStore, IdClaims, OtherTables
from threadkeep.schema import TTL_ATTRIBUTE
from threadkeep.stores import warm_items
from threadkeep.stores.claims_dynamodb import ClaimsDynamoDB
from threadkeep.stores.claims_memory import ClaimsMemory
from threadkeep.stores.erasures_dynamodb import ErasuresDynamoDB
from threadkeep.stores.erasures_memory import ErasuresMemory
from threadkeep.stores.other_tables_dynamodb import OtherTablesDynamoDB
from threadkeep.stores.other_tables_memory import OtherTablesMemory
from threadkeep.stores.warm_memory import WarmMemory

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

REGIONS = ("eu-central-1", "us-east-1")
ANN, BOB = Claim("ann", NOW_MS), Claim("bob", NOW_MS + 1)


class Places(msgspec.Struct, frozen=True):
    """Two regions over one table, as if it were replicated at once."""

    of: dict[str, IdClaims]
    others: OtherTables
    erasures: ErasureStore


@pytest.fixture(scope="module")
def clients() -> Iterator[tuple[DynamoDBClient, S3Client]]:
    with moto_clients() as made:
        yield made


@pytest.fixture(params=["memory", "dynamodb"])
def places(request: pytest.FixtureRequest) -> Places:
    if request.param == "memory":
        warm = WarmMemory()
        claims = {name: ClaimsMemory(warm, name) for name in REGIONS}
        return Places(dict(claims), OtherTablesMemory(dict.fromkeys(REGIONS, warm)), ErasuresMemory(warm))
    table, _ = request.getfixturevalue("clients")
    empty_table(table)
    of = {name: ClaimsDynamoDB(table, TABLE, name) for name in REGIONS}
    return Places(dict(of), OtherTablesDynamoDB(lambda _: table, TABLE), ErasuresDynamoDB(table, TABLE))


@pytest.fixture
def key() -> ConversationKey:
    return ConversationKey("a/b#c", ids.mint(NOW_MS))


def test_who_comes_first_in_a_region_has_it_there(places: Places, key: ConversationKey) -> None:
    assert places.of["us-east-1"].put(key, ANN) is None
    assert places.of["us-east-1"].put(key, BOB) == ANN
    assert places.of["us-east-1"].put(key, Claim("ann", NOW_MS + 2)) == ANN
    assert places.others.read_claim("us-east-1", key) == ANN


def test_no_region_writes_over_what_another_one_wrote(places: Places, key: ConversationKey) -> None:
    for region, claim in zip(REGIONS, (ANN, BOB), strict=True):
        assert places.others.read_claim(region, key) is None
        assert places.of[region].put(key, claim) is None
    assert [places.others.read_claim(region, key) for region in REGIONS] == [ANN, BOB]
    assert places.others.read_claim(REGIONS[0], ConversationKey("other", key.conversation)) is None


def test_it_goes_with_the_conversation(places: Places, key: ConversationKey) -> None:
    places.of["us-east-1"].put(key, ANN)
    places.erasures.put_tombstone(key, tombstone())
    assert places.erasures.clear(key) == 1
    assert places.others.read_claim("us-east-1", key) is None


def test_the_table_drops_it_when_the_head_has_long_come(
    clients: tuple[DynamoDBClient, S3Client], key: ConversationKey
) -> None:
    table, _ = clients
    ClaimsDynamoDB(table, TABLE, "us-east-1").put(key, ANN)
    item = table.get_item(TableName=TABLE, Key=warm_items.primary_key(key, "claim#us-east-1"))["Item"]
    assert item[TTL_ATTRIBUTE] == {"N": str((NOW_MS + ID_CLAIM_MS) // 1_000)}
