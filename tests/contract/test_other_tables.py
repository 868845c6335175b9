"""The tables of other regions, asked for what ours lacks: one suite for every implementation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import boto3
import msgspec
import pytest

from tests.support.conversations import NOW_MS, awkward_object, conversation, message, noise, text_parts, tombstone
from tests.support.moto_table import TABLE, create_table, moto_clients
from threadkeep.domain import ids, times
from threadkeep.domain.contests import Head
from threadkeep.domain.errors import WarmUnavailable
from threadkeep.domain.json_values import encode
from threadkeep.domain.model import ConversationKey, StoredMessage
from threadkeep.ports import ErasureStore, Gone, OtherTables, WarmStore
from threadkeep.stores import aws_config
from threadkeep.stores.bodies_memory import BodiesMemory
from threadkeep.stores.erasures_dynamodb import ErasuresDynamoDB
from threadkeep.stores.erasures_memory import ErasuresMemory
from threadkeep.stores.other_tables_dynamodb import OtherTablesDynamoDB
from threadkeep.stores.other_tables_memory import OtherTablesMemory
from threadkeep.stores.warm_dynamodb import WarmDynamoDB
from threadkeep.stores.warm_items import in_page
from threadkeep.stores.warm_memory import WarmMemory

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

REGIONS = ("eu-central-1", "us-east-2")


class Places(msgspec.Struct, frozen=True):
    """The tables of two other regions, which nothing replicates, and the one that asks them."""

    others: OtherTables
    warm: dict[str, WarmStore]
    erasures: dict[str, ErasureStore]


@pytest.fixture(scope="module")
def clients() -> Iterator[dict[str, DynamoDBClient]]:
    with moto_clients():
        made = {name: boto3.client("dynamodb", region_name=name, config=aws_config.OTHER_REGION) for name in REGIONS}
        for client in made.values():
            create_table(client)
        yield made


@pytest.fixture(params=["memory", "dynamodb"])
def places(request: pytest.FixtureRequest) -> Places:
    if request.param == "memory":
        tables = {name: WarmMemory() for name in REGIONS}
        erasures = {name: ErasuresMemory(table) for name, table in tables.items()}
        return Places(OtherTablesMemory(tables), dict(tables), dict(erasures))
    made = request.getfixturevalue("clients")
    return Places(
        OtherTablesDynamoDB(made.__getitem__, TABLE),
        {name: WarmDynamoDB(client, TABLE, BodiesMemory()) for name, client in made.items()},
        {name: ErasuresDynamoDB(client, TABLE) for name, client in made.items()},
    )


def new_key(tenant: str = "a/b#c") -> ConversationKey:
    return ConversationKey(tenant, ids.mint(NOW_MS))


@pytest.mark.parametrize(
    "parts",
    [text_parts("hello"), (awkward_object(),), text_parts(noise(60_000)), text_parts(noise(900_000))],
    ids=["short", "awkward", "beyond a frame", "beyond an item"],
)
def test_a_message_comes_as_a_page_shows_it(places: Places, parts: Any) -> None:
    key = new_key()
    stored = StoredMessage(message(key, parts, parent=ids.mint(NOW_MS - 1), model="m", status="stopped"), 7)
    places.warm["us-east-2"].put_message(key.tenant, stored)
    found = places.others.read_message("us-east-2", key, stored.message.id)
    assert found is not None
    assert encode(found) == encode(in_page(stored))


def test_only_the_region_that_is_named_is_asked(places: Places) -> None:
    key = new_key()
    stored = StoredMessage(message(key))
    places.warm["eu-central-1"].put_message(key.tenant, stored)
    assert places.others.read_message("us-east-2", key, stored.message.id) is None
    assert places.others.read_message("eu-central-1", key, stored.message.id) == stored


def test_what_it_does_not_have_is_none(places: Places) -> None:
    assert places.others.read_message("eu-central-1", new_key(), ids.mint(NOW_MS)) is None


def test_a_head_comes_as_it_stands_there_and_a_deletion_before_it(places: Places) -> None:
    new = conversation(title="t", metadata={"n": 1.0})
    key = ConversationKey("a/b#c", new.id)
    assert places.others.read_head("us-east-2", key) is None
    places.warm["us-east-2"].create_conversation(key.tenant, new)
    assert places.others.read_head("eu-central-1", key) is None
    head = places.others.read_head("us-east-2", key)
    assert isinstance(head, Head)
    assert (encode(head.conversation), head.claimed_ms) == (encode(new), 0)
    places.warm["eu-central-1"].create_conversation(key.tenant, head.conversation, claimed_ms=NOW_MS)
    assert encode(places.others.read_head("eu-central-1", key)) == encode(Head(new, NOW_MS))
    places.erasures["us-east-2"].put_tombstone(key, tombstone())
    assert places.others.read_head("us-east-2", key) == Gone(tombstone())


def test_the_last_activity_is_the_pulses_or_the_newest_messages_whichever_is_later(places: Places) -> None:
    new = conversation()
    key = ConversationKey("a/b#c", new.id)
    assert places.others.read_active_at("us-east-2", key) is None
    there = places.warm["us-east-2"]
    there.create_conversation(key.tenant, new)
    assert places.others.read_active_at("us-east-2", key) == new.active_at
    assert places.others.read_active_at("eu-central-1", key) is None
    active_ms = times.from_rfc3339(new.active_at)
    for began_ms, expected_ms in ((active_ms - 5_000, active_ms), (active_ms + 5_000, active_ms + 5_000)):
        there.put_message(key.tenant, StoredMessage(message(key, id=ids.mint(began_ms))))
        assert places.others.read_active_at("us-east-2", key) == times.to_rfc3339(expected_ms)
    there.touch(key, now_ms=active_ms + 3_600_000)
    assert places.others.read_active_at("us-east-2", key) == times.to_rfc3339(active_ms + 3_600_000)


# --- the clients ----------------------------------------------------------------------------------------------


def test_a_regions_client_is_made_when_it_is_first_asked_and_once(clients: dict[str, DynamoDBClient]) -> None:
    made: list[str] = []

    def client(region: str) -> DynamoDBClient:
        made.append(region)
        return clients[region]

    others = OtherTablesDynamoDB(client, TABLE)
    assert made == []
    for _ in range(2):
        others.read_message("us-east-2", new_key(), ids.mint(NOW_MS))
    assert made == ["us-east-2"]


def test_a_region_that_is_not_there_is_unavailable_at_the_first_attempt() -> None:
    client = boto3.client(
        "dynamodb",
        region_name="us-east-2",
        endpoint_url="http://127.0.0.1:9",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=aws_config.OTHER_REGION,
    )
    attempts: list[str] = []
    client.meta.events.register("before-send.dynamodb.*", lambda request, **_: attempts.append(request.url))
    with pytest.raises(WarmUnavailable):
        OtherTablesDynamoDB(lambda _: client, TABLE).read_message("us-east-2", new_key(), ids.mint(NOW_MS))
    assert len(attempts) == 1
