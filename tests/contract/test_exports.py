"""What every `ExportStore` and `ExportFiles` does alike: in memory, and on the APIs of DynamoDB and S3."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.support.conversations import NOW_MS
from tests.support.moto_table import BUCKET, REGION, TABLE, moto_clients
from threadkeep import schema
from threadkeep.domain import ids, times
from threadkeep.domain.bounds import EXPORT_LIVES_MS, EXPORTS_RUNNING_MAX
from threadkeep.domain.errors import WarmUnavailable
from threadkeep.domain.exports import Export
from threadkeep.ports import ExportFiles, ExportStore
from threadkeep.stores import object_keys, table_keys
from threadkeep.stores.buckets_s3 import Bucket
from threadkeep.stores.export_files_s3 import ExportFilesS3
from threadkeep.stores.exports_dynamodb import ExportsDynamoDB
from threadkeep.stores.exports_memory import ExportFilesMemory, ExportsMemory

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

PART_BYTES_MIN = 5 * 1024 * 1024
"""S3 refuses a smaller part, but for the last; so does moto."""


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


# --- files ------------------------------------------------------------------------------------------------------


class Files(msgspec.Struct, frozen=True):
    """A store of files, and how to look into it."""

    store: ExportFiles
    content: Callable[[str, str], bytes | None]
    parts: Callable[[], int]


@pytest.fixture(params=["memory", "s3"])
def files(request: pytest.FixtureRequest) -> Files:
    if request.param == "memory":
        memory = ExportFilesMemory()
        return Files(memory, lambda tenant, export: memory.files.get((tenant, export)), lambda: 0)
    _, bucket = request.getfixturevalue("clients")

    def content(tenant: str, export: str) -> bytes | None:
        key = object_keys.export(tenant, export)
        listed = bucket.list_objects_v2(Bucket=BUCKET, Prefix=key)
        return bytes(bucket.get_object(Bucket=BUCKET, Key=key)["Body"].read()) if listed["KeyCount"] else None

    return Files(
        ExportFilesS3({REGION: Bucket(bucket, BUCKET)}, REGION),
        content,
        lambda: len(bucket.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])),
    )


@pytest.mark.parametrize(
    "pieces",
    [
        [],
        [b""],
        [b"a", b"", b"bc"],
        [b"x" * 1_000] * 30_000,
        [b"y" * (3 * PART_BYTES_MIN), b"z"],
    ],
    ids=["none", "empty", "small", "many", "large"],
)
def test_a_file_is_its_pieces(files: Files, pieces: list[bytes]) -> None:
    export = ids.mint(NOW_MS)
    whole = b"".join(pieces)
    assert files.store.write("a/b", export, iter(pieces)) == len(whole)
    assert files.content("a/b", export) == whole


def test_written_again_it_takes_the_place_of_what_was_there(files: Files) -> None:
    export = ids.mint(NOW_MS)
    for whole in (b"first", b"second"):
        files.store.write("acme", export, [whole])
    assert files.content("acme", export) == b"second"


@pytest.mark.parametrize("after_bytes", [0, 3 * PART_BYTES_MIN])
def test_a_file_that_breaks_off_is_not_there_and_neither_are_its_parts(files: Files, after_bytes: int) -> None:
    export = ids.mint(NOW_MS)

    def broken() -> Iterator[bytes]:
        yield b"x" * after_bytes
        raise WarmUnavailable("a store broke off")

    with pytest.raises(WarmUnavailable, match="broke off"):
        files.store.write("acme", export, broken())
    assert files.content("acme", export) is None
    assert files.parts() == 0


def test_its_link_names_the_file(files: Files) -> None:
    export = ids.mint(NOW_MS)
    files.store.write("acme", export, [b"x"])
    url = files.store.presign_get("acme", export, region=REGION, name="thread keep.jsonl", lives_s=60)
    assert f"exports/acme/{export}" in url
    assert "thread" in url
