from __future__ import annotations

import itertools
import random

import pytest

from threadkeep_client.backoff import Backoff


def test_pauses_are_jittered_and_grow_up_to_the_bound() -> None:
    backoff = Backoff(base_s=0.5, ceiling_s=8.0, floor_s=0.1)
    runs = [list(itertools.islice(backoff.pauses(random.Random(seed)), 12)) for seed in range(300)]  # noqa: S311 -- jitter
    for place, pauses in enumerate(zip(*runs, strict=True)):
        ceiling = min(8.0, 0.5 * 2**place)
        assert 0.1 <= min(pauses) < 0.1 + 0.2 * ceiling
        assert 0.9 * ceiling < max(pauses) <= ceiling
        assert len(set(pauses)) > 290


@pytest.mark.parametrize("wrong", [{"base_s": 30.0}, {"floor_s": 1.0}, {"floor_s": -1.0}])
def test_bounds_that_contradict_each_other_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must hold"):
        Backoff(**wrong)
