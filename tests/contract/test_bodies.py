"""What every `threadkeep.ports.BodyStore` does alike: in memory, and on S3's API."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
import pytest

from tests.support.buckets import ELSEWHERE, HOME, S3Peek, moto_buckets
from tests.support.conversations import NOW_MS
from tests.support.moto_table import moto_clients
from threadkeep.domain import ids
from threadkeep.domain.errors import Unreadable, WarmUnavailable
from threadkeep.domain.model import ConversationKey
from threadkeep.ports import BodyStore
from threadkeep.stores.bodies_memory import BodiesMemory
from threadkeep.stores.bodies_s3 import BodiesS3
from threadkeep.stores.buckets_s3 import Bucket


class Bodies(msgspec.Struct, frozen=True):
    """A store in its home region, and how something else comes to lie under a key of it."""

    store: BodyStore
    overwrite: Callable[[str, bytes], object]


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, Bucket]]:
    with moto_clients():
        yield moto_buckets()


@pytest.fixture(params=["memory", "s3"])
def bodies(request: pytest.FixtureRequest) -> Bodies:
    if request.param == "memory":
        memory = BodiesMemory()
        return Bodies(memory, memory.objects.__setitem__)
    buckets: dict[str, Bucket] = request.getfixturevalue("s3")
    return Bodies(BodiesS3(buckets, HOME), S3Peek(buckets[HOME]).put)


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


# --- bodies of another region ---------------------------------------------------------------------------------


@pytest.mark.parametrize("at_home", [None, b"", b"bodx"])
def test_a_body_that_is_not_here_as_it_was_comes_from_the_region_that_has_it(
    s3: dict[str, Bucket], at_home: bytes | None
) -> None:
    key, message = new_key(), ids.mint(NOW_MS)
    pointer = BodiesS3(s3, ELSEWHERE).put(key, message, b"body")
    home = S3Peek(s3[HOME])
    assert home.listed(pointer) == []  # each region writes its own bucket
    if at_home is not None:
        home.put(pointer, at_home)
    assert BodiesS3(s3, HOME).get(pointer) == b"body"


def test_a_body_that_is_here_is_asked_of_nobody_else(s3: dict[str, Bucket]) -> None:
    bodies = BodiesS3(s3, HOME)
    pointer = bodies.put(new_key(), ids.mint(NOW_MS), b"body")
    with S3Peek(s3[ELSEWHERE]).away():
        assert bodies.get(pointer) == b"body"


def test_a_body_is_not_called_lost_while_a_region_does_not_answer(s3: dict[str, Bucket]) -> None:
    pointer = BodiesS3(s3, ELSEWHERE).put(new_key(), ids.mint(NOW_MS), b"body")
    bodies = BodiesS3(s3, HOME)
    with S3Peek(s3[ELSEWHERE]).away(), pytest.raises(WarmUnavailable):
        bodies.get(pointer)
    S3Peek(s3[ELSEWHERE]).delete(pointer)
    with pytest.raises(Unreadable):
        bodies.get(pointer)
    with S3Peek(s3[HOME]).away(), pytest.raises(WarmUnavailable):
        bodies.get(pointer)
