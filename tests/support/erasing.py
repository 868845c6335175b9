"""A region's announcer, eraser and herald for tests: the table's stream made of what the house's table has new."""

from __future__ import annotations

import importlib
from typing import Any, Final

import msgspec
from msgspec import UNSET

from tests.support.house import Frame, House, LambdaContext
from threadkeep.domain.erasure import ErasureJob
from threadkeep.domain.model import ConversationKey
from threadkeep.schema import PARTITION_KEY, SORT_DUE, SORT_GONE, SORT_HEAD, SORT_KEY, SORT_PULSE, SORT_ROOTS
from threadkeep.stores import table_keys
from threadkeep.stores.queue_memory import QueueMemory

SECOND_PASS_MS: Final = 30 * 60_000


def items_of(house: House) -> set[tuple[str, str]]:
    """The keys of all items that the house's table would hold, receipt lines apart."""
    found: set[tuple[str, str]] = set()

    def add(key: ConversationKey, *sort_keys: str) -> None:
        found.update((table_keys.partition(key), sort_key) for sort_key in sort_keys)

    for key in house.warm.gone:
        add(key, SORT_GONE)
    for key in house.warm._heads:
        add(key, SORT_HEAD)
    for key in house.warm.active_at:
        add(key, SORT_PULSE)
    for key in house.warm.due_at:
        add(key, SORT_DUE)
    for key, messages in house.warm.messages.items():
        add(key, *map(table_keys.message, messages))
    for key in house.warm.several:
        add(key, SORT_ROOTS)
    for key, manifests in house.warm.manifests.items():
        add(key, *(f"s#{first}" for first in manifests))
    return found


def record(partition: str, sort_key: str, number: int = 1, *, kind: str = "INSERT") -> dict[str, Any]:
    """A record of the table's stream, as Lambda is given it (without the images, which nothing reads)."""
    return {
        "eventID": f"{number:032x}",
        "eventName": kind,
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": "eu-central-1",
        "dynamodb": {
            "ApproximateCreationDateTime": 1_800_000_000,
            "Keys": {PARTITION_KEY: {"S": partition}, SORT_KEY: {"S": sort_key}},
            "SequenceNumber": f"{number:021d}",
            "SizeBytes": 26,
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        },
        "eventSourceARN": "arn:aws:dynamodb:eu-central-1:000000000000:table/threadkeep-test/stream/2026-11-29",
    }


class Region:
    """The functions of one region that erase, on a house's stores. Delays are looked at, not waited for."""

    def __init__(self, house: House) -> None:
        self.house = house
        self._seen = items_of(house)

    def announce(self) -> Frame:
        """Give the announcer all that is new in the table since it was last given anything."""
        now = items_of(self.house)
        new, self._seen = sorted(now - self._seen), now
        return self.handle("announcer", [record(*item, number) for number, item in enumerate(new, start=1)])

    def handle(self, name: str, records: list[dict[str, Any]]) -> Frame:
        """Call one of the handlers as Lambda does."""
        answer: Frame = importlib.import_module(f"handlers.{name}").handler({"Records": records}, LambdaContext())
        return answer

    def work(self) -> list[int]:
        """Let eraser and herald do the jobs that are there; the delays of those that follow, in seconds."""
        for name, queue in (("eraser", self.house.erase_queue), ("herald", self.house.tell_queue)):
            jobs = queue.take()
            records = [sqs_record(job, number) for number, job in enumerate(jobs)]
            if records:
                assert self.handle(name, records) == {"batchItemFailures": []}
        self._seen &= items_of(self.house)  # what is removed may land again
        return sorted(delay for queue in self._queues for _, delay in queue.jobs)

    def both_passes(self, conversation: str) -> None:
        """From the tombstone in the stream to the end of the second pass."""
        self.announce()
        self.work()
        self.second_pass(conversation)

    def second_pass(self, conversation: str) -> None:
        """Wait for it and let it be done."""
        tombstone = self.house.warm.gone[self.house.key(conversation)]
        self.house.clock.ms = max(self.house.clock.ms, tombstone.second_pass_ms)
        assert self.work() == []

    def late(self) -> None:
        """Whatever has landed since is announced, and taken."""
        self.announce()
        self.work()

    @property
    def _queues(self) -> tuple[QueueMemory, QueueMemory]:
        return self.house.erase_queue, self.house.tell_queue


def sqs_record(job: Any, number: int = 0, *, received: int = 1) -> dict[str, Any]:
    """A record of a queue, as Lambda is given it for that time."""
    body = job if isinstance(job, str) else msgspec.json.encode(job).decode()
    return {
        "messageId": f"message-{number}",
        "receiptHandle": f"receipt-{number}",
        "body": body,
        "eventSource": "aws:sqs",
        "attributes": {"ApproximateReceiveCount": str(received)},
    }


def job(house: House, conversation: str, **fields: Any) -> ErasureJob:
    """A job for one of the house's conversations."""
    key = house.key(conversation)
    return ErasureJob(tenant=key.tenant, conversation=key.conversation, **fields)


def left_of(house: House, conversation: str) -> list[str]:
    """Everything that any store holds of a conversation, but its tombstone, its receipt and its gravestone."""
    key = house.key(conversation)
    stores: dict[str, list[Any]] = {
        "items": [item for item in items_of(house) if conversation in item[0] and item[1] != SORT_GONE],
        "due": [found for found in house.warm.due_at if found == key],
        "objects": [name for bucket in house.cold.buckets.values() for name in bucket.objects if conversation in name],
        "hot": _hot_left(house, key),
    }
    return sorted(f"{store}: {name}" for store, names in stores.items() for name in names)


def _hot_left(house: House, key: ConversationKey) -> list[str]:
    """What the hot tier has: nothing but the gravestone may be left, and an entry for the sweeper to find gone."""
    held = house.hot._conversations.get(key)
    if held is None:
        return []
    named = {
        "streams": held.streams,
        "stopped": held.stopped,
        "owner": held.owner,
        "tail": held.tail,
        "leaf": None if held.register.settled is UNSET else held.register.settled,
        "claims": held.register.claims,
        "leases": held.leases,
        "lagging": held.lagging,
    }
    return [name for name, value in named.items() if value]
