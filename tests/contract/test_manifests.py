"""What every `threadkeep.ports.ManifestStore` does alike: in memory, and on DynamoDB's API."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.support.conversations import NOW_MS, message
from tests.support.moto_table import REGION, TABLE, buckets_of, moto_clients
from threadkeep.domain import ids
from threadkeep.domain.archive import Manifest, Member
from threadkeep.domain.model import ConversationKey, StoredMessage
from threadkeep.ports import ManifestStore, WarmStore
from threadkeep.stores import object_keys
from threadkeep.stores.bodies_s3 import BodiesS3
from threadkeep.stores.manifests_dynamodb import ManifestsDynamoDB
from threadkeep.stores.manifests_memory import ManifestsMemory
from threadkeep.stores.warm_dynamodb import WarmDynamoDB
from threadkeep.stores.warm_memory import WarmMemory

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client


class Table(msgspec.Struct, frozen=True):
    """Manifests, and the messages beside them."""

    manifests: ManifestStore
    warm: WarmStore


@pytest.fixture(scope="module")
def clients() -> Iterator[tuple[DynamoDBClient, S3Client]]:
    with moto_clients() as made:
        yield made


@pytest.fixture(params=["memory", "dynamodb"])
def table(request: pytest.FixtureRequest) -> Table:
    if request.param == "memory":
        memory = WarmMemory()
        return Table(ManifestsMemory(memory), memory)
    client, bucket = request.getfixturevalue("clients")
    bodies = BodiesS3(buckets_of(bucket), REGION)
    return Table(ManifestsDynamoDB(client, TABLE), WarmDynamoDB(client, TABLE, bodies))


def new_key(tenant: str = "a/b#c") -> ConversationKey:
    return ConversationKey(tenant, ids.mint(NOW_MS))


def manifest(key: ConversationKey, *, members: int = 1, at_ms: int = NOW_MS, seed: int = 0) -> Manifest:
    """A manifest of made-up members, as a segment's would be: they lie end to end."""
    source = random.Random(seed)  # noqa: S311 -- nothing secret
    made: list[Member] = []
    for number in range(members):
        first, last = ids.mint(at_ms + 10 * number), ids.mint(at_ms + 10 * number + 5)
        offset = made[-1].offset + made[-1].size_bytes if made else 0
        digest = source.randbytes(32).hex()
        size = source.randrange(1, 300_000)
        made.append(Member(first=first, last=last, count=100, offset=offset, size_bytes=size, digest=digest))
    digest = source.randbytes(32).hex()
    return Manifest(
        first=made[0].first,
        last=made[-1].last,
        count=100 * members,
        object_key=object_keys.segment(key, made[0].first, digest),
        size_bytes=made[-1].offset + made[-1].size_bytes,
        digest=digest,
        regions=("eu-central-1", "us-east-1"),
        archived_ms=NOW_MS + 7,
        members=tuple(made),
    )


def put_messages(table: Table, key: ConversationKey, count: int) -> list[str]:
    stored = [StoredMessage(message(key, now_ms=NOW_MS + number)) for number in range(count)]
    for one in stored:
        table.warm.put_message(key.tenant, one)
    return [one.message.id for one in stored]


def listed(table: Table, key: ConversationKey) -> list[str]:
    return [stored.message.id for stored in table.warm.read_messages(key, limit=1_000).messages][::-1]


# --- manifests ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("members", [1, 3, 164])
def test_a_manifest_comes_back_as_it_was(table: Table, members: int) -> None:
    key = new_key()
    kept = manifest(key, members=members)
    assert table.manifests.put(key, kept) is None
    assert table.manifests.read(key) == (kept,)


def test_manifests_come_by_their_first_ids_and_may_overlap(table: Table) -> None:
    key = new_key()
    late, early, across = (manifest(key, members=9, at_ms=NOW_MS + at) for at in (200, 0, 50))
    for one in (late, early, across):
        table.manifests.put(key, one)
    assert table.manifests.read(key) == (early, across, late)


def test_the_one_that_stands_is_told_and_stays(table: Table) -> None:
    key = new_key()
    kept = manifest(key)
    other = msgspec.structs.replace(
        manifest(key, seed=1), first=kept.first, object_key=object_keys.segment(key, kept.first, "0" * 64)
    )
    assert table.manifests.put(key, kept) is None
    assert table.manifests.put(key, other) == kept
    assert table.manifests.put(key, kept) == kept
    assert table.manifests.read(key) == (kept,)


def test_a_conversation_has_its_own_manifests_alone(table: Table) -> None:
    conversation = ids.mint(NOW_MS)
    keys = [ConversationKey(tenant, conversation) for tenant in ("a", "a#b", "a%23b", "", "A")] + [new_key("a")]
    kept = [manifest(key, at_ms=NOW_MS + number) for number, key in enumerate(keys)]
    for key, one in zip(keys, kept, strict=True):
        table.manifests.put(key, one)
    assert [table.manifests.read(key) for key in keys] == [(one,) for one in kept]
    assert table.manifests.read(new_key()) == ()


def test_messages_and_manifests_do_not_meet(table: Table) -> None:
    key = new_key()
    messages = put_messages(table, key, 3)
    kept = manifest(key)
    table.manifests.put(key, kept)
    assert listed(table, key) == messages
    assert table.manifests.read(key) == (kept,)
    table.manifests.remove_messages(key, messages)
    assert listed(table, key) == []
    assert table.manifests.read(key) == (kept,)


def test_more_manifests_than_a_page_of_the_table_holds_are_all_read(table: Table) -> None:
    key = new_key()
    kept = [manifest(key, members=164, at_ms=NOW_MS + 10_000 * number, seed=number) for number in range(90)]
    for one in kept:
        table.manifests.put(key, one)
    assert table.manifests.read(key) == tuple(kept)


# --- messages that a segment holds ----------------------------------------------------------------------------


def test_these_messages_go_and_the_others_stay(table: Table) -> None:
    key, neighbour = new_key(), new_key()
    messages = put_messages(table, key, 60)
    others = put_messages(table, neighbour, 3)
    table.manifests.remove_messages(key, [*messages[:55], *others])
    assert listed(table, key) == messages[55:]
    assert listed(table, neighbour) == others


def test_to_remove_what_is_gone_or_named_twice_or_nothing_is_no_fault(table: Table) -> None:
    key = new_key()
    messages = put_messages(table, key, 3)
    for _ in range(2):
        table.manifests.remove_messages(key, [messages[0], messages[0], ids.mint(NOW_MS)])
    table.manifests.remove_messages(key, [])
    assert listed(table, key) == messages[1:]
