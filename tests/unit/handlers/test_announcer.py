"""The announcer: what a stream's records ask for is handed on, and those that failed come again."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.support.erasing import Region, job, record, sqs_record
from tests.support.house import PHONE, House
from threadkeep.domain import ids
from threadkeep.domain.errors import WarmUnavailable
from threadkeep.schema import SORT_EXPORT, SORT_GONE, SORT_HEAD, SORT_PULSE
from threadkeep.stores import table_keys
from threadkeep.stores.queue_memory import QueueMemory

DONE: dict[str, Any] = {"batchItemFailures": []}


class OneFails(QueueMemory):
    """A queue that does not take a job of one conversation."""

    def __init__(self, conversation: str) -> None:
        super().__init__()
        self.conversation = conversation

    def send(self, job: msgspec.Struct, *, delay_s: int = 0) -> None:
        if getattr(job, "conversation", None) == self.conversation:
            raise WarmUnavailable("told so")
        super().send(job, delay_s=delay_s)


def partition(house: House, conversation: str, tenant: str = "acme") -> str:
    return table_keys.partition(house.key(conversation, tenant))


def deleted(house: House) -> str:
    conversation = house.conversation()
    house.ok(PHONE, "conversation.delete", conversation=conversation)
    return conversation


def taken(queue: QueueMemory) -> list[tuple[str, str, str]]:
    return [(found["tenant"], found["conversation"], found["stage"]) for found in queue.take()]


def test_a_tombstone_is_handed_on_to_both_queues(house: House) -> None:
    conversation = house.new_id()
    records = [record(partition(house, conversation, "a#b/\u754c"), SORT_GONE)]
    assert Region(house).handle("announcer", records) == DONE
    expected = [("a#b/\u754c", conversation, "first")]
    assert (taken(house.erase_queue), taken(house.tell_queue)) == (expected, expected)


def test_what_lands_beside_a_tombstone_is_handed_on_once_a_batch(house: House) -> None:
    gone, living = deleted(house), house.conversation()
    landed = [
        (living, "head"),
        (gone, "head"),
        (living, table_keys.message(house.new_id())),
        (gone, table_keys.message(house.new_id())),
        (gone, f"s#{house.new_id()}"),
        (gone, "pulse"),
    ]
    records = [record(partition(house, name), sort, number) for number, (name, sort) in enumerate(landed)]
    assert Region(house).handle("announcer", records) == DONE
    assert taken(house.erase_queue) == taken(house.tell_queue) == [("acme", gone, "late")]


def test_the_conversation_of_another_tenant_with_the_same_id_is_not_taken_for_it(house: House) -> None:
    gone = deleted(house)
    assert Region(house).handle("announcer", [record(partition(house, gone, "umbrella"), SORT_HEAD)]) == DONE
    assert taken(house.erase_queue) == []


@pytest.mark.parametrize(
    ("sort_key", "kind"),
    [
        (f"{SORT_GONE}#eu-central-1#table", "INSERT"),
        (SORT_PULSE, "MODIFY"),
        (SORT_HEAD, "REMOVE"),
        (SORT_GONE, "MODIFY"),
        (SORT_GONE, "REMOVE"),
    ],
)
def test_of_a_receipt_and_of_what_changed_or_went_there_is_nothing_to_do(
    house: House, sort_key: str, kind: str
) -> None:
    """The mapping's filter leaves most of these out; where it does not, they set nothing off."""
    gone = deleted(house)
    assert Region(house).handle("announcer", [record(partition(house, gone), sort_key, kind=kind)]) == DONE
    assert taken(house.erase_queue) == taken(house.tell_queue) == []


def test_an_export_is_no_conversation(house: House) -> None:
    export = f"acme#!export#{ids.mint(house.clock.ms)}"
    assert Region(house).handle("announcer", [record(export, SORT_EXPORT)]) == DONE
    assert Region(house).handle("announcer", [record("acme#!rates", "x")]) == DONE
    assert taken(house.erase_queue) == []


def test_the_first_that_fails_is_named_and_those_before_it_are_done(house: House) -> None:
    names = [house.new_id() for _ in range(4)]
    house.replace(tell_queue=OneFails(names[2]))
    records = [record(partition(house, name), SORT_GONE, number) for number, name in enumerate(names, start=11)]
    answer = Region(house).handle("announcer", records)
    assert answer == {"batchItemFailures": [{"itemIdentifier": f"{13:021d}"}]}
    assert [name for _, name, _ in taken(house.erase_queue)] == names[:3]


def test_where_it_is_not_known_what_is_deleted_the_whole_batch_comes_again(house: House) -> None:
    conversation = house.conversation()
    house.warm.unavailable = True
    with pytest.raises(WarmUnavailable):
        Region(house).handle("announcer", [record(partition(house, conversation), SORT_HEAD)])


# --- eraser and herald ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["eraser", "herald"])
def test_one_job_that_fails_is_named_and_the_others_are_done(house: House, name: str) -> None:
    conversation = deleted(house)
    records = [
        sqs_record("not json", 0),
        sqs_record(job(house, conversation), 1),
        sqs_record('{"tenant":"acme","conversation":"../.."}', 2),
        sqs_record('{"tenant":"","conversation":"' + conversation + '"}', 3),
    ]
    answer = Region(house).handle(name, records)
    assert [failed["itemIdentifier"] for failed in answer["batchItemFailures"]] == [
        "message-0",
        "message-2",
        "message-3",
    ]
    queue = house.erase_queue if name == "eraser" else house.tell_queue
    assert taken(queue) == [("acme", conversation, "second")]
