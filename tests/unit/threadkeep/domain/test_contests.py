"""Which of two stands, where two regions gave one item different contents."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from tests.support.contests import CLAIMS, ENDINGS
from threadkeep.domain.contests import Claim, Ending


@pytest.mark.parametrize(("was", "now", "is_put_back"), CLAIMS)
def test_of_two_heads_the_earlier_claim_stands(was: Claim, now: Claim, *, is_put_back: bool) -> None:
    assert was.ranks_before(now) is is_put_back


@pytest.mark.parametrize(("was", "now", "is_put_back"), ENDINGS)
def test_of_two_messages_the_complete_one_stands_then_that_of_the_later_epoch(
    was: Ending, now: Ending, *, is_put_back: bool
) -> None:
    assert was.ranks_before(now) is is_put_back


def test_no_two_put_each_other_back_and_no_three_in_a_circle() -> None:
    """Else two regions would write over each other for ever."""
    kinds: list[set[Any]] = [{one for pair in cases for one in pair[:2]} for cases in (CLAIMS, ENDINGS)]
    for kind in kinds:
        for first, second in permutations(kind, 2):
            assert not (first.ranks_before(second) and second.ranks_before(first))
        for first, second, third in permutations(kind, 3):
            assert not all([first.ranks_before(second), second.ranks_before(third), third.ranks_before(first)])
