"""What an answer costs in Valkey: counted, not timed. Constant work, whatever the length and the history."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
from valkey import Valkey

from local.state import Address
from tests.support.hot import REGION, hot_valkey
from tests.support.house import PHONE, UNLIMITED, WORKER, Frame, House, house
from threadkeep.config import HotConfig
from threadkeep.stores.hot_keys import HotKeys
from threadkeep.stores.quotas_valkey import QuotasValkey
from threadkeep.stores.valkey_client import ValkeyClient, connect

__all__ = ["house"]

BATCHES: Final = 100
TEXT: Final = "sixteen tokens of a usual answer, which is rather wordy. "
"""What a window of a quarter of a second gathers at 50 tokens a second."""


class CountingClient(ValkeyClient):
    """Counts what it sends: every command and every script is one round trip (tests/integration/test_hot_valkey.py)."""

    sent = 0

    def command(self, *words: str | bytes | int) -> Any:
        self.sent += 1
        return super().command(*words)


class Counted:
    """A house whose hot tier is a real Valkey, and what was asked of it."""

    def __init__(self, house: House, address: Address) -> None:
        self.house = house
        self.server: Any = Valkey(host=address.host, port=address.port)
        self.client = CountingClient(lambda: connect(HotConfig(host=address.host, port=address.port), region=REGION))
        house.replace(hot=hot_valkey(self.client), quotas=QuotasValkey(self.client, UNLIMITED))
        self.conversation = house.conversation()
        # Connects, and gives the server its scripts: each is sent once, whole, where it is not known.
        place = self.write(batches=1)
        house.ok(PHONE, "stream.resume", **place)
        self.settle(place)

    def write(self, *, batches: int) -> Frame:
        """A question and an answer that is not yet closed; its place at the end."""
        tip = self.house.say(PHONE, "message.list", conversation=self.conversation, limit=1)["messages"]
        question = self.house.message(self.conversation, tip[0]["id"] if tip else None)
        place = self.house.stream(self.conversation, question)
        for offset in range(batches):
            ops = [["text", 0, TEXT]]
            place["offset"] = self.house.ok(WORKER, "stream.append", **place | {"offset": offset}, ops=ops)["offset"]
        return place

    def settle(self, place: Frame) -> None:
        """Close it."""
        self.house.ok(WORKER, "stream.close", **place, status="complete")

    def count(self, *, batches: int) -> int:
        """Commands for one whole answer, from its opening to its end, the question apart."""
        place = self.write(batches=0)
        before = self.client.sent - 4  # `write` has had it metered, leased, filed and opened
        for offset in range(batches):
            self.house.ok(WORKER, "stream.append", **place | {"offset": offset}, ops=[["text", 0, TEXT]])
        self.settle(place | {"offset": batches})
        return self.client.sent - before


@pytest.fixture
def counted(house: House, valkey_cluster: Address) -> Iterator[Counted]:
    counted = Counted(house, valkey_cluster)
    yield counted
    counted.client.close()
    counted.server.close()


def test_an_append_is_one_round_trip_and_an_answer_seven_more(counted: Counted) -> None:
    # The rate of its tenant, the lease in its owner's name, the index, the opening; the seal, the settling, and the
    # lease given back. Rates, leases, index and stream each lie in slots of their own.
    place = counted.write(batches=1)
    before = counted.client.sent
    counted.house.ok(WORKER, "stream.append", **place, ops=[["text", 0, TEXT]])
    assert counted.client.sent - before == 1
    counted.settle(place | {"offset": 2})
    for batches in (1, 10, BATCHES):
        assert counted.count(batches=batches) == batches + 7


def test_the_count_does_not_grow_with_the_conversation(counted: Counted) -> None:
    first = counted.count(batches=10)
    for _ in range(20):
        counted.settle(counted.write(batches=1))
    assert counted.count(batches=10) == first


@pytest.mark.parametrize("offset", [0, BATCHES // 2, BATCHES - 1])
def test_resume_is_one_command_a_page_and_little_more_than_the_missing_text(counted: Counted, offset: int) -> None:
    place = counted.write(batches=BATCHES)
    before = counted.client.sent
    page = counted.house.ok(PHONE, "stream.resume", **place | {"offset": offset})
    assert counted.client.sent - before == 1
    missing = TEXT * (BATCHES - offset)
    assert "".join(op[2] for op in page["ops"]) == missing
    sent = len(json.dumps(page, ensure_ascii=False, separators=(",", ":")).encode())
    assert sent <= 1.05 * len(json.dumps(missing, ensure_ascii=False).encode()) + 200
    counted.settle(place)


def test_a_live_stream_takes_at_most_twice_its_text(counted: Counted) -> None:
    place = counted.write(batches=BATCHES)
    keys = HotKeys(counted.house.key(counted.conversation))
    taken = sum(counted.server.memory_usage(name) for name in (keys.state(place["stream"]), keys.log(place["stream"])))
    assert taken <= 2 * len(TEXT) * BATCHES
    counted.settle(place)
