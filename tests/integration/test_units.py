"""What conversations cost at the table: calls and units, counted where an emulator counts them right.

dynalite meters reads by size and writes to the table; ministack meters writes to the indexes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Final

import pytest

from tests.support.house import PHONE, WORKER, Frame, House, house
from tests.support.metered import (
    REAL_TURNS,
    as_written,
    fill,
    meter,
    metered,
    of_usual_sizes,
    table,
    table_client,
    turns,
)
from tests.support.metering import Call, Meter
from threadkeep.domain.bounds import PULSE_EVERY_MS
from threadkeep.schema import SORT_ROOTS

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

__all__ = ["house", "metered", "table"]

TOKENS: Final = 1_000
LIMIT: Final = {"message.list": "limit", "context.read": "max_messages"}
READ_OPERATIONS: Final = {"BatchGetItem", "GetItem", "Query"}


def conversation_of(
    house: House, table: DynamoDBClient, count: int, said: Iterator[tuple[str, str]] | None = None
) -> tuple[str, str | None]:
    """A conversation with so many messages, of usual sizes unless told; its id and its leaf."""
    conversation = house.conversation()
    made = turns(house, conversation, count, said)
    fill(table, "acme", made)
    return conversation, made[-1].message.id if made else None


def take_turn(house: House, conversation: str, leaf: str | None, number: int) -> str:
    """A real question and its answer of about a thousand tokens; the answer's id."""
    asked, answer = REAL_TURNS[number]
    question = house.message(conversation, leaf, text=asked)
    place = house.stream(conversation, question, model="gpt-4o-2024-05-13")
    for start in range(0, len(answer), 100):
        ops = [["text", 0, answer[start : start + 100]]]
        place["offset"] = house.ok(WORKER, "stream.append", **place, ops=ops)["offset"]
    usage = {"input_tokens": 3_000, "output_tokens": TOKENS}
    closed = house.ok(WORKER, "stream.close", **place, status="complete", usage=usage)
    return str(closed["message"]["id"])


def puts_of_messages(calls: list[Call]) -> list[Call]:
    return [call for call in calls if call.operation == "PutItem" and call.sort_keys[0].startswith("m#")]


# --- writing --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(len(REAL_TURNS)))
def test_a_turn_is_two_puts_of_one_unit_and_of_two_and_no_transaction(
    house: House, table: DynamoDBClient, metered: Meter, number: int
) -> None:
    conversation, leaf = conversation_of(house, table, 4)
    with metered.counting() as calls:
        take_turn(house, conversation, leaf, number)
    question, answer = puts_of_messages(calls)
    assert question.units == 1
    assert answer.units <= 2
    # Beside them the activity is noted, and all else reads.
    assert {call.operation for call in calls} <= {"PutItem", "UpdateItem", *READ_OPERATIONS}
    noted = [call for call in calls if call.operation == "UpdateItem"]
    assert {call.sort_keys for call in noted} == {("pulse",)}


def test_the_turn_after_5_000_messages_costs_what_the_one_after_5_does(
    house: House, table: DynamoDBClient, metered: Meter
) -> None:
    costs = []
    for count in (4, 4_998):
        conversation, leaf = conversation_of(house, table, count)
        answer = take_turn(house, conversation, leaf, 0)  # the register is warm then
        house.clock.ms += 2 * PULSE_EVERY_MS
        with metered.counting() as calls:
            take_turn(house, conversation, answer, 1)
        costs.append([(call.operation, call.units, call.is_refused) for call in calls])
    assert costs[0] == costs[1]


def test_the_first_turn_after_the_cache_was_lost_costs_no_more_after_5_000_messages(
    house: House, table: DynamoDBClient, metered: Meter
) -> None:
    costs = []
    for count in (4, 4_998):
        conversation, leaf = conversation_of(house, table, count)
        house.lose_hot()
        with metered.counting() as calls:
            take_turn(house, conversation, leaf, 1)
        costs.append([(call.operation, call.units, call.is_refused) for call in calls])
    assert costs[0] == costs[1]


@pytest.fixture(scope="module")
def indexed_table(ministack: str) -> Iterator[DynamoDBClient]:
    client = table_client(ministack)
    yield client
    client.close()


