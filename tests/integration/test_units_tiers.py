"""What reading costs where the history is hot or cold: commands, calls, bytes, counted at the stores."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pytest
from valkey import Valkey

from local.state import Address
from tests.integration.test_counts import CountingClient
from tests.support.hot import REGION as HOT_REGION
from tests.support.hot import hot_valkey
from tests.support.house import PHONE, WORKER, Frame, House, house
from tests.support.metered import as_written, fill, meter, of_usual_sizes, table, turns
from tests.support.metering import Meter, ObjectCall, ObjectMeter
from tests.support.moto_table import REGION, TABLE, buckets_of, moto_clients
from threadkeep.config import HotConfig
from threadkeep.domain import times
from threadkeep.domain.archive import Manifest
from threadkeep.domain.json_values import encode
from threadkeep.domain.model import StoredMessage
from threadkeep.ports import DueEntry
from threadkeep.schema import DUE_SORT, SORT_DUE, SORT_ROOTS
from threadkeep.stores.cold_s3 import ColdS3
from threadkeep.stores.due_dynamodb import DueDynamoDB
from threadkeep.stores.hot_keys import HotKeys
from threadkeep.stores.packing import pack
from threadkeep.stores.valkey_client import connect
from threadkeep.stores.warm_items import primary_key
from threadkeep.usecases.archiving import archive
from threadkeep.usecases.planning import plan
from threadkeep.usecases.services import Owners

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

__all__ = ["house", "table"]

ARCHIVED: Final = 5_000
PASSES_MAX: Final = 20
OTHER_KEYS: Final = 100_000


# --- cold -----------------------------------------------------------------------------------------------------


class Cold:
    """A conversation of 5,000 messages that has gone cold, as planner and archiver do it."""

    def __init__(self, house: House, client: DynamoDBClient, bucket: S3Client, said: Iterator[tuple[str, str]]) -> None:
        self.house = house
        self.table: Meter = meter(house, client)
        self.bucket = ObjectMeter(bucket)
        house.replace(cold=ColdS3(buckets_of(bucket), REGION), due=DueDynamoDB(client, TABLE))
        self.conversation = house.conversation()
        self.stored = turns(house, self.conversation, ARCHIVED, said)
        fill(client, "acme", self.stored)
        with self.bucket.counting() as self.archiving:
            self._go_cold(client)
        house.replace(owners=Owners())
        house.lose_hot()

    @property
    def key(self) -> Any:
        """Of the conversation."""
        return self.house.key(self.conversation)

    def manifests(self) -> tuple[Manifest, ...]:
        """Of its segments."""
        return self.house.services.manifests.read(self.key)

    def held(self, call: ObjectCall) -> list[StoredMessage]:
        """The messages of the members that a ranged read gave; a part of a member gives none, and is a fault."""
        (manifest,) = [each for each in self.manifests() if each.object_key == call.object_key]
        end = call.first_byte + call.size_bytes
        inside = [each for each in manifest.members if call.first_byte <= each.offset < end]
        assert inside[0].offset == call.first_byte
        assert inside[-1].offset + inside[-1].size_bytes == end
        first, last = inside[0].first, inside[-1].last
        return [each for each in self.stored if first <= each.message.id <= last]

    def _go_cold(self, client: DynamoDBClient) -> None:
        services = self.house.services
        services.warm.touch(self.key, now_ms=self.house.clock.ms)
        due = primary_key(self.key, SORT_DUE)
        for _ in range(PASSES_MAX):
            due_at = client.get_item(TableName=TABLE, Key=due)["Item"].get(DUE_SORT)
            if due_at is None:
                return
            self.house.clock.ms = max(self.house.clock.ms, times.from_rfc3339(due_at["S"]))
            plan(services, days_back=0)
            for job in self.house.archive_queue.take():
                archive(services, msgspec.convert(job, DueEntry))
        raise AssertionError(f"not cold after {PASSES_MAX} passes")


SAID: Final = {"real": as_written, "usual sizes": of_usual_sizes}


@pytest.fixture
def cold(house: House, table: DynamoDBClient, request: pytest.FixtureRequest) -> Iterator[Cold]:
    said = SAID[getattr(request, "param", "real")]
    with moto_clients() as (_, bucket):
        yield Cold(house, table, bucket, said())


def text_bytes(stored: list[StoredMessage]) -> int:
    """The raw text of messages, in UTF-8."""
    return sum(len(json.loads(encode(each.message))["parts"][0]["text"].encode()) for each in stored)


@pytest.mark.parametrize("cold", SAID, indirect=True)
def test_cold_a_page_anywhere_is_one_metadata_read_and_one_ranged_read_of_less_than_half_the_text(cold: Cold) -> None:
    assert cold.house.services.warm.newest_id(cold.key) is None  # nothing is left in the table
    puts = [call for call in cold.archiving if call.operation == "PutObject"]
    assert 0 < len(puts) <= 0.01 * ARCHIVED
    for place in range(19, ARCHIVED, 83):
        leaf = cold.stored[place].message.id
        with cold.table.counting() as asked, cold.bucket.counting() as given:
            page = cold.house.ok(
                PHONE, "message.list", conversation=cold.conversation, leaf=leaf, cursor=leaf, limit=15
            )
        shown = [message["id"] for message in page["messages"]]
        assert shown == [each.message.id for each in reversed(cold.stored[place + 1 - len(shown) : place + 1])]
        assert len(shown) >= 6  # as many of these as a frame holds
        assert page["tier"] == "cold"
        authorized, manifests = asked  # who may read it, and where it lies
        assert (authorized.operation, authorized.sort_keys) == ("Query", ("gone",))
        assert (manifests.operation, manifests.sort_keys) == ("Query", ("s#",))
        (read,) = given
        assert read.operation == "GetObject"
        assert read.size_bytes <= 0.45 * text_bytes(cold.held(read))


# --- hot ------------------------------------------------------------------------------------------------------


class Hot:
    """A house whose hot tier is a real Valkey, and a conversation whose newest messages are there."""

    def __init__(self, house: House, address: Address) -> None:
        self.house = house
        self.server: Any = Valkey(host=address.host, port=address.port)
        config = HotConfig(host=address.host, port=address.port)
        self.client = CountingClient(lambda: connect(config, region=HOT_REGION))
        house.replace(hot=hot_valkey(self.client))
        self.conversation = house.conversation()
        self.stored = turns(house, self.conversation, 60)
        for each in self.stored:
            house.warm.put_message("acme", each)
        self.read("context.read")  # somebody was first

    def read(self, action: str) -> Frame:
        """The newest 20, by a sandbox that has never heard of the conversation."""
        self.house.replace(owners=Owners())
        bound = {"message.list": "limit", "context.read": "max_messages"}[action]
        return self.house.ok(PHONE, action, conversation=self.conversation, **{bound: 20})

    def commands_within(self) -> int:
        """Commands that the server has run so far, those in scripts included."""
        return sum(each["calls"] for each in self.server.info("commandstats").values())


@pytest.fixture
def hot(house: House, valkey_cluster: Address) -> Iterator[Hot]:
    hot = Hot(house, valkey_cluster)
    yield hot
    hot.client.close()
    hot.server.close()


@pytest.fixture
def crowded(hot: Hot) -> Iterator[Hot]:
    """Among 100,000 other keys."""
    names = [f"{{acme/{number}}}:tail" for number in range(OTHER_KEYS)]
    with hot.server.pipeline(transaction=False) as pipeline:
        for name in names:
            pipeline.set(name, b"x", px=600_000)
        pipeline.execute()
    yield hot
    with hot.server.pipeline(transaction=False) as pipeline:
        for name in names:
            pipeline.unlink(name)
        pipeline.execute()


@pytest.mark.parametrize("action", ["message.list", "context.read"])
def test_the_newest_20_hot_are_one_command_and_no_call_of_the_table(hot: Hot, action: str) -> None:
    hot.house.warm.unavailable = True
    before = hot.client.sent
    page = hot.read(action)
    assert hot.client.sent - before == 1
    assert page["tier"] == "hot"
    ids = sorted(message["id"] for message in page["messages"])
    assert ids == [each.message.id for each in hot.stored[-len(ids) :]]
    assert len(ids) >= 18  # of 20 such messages, as JSON, a frame holds so many


@pytest.mark.parametrize("has_begun", ["here", "before"])
def test_with_the_system_message_that_the_conversation_begins_with_they_are_one_command_too(
    hot: Hot, has_begun: str
) -> None:
    """Whether the hot tier was there when it began, or somebody was first to read it there."""
    hot.conversation = hot.house.conversation()
    first = leaf = hot.house.message(hot.conversation, by=WORKER, role="system", text="Be kind.")
    for _ in range(299):
        leaf = hot.house.message(hot.conversation, leaf)
    if has_begun == "before":
        keys = HotKeys(hot.house.key(hot.conversation))
        for name in (keys.register, keys.tail, keys.first):
            hot.server.delete(name)
    hot.house.ok(PHONE, "context.read", conversation=hot.conversation, max_messages=50, max_tokens=10_000)
    hot.house.warm.unavailable = True
    before = hot.client.sent
    for bounds in ({"max_messages": 20}, {"max_messages": 50, "max_tokens": 10_000}):
        hot.house.replace(owners=Owners())
        page = hot.house.ok(PHONE, "context.read", conversation=hot.conversation, **bounds)
        assert [message["id"] for message in page["messages"]][:: bounds["max_messages"] - 1] == [first, leaf]
        assert page["tier"] == "hot"
    assert hot.client.sent - before == 2


@pytest.mark.parametrize("action", ["message.list", "context.read"])
def test_so_they_are_among_100_000_other_keys(crowded: Hot, action: str) -> None:
    crowded.house.warm.unavailable = True
    before, within = crowded.client.sent, crowded.commands_within()
    assert crowded.read(action)["tier"] == "hot"
    assert crowded.client.sent - before == 1
    assert crowded.commands_within() - within <= 10  # the script's own, and the one that asked


def test_a_cold_context_is_three_small_reads_of_the_table_and_two_ranged_reads(cold: Cold) -> None:
    """Whose it is, where it lies, whether it begins in the table; the newest messages, and the beginning."""
    leaf = cold.stored[-1].message.id
    with cold.table.counting() as asked, cold.bucket.counting() as given:
        page = cold.house.ok(PHONE, "context.read", conversation=cold.conversation, leaf=leaf, max_messages=10)
    assert [message["id"] for message in page["messages"]] == [each.message.id for each in cold.stored[-10:]]
    assert [(call.operation, call.sort_keys) for call in asked] == [
        ("Query", ("gone",)),
        ("Query", ("s#",)),
        ("Query", (SORT_ROOTS,)),
    ]
    assert sum(call.units for call in asked) <= 3
    assert [call.operation for call in given] == ["GetObject"] * 2
    assert [cold.held(call)[0].message.id for call in given][1] == cold.stored[0].message.id


@pytest.mark.parametrize("said", SAID)
def test_a_settled_tail_takes_little_more_than_its_messages_packed(hot: Hot, said: str) -> None:
    hot.conversation = hot.house.conversation()
    stored = turns(hot.house, hot.conversation, 60, SAID[said]())
    for each in stored:
        hot.house.warm.put_message("acme", each)
    hot.read("context.read")
    name = HotKeys(hot.house.key(hot.conversation)).tail
    kept = hot.server.llen(name)
    packed = sum(len(pack(each.message)) for each in stored[-kept:])
    assert kept >= 20
    assert hot.server.memory_usage(name, samples=0) <= 1.2 * packed + 200
