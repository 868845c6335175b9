"""The reference where only a set clock can show it; all else stands in the contract suite."""

from __future__ import annotations

import pytest

from tests.support.hot import COMPLETE, REGION, ROOT, SetClock, Talk, new_id
from threadkeep.domain.bounds import CLAIM_VOID_MS, LEAF_MS, LEASE_MS, SEAL_OLD_MS, SETTLED_STATE_MS
from threadkeep.domain.leaf import Claimed, LeafUnknown
from threadkeep.domain.streams import DEAD, Alive, Closed, Opened, Sealed, StaleLeaf, Unknown
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


def test_a_stop_before_the_opening_waits_and_then_goes(clock: SetClock, talk: Talk) -> None:
    talk.stop(COMPLETE)
    clock.ms += SETTLED_STATE_MS - 1
    assert talk.open() == Closed(COMPLETE)
    clock.ms += 1
    assert isinstance(talk.open(), Opened)


def test_a_stop_that_is_repeated_begins_its_wait_anew(clock: SetClock, talk: Talk) -> None:
    talk.stop(COMPLETE)
    clock.ms += SETTLED_STATE_MS - 1
    talk.stop(COMPLETE)
    clock.ms += SETTLED_STATE_MS - 1
    assert talk.open() == Closed(COMPLETE)


def test_a_leaf_is_forgotten_after_its_time(clock: SetClock, talk: Talk) -> None:
    message = talk.kept()
    clock.ms += LEAF_MS - 1
    assert talk.claim(new_id(), None) == StaleLeaf(message)
    clock.ms += 1
    assert talk.claim(new_id(), None) == LeafUnknown()


def test_a_claim_is_void_at_its_moment(clock: SetClock, talk: Talk) -> None:
    root, lost = talk.kept(), new_id()
    talk.claim(lost, root)
    clock.ms += CLAIM_VOID_MS - 1
    assert talk.claim(new_id(), root, confirmed=root) == StaleLeaf(lost)
    clock.ms += 1
    assert talk.claim(new_id(), root, confirmed=root) == Claimed()


def test_a_streams_time_runs_out_at_its_moment(clock: SetClock, talk: Talk) -> None:
    epoch = talk.opened()
    talk.append(epoch, 0, b"[1]")
    clock.ms += LEASE_MS - 1
    assert talk.expire() == Alive(clock.ms + 1)
    clock.ms += 1
    assert talk.expire() == Sealed(epoch=epoch, seal=DEAD, facts=ROOT, log=(b"[1]",))
    assert talk.expire() == Alive(clock.ms + SEAL_OLD_MS)
    clock.ms += SEAL_OLD_MS
    assert talk.expire() == Sealed(epoch=epoch, seal=DEAD, facts=ROOT, log=(b"[1]",))
