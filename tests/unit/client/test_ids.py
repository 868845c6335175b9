from __future__ import annotations

import re

import pytest

from threadkeep.domain.ids import ID_PATTERN
from threadkeep_client.ids import IdMint, new_id, time_ms

NOW_MS = 1_700_000_000_123


def frozen(_: int = 0) -> int:
    return NOW_MS


def test_an_id_is_what_the_service_takes_and_tells_its_time() -> None:
    minted = IdMint(now_ms=frozen).mint()
    assert re.match(ID_PATTERN, minted)
    assert time_ms(minted) == NOW_MS


@pytest.mark.parametrize("byte", [b"\x00", b"\xff", b"\x5a"])
def test_ids_of_one_millisecond_rise_whatever_the_randomness(byte: bytes) -> None:
    mint = IdMint(now_ms=frozen, entropy=lambda count: byte * count)
    minted = [mint.mint() for _ in range(2_000)]
    assert minted == sorted(set(minted))
    assert all(re.match(ID_PATTERN, one) for one in minted)


def test_ids_rise_when_the_clock_goes_back() -> None:
    times = iter([NOW_MS, NOW_MS - 5_000, NOW_MS - 5_000, NOW_MS + 1])
    mint = IdMint(now_ms=lambda: next(times))
    minted = [mint.mint() for _ in range(4)]
    assert minted == sorted(set(minted))


def test_an_id_follows_its_parent_even_if_that_comes_from_a_clock_ahead() -> None:
    ahead = IdMint(now_ms=lambda: NOW_MS + 60_000).mint()
    behind = IdMint(now_ms=frozen)
    child = behind.mint(after=ahead)
    assert child > ahead
    assert re.match(ID_PATTERN, child)
    assert behind.mint() > child


def test_the_process_has_one_mint() -> None:
    first = new_id()
    assert new_id() > first


def test_a_parent_that_is_no_id_is_refused() -> None:
    with pytest.raises(ValueError, match="badly formed"):
        new_id(after="no id")
