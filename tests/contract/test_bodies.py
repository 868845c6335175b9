"""What every `threadkeep.ports.BodyStore` does alike: in memory, and on S3's API."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.support.conversations import NOW_MS
from tests.support.moto_table import BUCKET, REGION, buckets_of, moto_clients
from threadkeep.domain import ids
from threadkeep.domain.errors import Unreadable
from threadkeep.domain.model import ConversationKey
from threadkeep.ports import BodyStore
from threadkeep.stores.bodies_memory import BodiesMemory
from threadkeep.stores.bodies_s3 import BodiesS3

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client


class Bodies(msgspec.Struct, frozen=True):
    """A store, and how something else comes to lie under a key of it."""

    store: BodyStore
    overwrite: Callable[[str, bytes], object]


@pytest.fixture(scope="module")
def clients() -> Iterator[tuple[DynamoDBClient, S3Client]]:
    with moto_clients() as made:
        yield made


@pytest.fixture(params=["memory", "s3"])
def bodies(request: pytest.FixtureRequest) -> Bodies:
    if request.param == "memory":
        memory = BodiesMemory()
        return Bodies(memory, memory.objects.__setitem__)
    _, bucket = request.getfixturevalue("clients")
    return Bodies(
        BodiesS3(buckets_of(bucket), REGION), lambda key, body: bucket.put_object(Bucket=BUCKET, Key=key, Body=body)
    )


def new_key(tenant: str = "acme") -> ConversationKey:
    return ConversationKey(tenant, ids.mint(NOW_MS))


@pytest.mark.parametrize("body", [b"", b"body", bytes(range(256)), b"x" * 8 * 1024 * 1024])
def test_a_body_comes_back_as_it_is(bodies: Bodies, body: bytes) -> None:
    key, message = new_key(), ids.mint(NOW_MS)
    pointer = bodies.store.put(key, message, body)
    assert pointer.startswith(f"bodies/acme/{key.conversation}/{message}/")
    assert bodies.store.get(pointer) == body


def test_a_body_put_again_is_the_same_object(bodies: Bodies) -> None:
    key, message = new_key(), ids.mint(NOW_MS)
    pointers = {bodies.store.put(key, message, b"body") for _ in range(2)}
    assert [bodies.store.get(pointer) for pointer in pointers] == [b"body"]


def test_other_contents_tenants_conversations_and_messages_do_not_meet(bodies: Bodies) -> None:
    conversation, message = ids.mint(NOW_MS), ids.mint(NOW_MS)
    places = [
        (ConversationKey(tenant, conversation), message, body)
        for tenant in ("a", "a/b", "a%2Fb", "..", ".", "é", "")
        for body in (b"one", b"other")
    ]
    places += [(new_key("a"), message, b"one"), (ConversationKey("a", conversation), ids.mint(NOW_MS), b"one")]
    pointers = [bodies.store.put(*place) for place in places]
    assert len(set(pointers)) == len(places)
    assert [bodies.store.get(pointer) for pointer in pointers] == [body for _, _, body in places]
    assert not {".", ".."} & {segment for pointer in pointers for segment in pointer.split("/")}


@pytest.mark.parametrize("found", [b"", b"bodx", b"body body"])
def test_a_damaged_body_is_never_given_out(bodies: Bodies, found: bytes) -> None:
    key, message = new_key(), ids.mint(NOW_MS)
    pointer = bodies.store.put(key, message, b"body")
    bodies.overwrite(pointer, found)
    with pytest.raises(Unreadable, match=message) as unreadable:
        bodies.store.get(pointer)
    assert (unreadable.value.conversation, unreadable.value.item) == (key.conversation, message)


def test_a_missing_body_names_its_message(bodies: Bodies) -> None:
    message = ids.mint(NOW_MS)
    pointer = bodies.store.put(new_key(), message, b"body")
    with pytest.raises(Unreadable, match=message):
        bodies.store.get(pointer.rpartition("/")[0] + "/" + "0" * 64)
