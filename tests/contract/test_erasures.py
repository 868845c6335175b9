"""What every `threadkeep.ports.ErasureStore` does alike: in memory, and on DynamoDB's own API."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, get_args

import msgspec
import pytest

from tests.support.conversations import NOW_MS, conversation, message, noise, text_parts
from tests.support.moto_table import TABLE, empty_table, moto_clients
from threadkeep.domain import ids, times
from threadkeep.domain.bounds import ERASURE_ITEMS_MAX
from threadkeep.domain.erasure import Reason, ReceiptLine, Store, Tombstone
from threadkeep.domain.model import ConversationKey, StoredMessage
from threadkeep.ports import ErasureStore, Gone, WarmStore
from threadkeep.stores.bodies_memory import BodiesMemory
from threadkeep.stores.erasures_dynamodb import ErasuresDynamoDB
from threadkeep.stores.erasures_memory import ErasuresMemory
from threadkeep.stores.warm_dynamodb import WarmDynamoDB
from threadkeep.stores.warm_memory import WarmMemory

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

TENANT = "acme"
TOMBSTONE = Tombstone(
    owner="ada#\u754c",
    erased_at=times.to_rfc3339(NOW_MS),
    reason="owner",
    regions=("eu-central-1", "us-east-1"),
    pitr_days=21,
    second_pass_ms=NOW_MS + 1_800_000,
)


class Stores(msgspec.Struct, frozen=True):
    """The store, and the warm tier whose table it shares."""

    erasures: ErasureStore
    warm: WarmStore

    def talk(self, messages: int = 1, tenant: str = TENANT, **fields: Any) -> ConversationKey:
        """A conversation with so many messages."""
        new = conversation(now_ms=NOW_MS)
        assert self.warm.create_conversation(tenant, new) is None
        key = ConversationKey(tenant, new.id)
        for number in range(messages):
            self.warm.put_message(tenant, StoredMessage(message(key, now_ms=NOW_MS + number, **fields)))
        return key


@pytest.fixture(scope="module")
def clients() -> Iterator[tuple[DynamoDBClient, S3Client]]:
    with moto_clients() as made:
        yield made


@pytest.fixture(params=["memory", "dynamodb"])
def stores(request: pytest.FixtureRequest) -> Stores:
    if request.param == "memory":
        memory = WarmMemory()
        return Stores(ErasuresMemory(memory), memory)
    table, _ = request.getfixturevalue("clients")
    empty_table(table)
    return Stores(ErasuresDynamoDB(table, TABLE), WarmDynamoDB(table, TABLE, BodiesMemory()))


@pytest.fixture
def store(stores: Stores) -> ErasureStore:
    return stores.erasures


def clear(store: ErasureStore, key: ConversationKey) -> list[int]:
    """Clear it to the end; how many went at each step."""
    counts = []
    while count := store.clear(key):
        counts.append(count)
        assert len(counts) < 100, "it comes to an end"
    return counts


# --- tombstones -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", get_args(Reason))
def test_a_tombstone_comes_back_as_it_was_put(stores: Stores, reason: Reason) -> None:
    key = stores.talk()
    tombstone = msgspec.structs.replace(TOMBSTONE, reason=reason)
    assert stores.erasures.read(key) == (None, ())
    assert stores.erasures.put_tombstone(key, tombstone) is None
    assert stores.erasures.read(key) == (tombstone, ())
    assert stores.warm.read_head(key) == Gone(tombstone)


def test_the_one_that_stands_stays_and_is_returned(stores: Stores) -> None:
    key = stores.talk()
    stores.erasures.put_tombstone(key, TOMBSTONE)
    other = msgspec.structs.replace(TOMBSTONE, owner="bob", reason="retention", second_pass_ms=NOW_MS)
    assert stores.erasures.put_tombstone(key, other) == TOMBSTONE
    assert stores.erasures.read(key)[0] == TOMBSTONE


def test_a_deleted_conversation_is_not_created_again_nor_changed_nor_listed(stores: Stores) -> None:
    key = stores.talk()
    stores.erasures.put_tombstone(key, TOMBSTONE)
    for _ in range(2):  # before the table is cleared, and afterwards
        assert stores.warm.create_conversation(TENANT, conversation("eve", id=key.conversation)) == Gone(TOMBSTONE)
        assert stores.warm.update_conversation(key, owner="ada", title="x") is None
        assert stores.warm.list_conversations(TENANT, "ada", limit=9, cursor=None).conversations == ()
        clear(stores.erasures, key)


def test_of_many_keys_those_with_a_tombstone_are_told(stores: Stores) -> None:
    keys = [ConversationKey(TENANT, ids.mint(NOW_MS)) for _ in range(205)]
    gone = frozenset(keys[::3])
    for key in gone:
        stores.erasures.put_tombstone(key, TOMBSTONE)
    others = [ConversationKey("umbrella", key.conversation) for key in keys[:40]]
    assert stores.erasures.gone([*keys, *others]) == gone
    assert stores.erasures.gone([]) == frozenset()


# --- receipts -------------------------------------------------------------------------------------------------


def note(store: ErasureStore, key: ConversationKey, region: str, kind: Store, count: int, **fields: Any) -> None:
    store.note(key, region, kind, count=count, **{"is_pass": False, "is_done": False, "now_ms": NOW_MS} | fields)


def test_a_line_adds_up_what_every_pass_found(store: ErasureStore) -> None:
    key = ConversationKey(TENANT, ids.mint(NOW_MS))
    store.put_tombstone(key, TOMBSTONE)
    note(store, key, "eu-central-1", "table", 250)
    note(store, key, "eu-central-1", "table", 7)
    note(store, key, "eu-central-1", "table", 0, is_pass=True)
    note(store, key, "us-east-1", "objects", 3, is_pass=True)
    note(store, key, "eu-central-1", "table", 1, is_pass=True, is_done=True, now_ms=NOW_MS + 5)
    first = ReceiptLine(
        region="eu-central-1",
        store="table",
        found=258,
        removed=258,
        passes=2,
        state="done",
        updated_at=times.to_rfc3339(NOW_MS + 5),
    )
    second = ReceiptLine(
        region="us-east-1",
        store="objects",
        found=3,
        removed=3,
        passes=1,
        state="running",
        updated_at=times.to_rfc3339(NOW_MS),
    )
    assert store.read(key) == (TOMBSTONE, (first, second))


def test_a_line_that_is_done_stays_done_whatever_comes_late(store: ErasureStore) -> None:
    key = ConversationKey(TENANT, ids.mint(NOW_MS))
    note(store, key, "eu-central-1", "hot", 0, is_pass=True, is_done=True)
    note(store, key, "eu-central-1", "hot", 2, is_pass=True)
    (line,) = store.read(key)[1]
    assert (line.state, line.found, line.passes) == ("done", 2, 2)


def test_passes_of_many_jobs_add_up(store: ErasureStore) -> None:
    key = ConversationKey(TENANT, ids.mint(NOW_MS))
    for count in range(40):
        note(store, key, "eu-central-1", "hot", count, is_pass=True)
    (line,) = store.read(key)[1]
    assert (line.found, line.removed, line.passes) == (780, 780, 40)


# --- clearing -------------------------------------------------------------------------------------------------


def test_clearing_leaves_the_tombstone_and_its_receipt_and_nothing_else(stores: Stores) -> None:
    key = stores.talk(3)
    stores.warm.note_several(key)
    stores.erasures.put_tombstone(key, TOMBSTONE)
    note(stores.erasures, key, "eu-central-1", "hot", 1)
    before = stores.erasures.read(key)
    assert clear(stores.erasures, key) == [7]  # head, pulse, due entry, that there are several roots, three messages
    assert stores.erasures.read(key) == before
    assert stores.warm.read_first(key) is None
    assert stores.warm.read_messages(key, limit=9).messages == ()
    assert stores.warm.read_active_at(key) is None
    assert stores.erasures.clear(key) == 0


def test_another_conversation_and_another_tenants_of_the_same_id_stay(stores: Stores) -> None:
    key, other = stores.talk(2), stores.talk(2)
    stores.warm.create_conversation("umbrella", conversation("eve", id=key.conversation))
    stores.erasures.put_tombstone(key, TOMBSTONE)
    clear(stores.erasures, key)
    assert len(stores.warm.read_messages(other, limit=9).messages) == 2
    assert stores.warm.read_head(ConversationKey("umbrella", key.conversation)) is not None


def test_what_was_never_there_is_cleared_too(store: ErasureStore) -> None:
    assert store.clear(ConversationKey(TENANT, ids.mint(NOW_MS))) == 0


def test_a_conversation_of_many_pages_is_cleared_to_the_end(stores: Stores, counted: Callable[[], int]) -> None:
    large = text_parts(noise(20_000))
    key = stores.talk(ERASURE_ITEMS_MAX + 20, parts=large)
    stores.erasures.put_tombstone(key, TOMBSTONE)
    counts = clear(stores.erasures, key)
    assert sum(counts) == ERASURE_ITEMS_MAX + 23
    assert stores.warm.read_messages(key, limit=1).messages == ()
    assert counted() in {0, 1}


@pytest.fixture
def counted(request: pytest.FixtureRequest, stores: Stores) -> Callable[[], int]:
    """How many items the table holds; in memory nobody counts them."""
    if isinstance(stores.erasures, ErasuresMemory):
        return lambda: 0
    table, _ = request.getfixturevalue("clients")
    return lambda: int(table.scan(TableName=TABLE, Select="COUNT")["Count"])
