"""How often somebody may ask."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from threadkeep.domain.rates import Rate, take

RATE = Rate(per_s=2.0, burst=3)


def asked(rate: Rate, times_ms: list[int]) -> list[int]:
    """Ask at each of the times; how long each was told to wait."""
    expected = 0.0
    waits = []
    for now_ms in times_ms:
        expected, wait_ms = take(rate, expected, now_ms)
        waits.append(wait_ms)
    return waits


def test_a_burst_is_taken_and_then_one_an_interval() -> None:
    assert asked(RATE, [1_000_000] * 5) == [0, 0, 0, 500, 500]
    assert asked(RATE, [1_000_000] * 3 + [1_000_499, 1_000_500, 1_000_501]) == [0, 0, 0, 1, 0, 499]


def test_a_refusal_costs_nothing() -> None:
    assert asked(RATE, [1_000_000] * 3 + [1_000_100] * 50 + [1_000_500]) == [0] * 3 + [400] * 50 + [0]


@given(st.lists(st.integers(0, 400), max_size=60))
def test_whoever_waits_as_told_is_taken_and_nobody_gets_more_than_rate_and_burst(gaps_ms: list[int]) -> None:
    expected, now_ms, taken = 0.0, 1_000_000, 0
    for gap_ms in gaps_ms:
        now_ms += gap_ms
        expected, wait_ms = take(RATE, expected, now_ms)
        taken += wait_ms == 0
        if wait_ms:
            assert take(RATE, expected, now_ms + wait_ms - 1)[1] > 0
            assert take(RATE, expected, now_ms + wait_ms)[1] == 0
    assert taken <= RATE.burst + (now_ms - 1_000_000) * RATE.per_s / 1_000 + 1
