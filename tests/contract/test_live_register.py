"""What a region says of its live streams: one suite for every implementation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.support.conversations import NOW_MS, conversation
from tests.support.moto_table import TABLE, empty_table, moto_clients
from threadkeep.domain import ids
from threadkeep.domain.bounds import LIVE_ELSEWHERE_MS
from threadkeep.domain.model import ConversationKey, LiveStream
from threadkeep.ports import LiveRegister, WarmStore
from threadkeep.stores.bodies_memory import BodiesMemory
from threadkeep.stores.erasures_dynamodb import ErasuresDynamoDB
from threadkeep.stores.erasures_memory import ErasuresMemory
from threadkeep.stores.live_dynamodb import LiveDynamoDB
from threadkeep.stores.live_memory import LiveMemory
from threadkeep.stores.warm_dynamodb import WarmDynamoDB
from threadkeep.stores.warm_memory import WarmMemory

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

UNTIL_MS = NOW_MS + LIVE_ELSEWHERE_MS
REGIONS = ("eu-central-1", "us-east-1", "us-east-2")


class Registers(msgspec.Struct, frozen=True):
    """Those of three regions over one table, as if it were replicated at once."""

    of: dict[str, LiveRegister]
    warm: WarmStore
    erasures: ErasuresMemory | ErasuresDynamoDB


@pytest.fixture(scope="module")
def clients() -> Iterator[tuple[DynamoDBClient, S3Client]]:
    with moto_clients() as made:
        yield made


@pytest.fixture(params=["memory", "dynamodb"])
def registers(request: pytest.FixtureRequest) -> Registers:
    if request.param == "memory":
        memory = WarmMemory()
        return Registers({name: LiveMemory(memory, name) for name in REGIONS}, memory, ErasuresMemory(memory))
    table, _ = request.getfixturevalue("clients")
    empty_table(table)
    warm = WarmDynamoDB(table, TABLE, BodiesMemory())
    return Registers({name: LiveDynamoDB(table, TABLE, name) for name in REGIONS}, warm, ErasuresDynamoDB(table, TABLE))


def new_key(tenant: str = "a/b#c") -> ConversationKey:
    return ConversationKey(tenant, ids.mint(NOW_MS))


def live_in(region: str, number: int = 0, **fields: object) -> LiveStream:
    said = {
        "stream": ids.mint(NOW_MS + number),
        "epoch": NOW_MS + number,
        "offset": 0,
        "parent": ids.mint(NOW_MS - 1),
        "role": "assistant",
        "region": region,
        "endpoint": f"wss://{region}.example.com/prod",
    }
    return msgspec.convert(said | fields, LiveStream)


EU, US, US2 = REGIONS


def test_what_one_region_says_the_others_read_and_itself_it_does_not(registers: Registers) -> None:
    key = new_key()
    told = live_in(EU)
    registers.of[EU].put(key, told, until_ms=UNTIL_MS)
    assert registers.of[EU].read_others(key, now_ms=NOW_MS) == ()
    for other in (US, US2):
        assert registers.of[other].read_others(key, now_ms=NOW_MS) == (told,)
    assert registers.of[US].read_others(new_key(), now_ms=NOW_MS) == ()


def test_a_root_of_any_role_comes_back_as_it_was(registers: Registers) -> None:
    key = new_key()
    told = live_in(EU, parent=None, role="tool")
    registers.of[EU].put(key, told, until_ms=UNTIL_MS)
    assert registers.of[US].read_others(key, now_ms=NOW_MS) == (told,)


def test_several_come_in_order_of_their_ids_from_whichever_region(registers: Registers) -> None:
    key = new_key()
    told = [live_in(region, number) for number, region in enumerate((EU, US2, EU, US2))]
    for each in reversed(told):
        registers.of[each.region].put(key, each, until_ms=UNTIL_MS)
    assert registers.of[US].read_others(key, now_ms=NOW_MS) == tuple(told)
    assert registers.of[EU].read_others(key, now_ms=NOW_MS) == (told[1], told[3])


def test_said_again_the_later_word_stands(registers: Registers) -> None:
    key = new_key()
    told = live_in(EU)
    later = msgspec.structs.replace(told, epoch=told.epoch + 1)
    for each in (told, later, later):
        registers.of[EU].put(key, each, until_ms=UNTIL_MS)
    assert registers.of[US].read_others(key, now_ms=NOW_MS) == (later,)


def test_one_that_is_removed_is_gone_and_the_others_stay(registers: Registers) -> None:
    key = new_key()
    one, other = live_in(EU), live_in(EU, 1)
    for each in (one, other):
        registers.of[EU].put(key, each, until_ms=UNTIL_MS)
    for _ in range(2):
        registers.of[EU].remove(key, one.stream)
        assert registers.of[US].read_others(key, now_ms=NOW_MS) == (other,)
    registers.of[EU].remove(key, other.stream)
    assert registers.of[US].read_others(key, now_ms=NOW_MS) == ()
    registers.of[EU].put(key, one, until_ms=UNTIL_MS)
    assert registers.of[US].read_others(key, now_ms=NOW_MS) == (one,)


def test_a_region_removes_nothing_of_anothers(registers: Registers) -> None:
    key = new_key()
    told = live_in(EU)
    registers.of[EU].put(key, told, until_ms=UNTIL_MS)
    registers.of[US].put(key, msgspec.structs.replace(told, region=US), until_ms=UNTIL_MS)
    registers.of[US].remove(key, told.stream)
    assert registers.of[US2].read_others(key, now_ms=NOW_MS) == (told,)


def test_to_remove_what_was_never_said_leaves_nothing_behind(registers: Registers) -> None:
    key = new_key()
    registers.of[EU].remove(key, ids.mint(NOW_MS))
    assert registers.of[US].read_others(key, now_ms=NOW_MS) == ()
    assert registers.erasures.clear(key) == 0


def test_each_is_believed_until_its_own_time(registers: Registers) -> None:
    key = new_key()
    one, other = live_in(EU), live_in(EU, 1)
    registers.of[EU].put(key, one, until_ms=UNTIL_MS)
    registers.of[EU].put(key, other, until_ms=UNTIL_MS + 5)
    assert registers.of[US].read_others(key, now_ms=UNTIL_MS - 1) == (one, other)
    assert registers.of[US].read_others(key, now_ms=UNTIL_MS) == (other,)
    assert registers.of[US].read_others(key, now_ms=UNTIL_MS + 5) == ()


def test_the_tenant_is_part_of_it(registers: Registers) -> None:
    conversation_id = ids.mint(NOW_MS)
    keys = [ConversationKey(tenant, conversation_id) for tenant in ("a", "a#b", "a%23b")]
    told = [live_in(EU, number) for number in range(3)]
    for key, each in zip(keys, told, strict=True):
        registers.of[EU].put(key, each, until_ms=UNTIL_MS)
    assert [registers.of[US].read_others(key, now_ms=NOW_MS) for key in keys] == [(each,) for each in told]


def test_it_goes_with_the_conversation(registers: Registers) -> None:
    new = conversation(now_ms=NOW_MS)
    key = ConversationKey("acme", new.id)
    registers.warm.create_conversation("acme", new)
    for region in (EU, US):
        registers.of[region].put(key, live_in(region), until_ms=UNTIL_MS)
    assert registers.erasures.clear(key) == 5
    assert registers.of[US2].read_others(key, now_ms=NOW_MS) == ()
