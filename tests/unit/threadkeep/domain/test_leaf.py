"""The leaf register as it stands by itself: who is present, what a fill and a confirmation make of it.

Ids here are letters: their order is all that counts.
"""

from __future__ import annotations

import pytest
from msgspec import UNSET, UnsetType

from threadkeep.domain.leaf import Claimed, ParentPending, Register, judge_claim
from threadkeep.domain.streams import ParentOpen, StaleLeaf

VOID_MS = 30


@pytest.mark.parametrize(
    ("settled", "claims", "live", "present"),
    [
        (None, "", "", None),
        ("b", "", "", "b"),
        ("b", "a", "", "b"),
        ("b", "c", "", "c"),
        ("b", "c", "d", "d"),
        ("b", "c", "a", "c"),
        (None, "", "a", "a"),
        (UNSET, "a", "", "a"),
    ],
)
def test_the_newest_is_present(settled: str | UnsetType | None, claims: str, live: str, present: str | None) -> None:
    register = Register(settled=settled, claims=dict.fromkeys(claims, 0))
    assert register.present(live) == present


@pytest.mark.parametrize(
    ("settled", "claims", "expected"),
    [(UNSET, {}, False), (None, {}, True), ("a", {}, True), ("a", {"b": 71}, True), ("a", {"b": 71, "c": 70}, False)],
)
def test_it_is_sure_once_the_table_was_asked_and_until_a_claim_is_overdue(
    settled: str | UnsetType | None, claims: dict[str, int], *, expected: bool
) -> None:
    assert Register(settled=settled, claims=claims).is_sure(now_ms=100, void_ms=VOID_MS) is expected


@pytest.mark.parametrize(
    ("register", "newest", "settled", "claims"),
    [
        (Register(), None, None, {}),
        (Register(), "a", "a", {}),
        (Register(settled=None), "a", "a", {}),
        (Register(settled="b"), "a", "b", {}),
        (Register(settled="b"), None, "b", {}),
        # there: no claim any more
        (Register(settled="a", claims={"b": 100}), "b", "b", {}),
        # not there: stands while it is fresh
        (Register(settled="a", claims={"b": 71, "c": 70}), "a", "a", {"b": 71}),
        (Register(settled="a", claims={"b": 71, "c": 70}), "d", "d", {"b": 71}),
    ],
)
def test_it_is_corrected_by_what_the_table_holds(
    register: Register, newest: str | None, settled: str | None, claims: dict[str, int]
) -> None:
    register.confirm(newest, now_ms=100, void_ms=VOID_MS)
    assert register == Register(settled=settled, claims=claims)


@pytest.mark.parametrize(
    ("register", "settled", "claims"),
    [
        (Register(settled="a", claims={"b": 7}), "b", {}),
        (Register(settled="a"), "b", {}),
        (Register(settled=None), "b", {}),
        (Register(settled="c", claims={"b": 7, "d": 8}), "c", {"d": 8}),
        # nobody knows whether a newer one is there
        (Register(), UNSET, {"b": 100}),
        (Register(claims={"b": 7}), UNSET, {"b": 100}),
    ],
)
def test_a_fill_advances_it(register: Register, settled: str | UnsetType | None, claims: dict[str, int]) -> None:
    register.fill("b", now_ms=100)
    assert register == Register(settled=settled, claims=claims)


def test_what_is_settled_is_not_claimed_again() -> None:
    register = Register(settled="b")
    register.claim("b", now_ms=100)
    assert register == Register(settled="b")
    register.claim("c", now_ms=100)
    register.release("c")
    register.release("c")
    assert register == Register(settled="b")


@pytest.mark.parametrize(
    ("parent", "live", "expected", "forking"),
    [
        ("b", "", StaleLeaf("c"), Claimed()),
        (None, "", StaleLeaf("c"), Claimed()),
        ("c", "", ParentPending(), ParentPending()),
        ("a", "", StaleLeaf("c"), Claimed()),  # a claim behind what is settled: the table knows
        ("d", "d", ParentOpen(), ParentOpen()),
        ("d", "de", StaleLeaf("e"), ParentOpen()),
        ("b", "b", StaleLeaf("c"), Claimed()),  # in the table, and not settled here yet
    ],
)
def test_a_place_is_judged(parent: str | None, live: str, expected: object, forking: object) -> None:
    register = Register(settled="b", claims={"a": 0, "c": 0})
    assert judge_claim(register, live, parent=parent, fork=False) == expected
    assert judge_claim(register, live, parent=parent, fork=True) == forking
    assert register == Register(settled="b", claims={"a": 0, "c": 0})
