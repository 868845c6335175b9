"""What a second region costs at the table, in calls and units, counted by dynalite; and one region alone, nothing.

Beside these a replicated write costs its units once more in every other region, whatever writes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.integration.test_units import conversation_of, puts_of_messages, take_turn
from tests.support.house import PHONE, REGION, House, house
from tests.support.metered import metered, table
from tests.support.metering import Call, Meter
from tests.support.moto_table import TABLE
from threadkeep.stores.bodies_memory import BodiesMemory
from threadkeep.stores.claims_dynamodb import ClaimsDynamoDB
from threadkeep.stores.live_dynamodb import LiveDynamoDB
from threadkeep.stores.other_tables_memory import OtherTablesMemory
from threadkeep.stores.warm_dynamodb import WarmDynamoDB
from threadkeep.stores.warm_memory import WarmMemory
from threadkeep.usecases.services import OtherRegions

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

__all__ = ["house", "metered", "table"]


def add_a_region(house: House, table: DynamoDBClient) -> None:
    """The house's region is one of two from here on."""
    house.replace(
        warm=WarmDynamoDB(table, TABLE, BodiesMemory(), writer=REGION),
        others=OtherRegions(
            endpoint="wss://abcdefghij.execute-api.eu-central-1.amazonaws.com/prod",
            names=("us-east-1",),
            live=LiveDynamoDB(table, TABLE, REGION),
            tables=OtherTablesMemory({"us-east-1": WarmMemory()}),
            claims=ClaimsDynamoDB(table, TABLE, REGION),
        ),
    )


def of_regions(calls: list[Call]) -> list[Call]:
    return [call for call in calls if any(key.startswith("live#") for key in call.sort_keys)]


def others(calls: list[Call]) -> list[tuple[str, tuple[str, ...]]]:
    """The calls beside those, with the beginnings of what they are about."""
    return [
        (call.operation, tuple(key[:2] for key in call.sort_keys)) for call in calls if call not in of_regions(calls)
    ]


def test_a_turn_beside_another_region_takes_one_small_read_and_two_small_writes_more(
    house: House, table: DynamoDBClient, metered: Meter
) -> None:
    conversation, leaf = conversation_of(house, table, 4)
    answer = take_turn(house, conversation, leaf, 0)  # the register is warm then
    with metered.counting() as alone:
        answer = take_turn(house, conversation, answer, 0)
    assert of_regions(alone) == []
    add_a_region(house, table)
    # dynalite charges nothing for a query that finds nothing; after one turn the region's own item is there.
    answer = take_turn(house, conversation, answer, 0)
    with metered.counting() as beside:
        take_turn(house, conversation, answer, 0)
    assert [(call.operation, call.units, call.is_refused) for call in of_regions(beside)] == [
        ("Query", 0.5, False),
        ("UpdateItem", 1, False),
        ("UpdateItem", 1, False),
    ]
    # Named writers take no unit more of a turn of usual size.
    assert [call.units for call in puts_of_messages(beside)] == [call.units for call in puts_of_messages(alone)]
    assert len(beside) == len(alone) + 3


def test_the_newest_page_takes_no_call_more(house: House, table: DynamoDBClient, metered: Meter) -> None:
    conversation, _ = conversation_of(house, table, 30)
    house.lose_hot()
    with metered.counting() as alone:
        house.ok(PHONE, "message.list", conversation=conversation)
    add_a_region(house, table)
    house.lose_hot()
    with metered.counting() as beside:
        house.ok(PHONE, "message.list", conversation=conversation)
    assert others(beside) == others(alone)
    assert of_regions(beside) == []


def test_to_subscribe_takes_one_small_read_more(house: House, table: DynamoDBClient, metered: Meter) -> None:
    conversation, leaf = conversation_of(house, table, 4)
    with metered.counting() as alone:
        house.ok(PHONE, "conversation.subscribe", conversation=conversation)
    add_a_region(house, table)
    take_turn(house, conversation, leaf, 0)
    with metered.counting() as beside:
        house.ok(PHONE, "conversation.subscribe", conversation=conversation)
    assert others(beside) == others(alone)
    assert [(call.operation, call.units) for call in of_regions(beside)] == [("Query", 0.5)]


def test_to_create_under_an_id_of_ones_own_takes_a_claim_and_the_look_for_others(
    house: House, table: DynamoDBClient, metered: Meter
) -> None:
    """Here a read whether it is known and the claim; in each other region the head, its tombstone, and the claim."""
    with metered.counting() as alone:
        house.conversation()
    add_a_region(house, table)
    with metered.counting() as beside:
        house.conversation()
    assert others(beside)[:2] == [("Query", ("go",)), ("PutItem", ("cl",))]
    assert others(beside)[2:] == others(alone)
    assert beside[1].units == 1
    asked = house.services.others
    assert asked is not None
    assert isinstance(asked.tables, OtherTablesMemory)
    assert len(asked.tables.asked) == 2, "once for the head, once for the claim"
    with metered.counting() as minted:
        house.ok(PHONE, "conversation.create")
    assert others(minted) == others(alone)
    assert len(asked.tables.asked) == 2
