"""What every `threadkeep.ports.ExportStore` does alike: in memory, and on the API of DynamoDB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.support.conversations import NOW_MS
from tests.support.moto_table import REGION, TABLE, moto_clients
from threadkeep import schema
from threadkeep.domain import ids, times
from threadkeep.domain.bounds import EXPORT_LIVES_MS, EXPORTS_RUNNING_MAX
from threadkeep.domain.exports import Export
from threadkeep.ports import ExportStore
from threadkeep.stores import table_keys
from threadkeep.stores.exports_dynamodb import ExportsDynamoDB
from threadkeep.stores.exports_memory import ExportsMemory

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client


@pytest.fixture(scope="module")
def clients() -> Iterator[tuple[DynamoDBClient, S3Client]]:
    with moto_clients() as made:
        yield made


@pytest.fixture(params=["memory", "dynamodb"])
def store(request: pytest.FixtureRequest) -> ExportStore:
    if request.param == "memory":
        return ExportsMemory()
    table, _ = request.getfixturevalue("clients")
    return ExportsDynamoDB(table, TABLE)


def new(owner: str | None = None, **fields: Any) -> Export:
    """An export of a user of its own, unless told."""
    identifier = ids.mint(NOW_MS)
    return Export(
        **{
            "id": identifier,
            "owner": owner or f"user-{identifier}",
            "region": REGION,
            "format": "jsonl",
            "state": "running",
            "created_at": times.to_rfc3339(NOW_MS),
            "expires_at": times.to_rfc3339(NOW_MS + EXPORT_LIVES_MS),
            **fields,
        }
    )


def claim(store: ExportStore, export: Export, *, now_ms: int = NOW_MS, tenant: str = "acme") -> bool:
    return store.claim(tenant, export, now_ms=now_ms, until_ms=now_ms + 1_000)


# --- exports ----------------------------------------------------------------------------------------------------


def test_what_is_put_is_read(store: ExportStore) -> None:
    export = new(conversation=ids.mint(NOW_MS), conversations=3, messages=4, bytes=2**53, skipped=1)
    assert store.read("acme", export.id, now_ms=NOW_MS) is None
    assert store.put("acme", export)
    assert store.read("acme", export.id, now_ms=NOW_MS) == export


def test_an_export_is_of_its_tenant_alone(store: ExportStore) -> None:
    export = new()
    store.put("a#b", export)
    assert [store.read(tenant, export.id, now_ms=NOW_MS) for tenant in ("a", "b", "a%23b", "")] == [None] * 4
    assert store.read("a#b", export.id, now_ms=NOW_MS) == export


@pytest.mark.parametrize("state", ["done", "failed"])
def test_a_finished_one_stays_as_it_is(store: ExportStore, state: Any) -> None:
    export = new()
    assert store.put("acme", export)
    assert store.put("acme", msgspec.structs.replace(export, messages=1))
    finished = msgspec.structs.replace(export, state=state, messages=2)
    assert store.put("acme", finished)
    for later in ("running", "done", "failed"):
        assert not store.put("acme", msgspec.structs.replace(export, state=later, messages=3))
    assert store.read("acme", export.id, now_ms=NOW_MS) == finished


def test_an_expired_one_is_gone_although_it_still_lies_there(store: ExportStore) -> None:
    """A51: what has expired was served until the store took it away, days later."""
    export = new()
    store.put("acme", export)
    expires_ms = NOW_MS + EXPORT_LIVES_MS
    assert store.read("acme", export.id, now_ms=expires_ms - 1) == export
    assert store.read("acme", export.id, now_ms=expires_ms) is None


def test_in_the_table_it_carries_the_time_at_which_dynamodb_takes_it_away(
    clients: tuple[DynamoDBClient, S3Client],
) -> None:
    table, _ = clients
    store = ExportsDynamoDB(table, TABLE)
    export = new(expires_at=times.to_rfc3339(NOW_MS + 1))
    store.put("acme", export)
    claim(store, export)
    for partition, sort_key, expires_s in (
        (table_keys.export("acme", export.id), schema.SORT_EXPORT, NOW_MS // 1_000 + 1),
        (table_keys.exporting("acme", export.owner), "place#0", NOW_MS // 1_000 + 1),
    ):
        key = {schema.PARTITION_KEY: {"S": partition}, schema.SORT_KEY: {"S": sort_key}}
        item = table.get_item(TableName=TABLE, Key=key)["Item"]
        assert item[schema.TTL_ATTRIBUTE] == {"N": str(expires_s)}


# --- handing on -------------------------------------------------------------------------------------------------


def test_what_is_handed_on_is_the_next_runs_alone(store: ExportStore) -> None:
    export = new()
    assert not store.hand_on("acme", msgspec.structs.replace(export, notes="one"), before=None)  # of no export
    store.put("acme", export)
    one = msgspec.structs.replace(export, notes="one", messages=1)
    assert store.hand_on("acme", one, before=None)
    assert store.read("acme", export.id, now_ms=NOW_MS) == one
    assert not store.put("acme", msgspec.structs.replace(export, messages=9))
    assert not store.put("acme", msgspec.structs.replace(export, state="done"))
    assert not store.hand_on("acme", msgspec.structs.replace(export, notes="other"), before=None)
    assert store.read("acme", export.id, now_ms=NOW_MS) == one
    assert store.put("acme", msgspec.structs.replace(one, messages=2))
    two = msgspec.structs.replace(one, notes="two", messages=3)
    assert store.hand_on("acme", two, before="one")
    assert not store.hand_on("acme", one, before=None)
    assert store.read("acme", export.id, now_ms=NOW_MS) == two


def test_handed_on_again_after_a_lost_answer_it_is_so_already(store: ExportStore) -> None:
    export = new()
    store.put("acme", export)
    handed_on = msgspec.structs.replace(export, notes="one")
    assert [store.hand_on("acme", handed_on, before=None) for _ in range(2)] == [True, True]


@pytest.mark.parametrize("state", ["done", "failed"])
def test_a_finished_one_is_not_handed_on(store: ExportStore, state: Any) -> None:
    export = new(state=state)
    store.put("acme", export)
    assert not store.hand_on("acme", msgspec.structs.replace(export, state="running", notes="one"), before=None)
    assert store.read("acme", export.id, now_ms=NOW_MS) == export


# --- places -----------------------------------------------------------------------------------------------------


def test_a_user_has_so_many_under_way_and_no_more(store: ExportStore) -> None:
    mine = [new("ann") for _ in range(EXPORTS_RUNNING_MAX)]
    assert [claim(store, export, tenant="places") for export in mine] == [True] * EXPORTS_RUNNING_MAX
    another = new("ann")
    assert not claim(store, another, tenant="places")
    assert claim(store, new("ann"), tenant="other")
    assert claim(store, new("bob"), tenant="places")
    assert claim(store, mine[0], tenant="places")
    store.release("places", mine[0])
    assert claim(store, another, tenant="places")
    assert not claim(store, mine[0], tenant="places")


def test_a_place_is_free_again_when_its_time_is_over(store: ExportStore) -> None:
    mine = [new("cid") for _ in range(EXPORTS_RUNNING_MAX)]
    assert all(claim(store, export) for export in mine)
    another = new("cid")
    assert not claim(store, another, now_ms=NOW_MS + 999)
    assert claim(store, another, now_ms=NOW_MS + 1_000)
    store.release("acme", mine[0])  # it has none any more, and takes nobody else's
    assert claim(store, another, now_ms=NOW_MS + 1_000)


def test_what_has_no_place_may_be_released(store: ExportStore) -> None:
    store.release("acme", new())