def test_the_activity_is_written_once_a_minute_and_its_indexes_cost_two_units(
    house: House, indexed_table: DynamoDBClient
) -> None:
    metered = meter(house, indexed_table)
    conversation = house.conversation()
    house.clock.ms += 2 * PULSE_EVERY_MS
    with metered.counting() as calls:
        leaf: str | None = None
        for number in range(6):
            leaf = take_turn(house, conversation, leaf, number)
            house.clock.ms += PULSE_EVERY_MS // 6
    written = [call for call in calls if call.operation == "UpdateItem"]
    assert [call.sort_keys for call in written] == [("pulse",)]
    assert not any(call.is_refused for call in calls)  # a refused condition costs as much as the write
    # The entry in the list of the owner's conversations moves: one is removed and one is written. The entry in the
    # archive's index stays.
    assert [(call.units, call.index_units) for call in written] == [(3, 2)]
    assert [call.index_units for call in puts_of_messages(calls)] == [0] * 12


# --- reading, warm --------------------------------------------------------------------------------------------


def check_newest_20(calls: list[Call], action: str, *, beside: tuple[str, ...] = ("gone", "s#")) -> None:
    """One query of messages, beside two small ones: whose the conversation is, and whether some of it is cold.

    Of a context a third: what the conversation begins with.
    """
    (read,) = [call for call in calls if call.sort_keys == ("m#",)]
    first = [call for call in calls if call.sort_keys == (SORT_ROOTS,)]
    assert [(call.operation, call.units, call.items) for call in first] == (
        [("Query", 1, 1)] if action == "context.read" else []
    )
    assert read.operation == "Query"
    assert read.items >= 20
    assert read.units <= 1.5
    others = [call for call in calls if call not in (read, *first)]
    assert sorted(call.sort_keys for call in others) == [(sort_key,) for sort_key in beside]
    assert all(call.units <= 1 for call in others)


SAID: Final[dict[str, tuple[Callable[[], Iterator[tuple[str, str]]], int]]] = {
    "usual sizes": (of_usual_sizes, 18),
    "real, short ones": (partial(as_written, 308), 20),
    "real, of the mean length": (partial(as_written, 200), 12),
    "real, of the mean length, elsewhere": (partial(as_written, 20), 12),
}
"""What a conversation says, and how many of its newest 20 a frame holds at least, as JSON.

Those of the real ones have 6, 23 and 23 KB of text. Twenty messages of AlpacaEval and MT-Bench have 23 KB in the mean.
"""


@pytest.mark.parametrize("said", SAID)
@pytest.mark.parametrize("action", ["message.list", "context.read"])
def test_the_newest_20_of_500_are_one_query_of_at_most_one_and_a_half_units(
    house: House, table: DynamoDBClient, metered: Meter, action: str, said: str
) -> None:
    begin, shown_min = SAID[said]
    conversation, leaf = conversation_of(house, table, 500, begin())
    with metered.counting() as calls:
        page = house.ok(PHONE, action, conversation=conversation, leaf=leaf, **{LIMIT[action]: 20})
    assert len(page["messages"]) >= shown_min
    check_newest_20(calls, action)


@pytest.mark.parametrize("action", ["message.list", "context.read"])
def test_so_they_are_where_the_cache_knows_the_leaf_and_nothing_else(
    house: House, table: DynamoDBClient, metered: Meter, action: str
) -> None:
    conversation, leaf = conversation_of(house, table, 500)
    house.ok(PHONE, action, conversation=conversation)
    house.hot._conversations[house.key(conversation)].tail.clear()
    with metered.counting() as calls:
        page = house.ok(PHONE, action, conversation=conversation, **{LIMIT[action]: 20})
    assert len(page["messages"]) >= 18
    # The register knows how it begins, and that it ends with a message that is too young for an archive.
    check_newest_20(calls, "message.list", beside=("gone",))
    assert leaf in {message["id"] for message in page["messages"]}


def test_the_newest_10_of_11_and_of_10_000_take_the_same_calls(
    house: House, table: DynamoDBClient, metered: Meter
) -> None:
    conversations = [conversation_of(house, table, count) for count in (11, 10_000)]
    for action, tells_leaf in product(LIMIT, (True, False)):
        taken = []
        for conversation, leaf in conversations:
            house.lose_hot()
            fields: Frame = {LIMIT[action]: 10} | ({"leaf": leaf} if tells_leaf else {})
            with metered.counting() as calls:
                page = house.ok(PHONE, action, conversation=conversation, **fields)
            assert len(page["messages"]) == 10
            taken.append([(call.operation, call.sort_keys) for call in calls])
        assert taken[0] == taken[1]
        assert len(taken[0]) <= (3 if tells_leaf else 4) + (action == "context.read")
