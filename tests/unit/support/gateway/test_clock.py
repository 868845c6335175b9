"""Time that stands still, the bucket that it fills, and the gateway in a thread of its own."""

from __future__ import annotations

import time

from websockets.sync.client import connect

from tests.support.gateway import FaultGateway, VirtualClock
from tests.support.gateway.throttle import TokenBucket
from tests.unit.support.gateway.functions import ROUTES, Lambdas, message


def test_it_stands_until_it_is_advanced() -> None:
    clock = VirtualClock(start_s=100.0)
    assert clock.now() == 100.0
    clock.advance(1.5)
    assert (clock.now(), clock.now_ms()) == (101.5, 101_500)


def test_a_flowing_one_goes_on_by_itself_and_jumps_too() -> None:
    clock = VirtualClock(start_s=100.0, flowing=True)
    clock.advance(50.0)
    seen = clock.now()
    assert seen >= 150.0
    time.sleep(0.01)
    assert seen + 0.01 <= clock.now() < 160.0


def test_timers_fire_in_order_each_at_its_own_time() -> None:
    clock = VirtualClock(start_s=0.0)
    fired: list[tuple[str, float]] = []

    def note(name: str) -> None:
        fired.append((name, clock.now()))

    def begin_another() -> None:
        clock.call_at(2.0, lambda: note("begun by another"))

    clock.call_at(3.0, lambda: note("late"))
    clock.call_at(1.0, lambda: note("early"))
    clock.call_at(1.0, begin_another)
    clock.call_at(1.5, lambda: note("never")).cancel()
    clock.call_at(3.1, lambda: note("not yet"))
    clock.advance(3.0)
    assert fired == [("early", 1.0), ("begun by another", 2.0), ("late", 3.0)]


def test_a_bucket_fills_at_its_rate_and_not_beyond() -> None:
    clock = VirtualClock(start_s=0.0)
    bucket = TokenBucket(rate=10.0, burst=3, clock=clock)
    assert [bucket.take() for _ in range(4)] == [True, True, True, False]
    clock.advance(0.1)
    assert [bucket.take() for _ in range(2)] == [True, False]
    clock.advance(100.0)
    assert [bucket.take() for _ in range(4)] == [True, True, True, False]


def test_synchronous_code_has_it_in_a_thread(lambdas: Lambdas) -> None:
    gateway = FaultGateway(lambdas.handlers(), routes=ROUTES)
    with gateway.in_thread(), connect(gateway.url) as socket:
        socket.send(message())
        assert socket.recv() == message()
    assert gateway.counts["handshakes"] == 1
