"""A cold conversation that everybody opens at once, with the hot tier in a real Valkey."""

from __future__ import annotations

import dataclasses
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Final

import pytest

from local.state import Address
from tests.support.gates import Gated, Loading
from tests.support.hot import client_of, hot_valkey
from tests.support.house import House, house
from tests.support.tiers import Tale
from threadkeep.domain.model import Caller
from threadkeep.domain.tail import Tail
from threadkeep.stores import valkey_tail
from threadkeep.usecases.newest import Wanted, open_newest

__all__ = ["house"]

READERS: Final = 200
"""Each in a sandbox of its own, as Lambda has them: with its own connection."""
ANN: Final = Caller(tenant="acme", user="ann", scopes=frozenset({"chat"}), expires_at_ms=2**50, connection="c")


def test_of_200_readers_one_reads_the_archive_and_199_wait_for_it(
    house: House, valkey_cluster: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(valkey_tail, "TAIL_LOAD_MS", 120_000)  # Valkey's clock runs on while a busy machine connects
    tale = Tale(house)
    chain = tale.chain(300)
    tale.rest()
    tale.archive(chain)
    cold, loaded, waiting, own = Gated(house.cold), threading.Event(), threading.Semaphore(0), threading.local()
    clients = [client_of(valkey_cluster, is_cluster=True) for _ in range(READERS)]

    def sleep(_seconds: float) -> None:
        if not hasattr(own, "has_slept"):
            own.has_slept = True
            waiting.release()
        assert loaded.wait(timeout=30)

    def read(number: int) -> tuple[list[str], str]:
        hot = Loading(hot_valkey(clients[number]), loaded)
        services = dataclasses.replace(house.services, hot=hot, cold=cold, sleep=sleep)
        wanted = Wanted(leaf=None, limit=20, is_enough=lambda _: False)
        opened = open_newest(services, ANN, tale.conversation, wanted)
        return [stored.message.id for stored in islice(opened.messages, 20)], opened.history.tier

    try:
        with ThreadPoolExecutor(READERS) as pool:
            reading = [pool.submit(read, number) for number in range(READERS)]
            all_wait = all(waiting.acquire(timeout=20) for _ in range(READERS - 1))
            cold.gate.set()
            replies = [future.result(timeout=30) for future in reading]
        tail = hot_valkey(clients[0]).read_tail(tale.key, limit=20)
    finally:
        for client in clients:
            client.close()
    assert all_wait
    assert [messages for messages, _ in replies] == [chain[-20:][::-1]] * READERS
    assert sorted(tier for _, tier in replies) == ["cold", *["hot"] * (READERS - 1)]
    assert cold.reads == 1
    assert isinstance(tail, Tail)
    assert (tail.owner, len(tail.messages)) == ("ann", 20)
