"""What a write of another region has taken the place of, put back: one suite for every implementation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.support.contests import CLAIMS, ENDINGS
from tests.support.conversations import NOW_MS, awkward_object, conversation, message, noise, text_parts, tombstone
from tests.support.moto_table import TABLE, empty_table, moto_clients
from threadkeep.domain import ids, times
from threadkeep.domain.bounds import ARCHIVE_SHARDS, RETENTION_MARGIN_MS
from threadkeep.domain.contests import Claim, Ending, Head
from threadkeep.domain.json_values import encode
from threadkeep.domain.model import ConversationKey, StoredMessage
from threadkeep.ports import DueEntry, DueList, ErasureStore, MessageReplaced, ReplacedItems, WarmStore
from threadkeep.stores import contest_items, table_keys, warm_items
from threadkeep.stores.bodies_memory import BodiesMemory
from threadkeep.stores.due_dynamodb import DueDynamoDB
from threadkeep.stores.due_memory import DueMemory
from threadkeep.stores.erasures_dynamodb import ErasuresDynamoDB
from threadkeep.stores.erasures_memory import ErasuresMemory
from threadkeep.stores.packing import pack
from threadkeep.stores.replaced_dynamodb import ReplacedDynamoDB
from threadkeep.stores.replaced_memory import ReplacedMemory
from threadkeep.stores.warm_dynamodb import WarmDynamoDB
from threadkeep.stores.warm_memory import WarmMemory

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

OURS, THEIRS = "eu-central-1", "us-east-1"
TENANT = "a/b#c"
SERVICE = "service"
Image = Mapping[str, Any]


class Places(msgspec.Struct, frozen=True):
    """A region's table.

    Attributes:
        replaced: what is tried.
        image: the item of a message, as a record of the table's stream has it; it is not in the table then.
        remove: an item, by its sort key.
    """

    replaced: ReplacedItems
    warm: WarmStore
    erasures: ErasureStore
    due: DueList
    image: Callable[[ConversationKey, StoredMessage], Image]
    remove: Callable[[ConversationKey, str], None]


@pytest.fixture(scope="module")
def clients() -> Iterator[tuple[DynamoDBClient, S3Client]]:
    with moto_clients() as made:
        yield made


@pytest.fixture(params=["memory", "dynamodb"])
def places(request: pytest.FixtureRequest) -> Places:
    if request.param == "memory":
        return in_memory()
    table, _ = request.getfixturevalue("clients")
    empty_table(table)
    return in_dynamodb(table)


def in_memory() -> Places:
    memory = WarmMemory()

    def image(key: ConversationKey, stored: StoredMessage) -> Image:
        return warm_items.message_item(key.tenant, stored) | {warm_items.BODY: {"B": pack(stored.message)}}

    def remove(key: ConversationKey, name: str) -> None:
        if name == "head":
            memory.put_standing_head(key, None)
        else:
            del memory.messages[key][table_keys.message_of(name)]

    return Places(ReplacedMemory(memory), memory, ErasuresMemory(memory), DueMemory(memory), image, remove)


def in_dynamodb(table: DynamoDBClient) -> Places:
    bodies = BodiesMemory()

    def remove(key: ConversationKey, name: str) -> None:
        table.delete_item(TableName=TABLE, Key=warm_items.primary_key(key, name))

    def image(key: ConversationKey, stored: StoredMessage) -> Image:
        name = table_keys.message(stored.message.id)
        WarmDynamoDB(table, TABLE, bodies, writer=THEIRS).put_message(key.tenant, stored)
        item = table.get_item(TableName=TABLE, Key=warm_items.primary_key(key, name))["Item"]
        remove(key, name)
        return dict(item)

    return Places(
        ReplacedDynamoDB(table, TABLE, OURS, service_accounts=[(TENANT, SERVICE)]),
        WarmDynamoDB(table, TABLE, bodies, writer=OURS, service_accounts=[(TENANT, SERVICE)]),
        ErasuresDynamoDB(table, TABLE),
        DueDynamoDB(table, TABLE),
        image,
        remove,
    )


# --- heads ----------------------------------------------------------------------------------------------------


def standing(places: Places, key: ConversationKey) -> str | None:
    """Whose head is there."""
    return getattr(places.warm.read_head(key), "owner", None)


@pytest.mark.parametrize(("was", "now", "is_put_back"), CLAIMS)
def test_a_head_is_put_back_where_it_ranks_before(places: Places, was: Claim, now: Claim, *, is_put_back: bool) -> None:
    here = conversation(now.owner, title="here")
    key = ConversationKey(TENANT, here.id)
    places.warm.create_conversation(TENANT, here, claimed_ms=now.at_ms)
    head = Head(conversation(was.owner, id=here.id, title="there", metadata={"n": 1.0}, retention_days=3), was.at_ms)
    assert places.replaced.put_head(key, head) is is_put_back
    found = places.warm.read_head(key)
    assert encode(found) == encode(head.conversation if is_put_back else here)
    # Once more, as another region does it: nothing changes.
    assert places.replaced.put_head(key, head) is False
    assert encode(places.warm.read_head(key)) == encode(found)


def test_what_was_put_back_still_ranks_as_it_did(places: Places) -> None:
    here = conversation("bob")
    key = ConversationKey(TENANT, here.id)
    places.warm.create_conversation(TENANT, here, claimed_ms=7)
    for owner, claimed_ms, is_put in (("ann", 5, True), ("carol", 6, False), ("dora", 4, True), ("ann", 5, False)):
        head = Head(conversation(owner, id=here.id), claimed_ms)
        assert places.replaced.put_head(key, head) is is_put
    assert standing(places, key) == "dora"


def test_a_title_leaves_the_claim_as_it_is(places: Places) -> None:
    here = conversation("ann")
    key = ConversationKey(TENANT, here.id)
    places.warm.create_conversation(TENANT, here, claimed_ms=5)
    places.warm.update_conversation(key, owner="ann", title="new")
    assert not places.replaced.put_head(key, Head(conversation("bob", id=here.id), 6))
    assert places.replaced.put_head(key, Head(conversation("bob", id=here.id), 4))


def test_no_head_comes_back_that_is_gone(places: Places) -> None:
    here = conversation("bob")
    key = ConversationKey(TENANT, here.id)
    ours = Head(conversation("ann", id=here.id), 5)
    assert not places.replaced.put_head(key, ours)
    places.warm.create_conversation(TENANT, here, claimed_ms=7)
    places.erasures.put_tombstone(key, tombstone())
    places.erasures.clear(key)
    assert not places.replaced.put_head(key, ours)


@pytest.mark.parametrize("owner", ["ann", SERVICE])
def test_the_list_follows_the_owner(places: Places, owner: str) -> None:
    here = conversation("bob")
    key = ConversationKey(TENANT, here.id)
    told = msgspec.structs.replace(here, owner=owner, active_at=times.to_rfc3339(NOW_MS + 60_000))
    places.replaced.give_to(key, told)  # where nothing is, nothing comes to be
    places.warm.create_conversation(TENANT, here, claimed_ms=7)
    places.replaced.put_head(key, Head(conversation(owner, id=here.id), 5))
    for _ in range(2):
        places.replaced.give_to(key, told)
        listed = {name: places.warm.list_conversations(TENANT, name, limit=9, cursor=None) for name in ("bob", owner)}
        assert [[one.id for one in page.conversations] for page in listed.values()] == [[], [here.id]]
    # The pulse is written as a whole: an old time in it would stand over what another region has noted meanwhile.
    assert places.warm.read_active_at(key) == told.active_at


def due_of(places: Places, ms: int) -> list[DueEntry]:
    """What falls due on the day of that time, by then."""
    day = times.to_rfc3339(ms)[:10]
    shards = range(ARCHIVE_SHARDS)
    return [one for shard in shards for one in places.due.read(day, shard, until_ms=ms, limit=9, after=None)]


@pytest.mark.parametrize("days", [1, 300, None])
def test_it_falls_due_by_the_end_of_the_owners_retention(places: Places, days: int | None) -> None:
    here = conversation("bob", retention_days=30)
    key = ConversationKey(TENANT, here.id)
    places.warm.create_conversation(TENANT, here, claimed_ms=7)
    told = msgspec.structs.replace(here, owner="ann", retention_days=days)
    places.replaced.give_to(key, told)
    assert here.expires_ms is not None
    until_ms = min(told.expires_ms or here.expires_ms, here.expires_ms) + RETENTION_MARGIN_MS
    assert due_of(places, until_ms) == [DueEntry(key, times.to_rfc3339(until_ms))]


# --- messages -------------------------------------------------------------------------------------------------


def stored(key: ConversationKey, identifier: str, ending: Ending, text: str) -> StoredMessage:
    status = "complete" if ending.is_complete else "interrupted"
    return StoredMessage(message(key, text_parts(text), id=identifier, status=status), ending.epoch)


def replaced(places: Places, key: ConversationKey, was: StoredMessage, now: StoredMessage) -> MessageReplaced:
    """The one has taken the other's place."""
    image = places.image(key, was)
    places.warm.put_message(key.tenant, now)
    ended, ends = (Ending(is_complete=one.message.status == "complete", epoch=one.epoch) for one in (was, now))
    assert contest_items.ending_of(image) == ended
    return MessageReplaced(key, was.message.id, ended, ends, image)


