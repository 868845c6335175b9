from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from threadkeep.responder.answers import Cut, Ended, Event, TextPiece
from threadkeep.responder.pump import Pump


class Stream:
    """An answer that says so many pieces and then waits to be let go, ends or fails."""

    def __init__(self, pieces: int, *, waits: bool = False, fault: Exception | None = None) -> None:
        self.given = 0
        self.cancelled = threading.Event()
        self._pieces = pieces
        self._waits = waits
        self._fault = fault

    def __iter__(self) -> Iterator[Event]:
        for _ in range(self._pieces):
            self.given += 1
            yield TextPiece(str(self.given))
        if self._waits:
            self.cancelled.wait(10)
            return
        if self._fault is not None:
            raise self._fault
        yield Ended("stop")

    def cancel(self) -> None:
        self.cancelled.set()


def reading() -> bool:
    return any(thread.name == "threadkeep model" for thread in threading.enumerate())


def test_events_come_in_order_and_after_the_end_it_is_cut() -> None:
    pump = Pump(Stream(3))
    assert [pump.take(5.0) for _ in range(5)] == [TextPiece("1"), TextPiece("2"), TextPiece("3"), Ended("stop"), Cut()]
    pump.stop()


def test_it_waits_no_longer_than_it_is_told() -> None:
    pump = Pump(Stream(0, waits=True))
    start_s = time.monotonic()
    assert pump.take(0.05) is None
    assert 0.04 < time.monotonic() - start_s < 2.0
    assert pump.take(0.0) is None
    pump.stop()
    assert not reading()


def test_what_the_adapter_raises_is_raised_here() -> None:
    pump = Pump(Stream(1, fault=ZeroDivisionError()))
    assert pump.take(5.0) == TextPiece("1")
    with pytest.raises(ZeroDivisionError):
        pump.take(5.0)
    pump.stop()


def test_a_model_faster_than_its_producer_waits_and_is_let_go_when_it_is_stopped() -> None:
    stream = Stream(1_000_000)
    pump = Pump(stream)
    deadline_s = time.monotonic() + 5
    while stream.given < 1_000 and time.monotonic() < deadline_s:
        time.sleep(0.001)
    time.sleep(0.05)
    assert stream.given <= 1_001
    assert pump.take(0.0) == TextPiece("1")
    pump.stop()
    assert stream.cancelled.is_set()
    assert not reading()
