"""Identifiers: their form, their time, their order."""

from __future__ import annotations

import uuid

import pytest

from threadkeep.domain import ids
from threadkeep.domain.bounds import ID_AHEAD_MS_MAX

NOW_MS = 1_790_000_000_000


def test_a_minted_id_is_a_uuid7_of_its_time() -> None:
    minted = uuid.UUID(ids.mint(NOW_MS))
    assert (minted.version, minted.variant) == (7, uuid.RFC_4122)
    assert ids.is_id(str(minted))
    assert ids.time_ms(str(minted)) == NOW_MS


def test_ids_of_one_millisecond_are_all_different() -> None:
    assert len({ids.mint(NOW_MS) for _ in range(1_000)}) == 1_000


def test_ids_sort_by_their_time() -> None:
    minted = [ids.mint(NOW_MS + ms) for ms in range(100)]
    assert sorted(minted) == minted


def test_a_chain_minted_under_a_standing_clock_is_in_order() -> None:
    chain = [ids.mint(NOW_MS)]
    for _ in range(9):
        chain.append(ids.mint(NOW_MS, after=chain[-1]))
    assert sorted(chain) == chain


def test_a_child_sorts_behind_a_parent_whose_clock_is_ahead() -> None:
    parent = ids.mint(NOW_MS + 60_000)
    assert ids.mint(NOW_MS, after=parent) > parent
    assert ids.time_ms(ids.mint(NOW_MS, after=ids.mint(NOW_MS - 60_000))) == NOW_MS


@pytest.mark.parametrize(
    "text",
    [
        "",
        "01a0c450-6c00-7745-89d2-49210750a2d",
        "01a0c450-6c00-7745-89d2-49210750a2dff",
        "01a0c450-6c00-7745-89d2-49210750a2df\n",
        "01A0C450-6C00-7745-89D2-49210750A2DF",
        "01a0c4506c00774589d249210750a2df",
        "{01a0c450-6c00-7745-89d2-49210750a2df}",
        "01a0c450-6c00-4745-89d2-49210750a2df",
        "01a0c450-6c00-7745-c9d2-49210750a2df",
        "01a0c450-6c00-7745-89d2-49210750a2d٣",
        "01a0c450#6c00-7745-89d2-49210750a2df",
    ],
)
def test_anything_else_is_no_id(text: str) -> None:
    assert not ids.is_id(text)


def test_an_id_may_be_ahead_by_so_much_and_no_more() -> None:
    assert not ids.is_ahead(ids.mint(NOW_MS + ID_AHEAD_MS_MAX), NOW_MS)
    assert ids.is_ahead(ids.mint(NOW_MS + ID_AHEAD_MS_MAX + 1), NOW_MS)