@pytest.mark.parametrize(("was", "now", "is_put_back"), ENDINGS)
def test_a_message_is_put_back_where_it_ranks_before(
    places: Places, was: Ending, now: Ending, *, is_put_back: bool
) -> None:
    key, identifier = ConversationKey(TENANT, ids.mint(NOW_MS)), ids.mint(NOW_MS)
    before, after = stored(key, identifier, was, "what was"), stored(key, identifier, now, "what is")
    contest = replaced(places, key, before, after)
    assert contest.is_undue is is_put_back
    assert places.replaced.put_message(contest) is is_put_back
    expected = before if is_put_back else after
    assert places.warm.read_message(key, identifier) == expected
    assert places.replaced.put_message(contest) is False
    assert places.warm.read_message(key, identifier) == expected


@pytest.mark.parametrize(
    "parts",
    [(awkward_object(),), text_parts(noise(60_000)), text_parts(noise(900_000))],
    ids=["awkward", "beyond a frame", "beyond an item"],
)
def test_it_comes_back_whole(places: Places, parts: Any) -> None:
    key, identifier = ConversationKey(TENANT, ids.mint(NOW_MS)), ids.mint(NOW_MS)
    was = StoredMessage(message(key, parts, id=identifier, parent=ids.mint(NOW_MS - 1), model="m"), 6)
    now = StoredMessage(message(key, text_parts("what is"), id=identifier, status="stopped"), 7)
    assert places.replaced.put_message(replaced(places, key, was, now))
    assert encode(places.warm.read_message(key, identifier)) == encode(was)


