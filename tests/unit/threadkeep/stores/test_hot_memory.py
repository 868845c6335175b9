"""The reference where only a set clock can show it; all else stands in the contract suite."""

from __future__ import annotations

import pytest

from tests.support.hot import COMPLETE, REGION, ROOT, SetClock, Talk
from threadkeep.domain.bounds import LEASE_MS, SETTLED_STATE_MS
from threadkeep.domain.streams import Closed, Opened, Sealed, Unknown
from threadkeep.stores.hot_memory import HotMemory


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def talk(clock: SetClock) -> Talk:
    return Talk(HotMemory(clock, region=REGION))


def test_a_settled_streams_state_stays_for_late_writers_and_then_goes(clock: SetClock, talk: Talk) -> None:
    epoch = talk.closed(b"[1]")
    talk.settle()
    clock.ms += SETTLED_STATE_MS - 1
    assert talk.append(epoch, 1) == Closed(COMPLETE)
    assert talk.seal(epoch, 1) == Sealed(epoch=epoch, seal=COMPLETE, facts=ROOT, log=(), settled=True)
    clock.ms += 1
    assert talk.append(epoch, 1) == Unknown()
    assert talk.open(fork=True) == Opened(clock.ms, 0, fresh=True)


def test_an_epoch_goes_with_the_clock_and_never_back(clock: SetClock, talk: Talk) -> None:
    epochs = [talk.opened()]
    for step_ms in (0, 0, 5, -60_000, 0):
        clock.ms += step_ms
        epochs.append(talk.opened(held=epochs[-1]))
    start = epochs[0]
    assert epochs == [start, start + 1, start + 2, start + 5, start + 6, start + 7]


def test_a_lease_ends_at_its_moment(clock: SetClock, talk: Talk) -> None:
    talk.watch("c1", lease_ms=10)
    clock.ms += 9
    assert talk.hot.viewers(talk.key) == ("c1",)
    clock.ms += 1
    assert talk.hot.viewers(talk.key) == ()


def test_every_sign_of_life_renews_the_streams_lease(clock: SetClock, talk: Talk) -> None:
    assert isinstance(talk.hot, HotMemory)
    epoch = talk.opened()
    for sign in (lambda: talk.append(epoch, 0), lambda: talk.append(epoch, 0), talk.open):
        clock.ms += 1_000
        sign()
        stream = talk.hot._conversations[talk.key].streams[talk.stream]
        assert stream.lease_ms == clock.ms + LEASE_MS