def test_no_message_comes_back_that_is_gone(places: Places) -> None:
    key, identifier = ConversationKey(TENANT, ids.mint(NOW_MS)), ids.mint(NOW_MS)
    was = stored(key, identifier, Ending(is_complete=True, epoch=5), "what was")
    contest = replaced(places, key, was, stored(key, identifier, Ending(is_complete=False, epoch=6), "what is"))
    places.remove(key, table_keys.message(identifier))
    assert places.replaced.put_message(contest) is False
    assert places.warm.read_message(key, identifier) is None


def test_who_puts_back_is_named_so_that_the_others_are_told(clients: tuple[DynamoDBClient, S3Client]) -> None:
    table, _ = clients
    empty_table(table)
    places = in_dynamodb(table)
    here = conversation("bob")
    key, identifier = ConversationKey(TENANT, here.id), ids.mint(NOW_MS)
    places.warm.create_conversation(TENANT, here, claimed_ms=7)
    places.replaced.put_head(key, Head(conversation("ann", id=here.id), 5))
    was = stored(key, identifier, Ending(is_complete=True, epoch=5), "what was")
    places.replaced.put_message(
        replaced(places, key, was, stored(key, identifier, Ending(is_complete=False, epoch=6), "what is"))
    )
    for name in ("head", table_keys.message(identifier)):
        item = table.get_item(TableName=TABLE, Key=warm_items.primary_key(key, name))["Item"]
        assert item["g"] == {"S": OURS}
