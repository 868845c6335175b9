"""What every hot tier answers about who watches: leases, and viewers that frames were dropped for."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.support.hot import Talk
from threadkeep.domain.bounds import PAGE_OPS_BYTES_MAX, VIEWERS_MAX
from threadkeep.domain.streams import Accepted, Full, Opened, Resumed, Unknown


def test_a_viewer_is_one_for_its_lease(talk: Talk) -> None:
    epoch = talk.opened()
    talk.watch("short", lease_ms=40)
    talk.watch("long")
    assert set(talk.hot.viewers(talk.key)) == {"short", "long"}
    talk.watch("renewed", lease_ms=40)
    talk.watch("renewed")
    time.sleep(0.06)
    assert set(talk.hot.viewers(talk.key)) == {"long", "renewed"}
    verdict = talk.append(epoch, 0)
    assert isinstance(verdict, Accepted)
    assert set(verdict.viewers) == {"long", "renewed"}


def test_viewers_can_be_removed_gone_ones_too(talk: Talk) -> None:
    talk.hot.unsubscribe(talk.key, ["nobody"])
    talk.watch("c1")
    talk.watch("c2")
    talk.watch("c3")
    talk.hot.unsubscribe(talk.key, ["c1", "nobody", "c3"])
    talk.hot.unsubscribe(talk.key, [])
    assert talk.hot.viewers(talk.key) == ("c2",)


def test_all_viewers_can_be_removed_those_that_lag_too(talk: Talk) -> None:
    talk.hot.forget_viewers(talk.key)
    for name in ("c1", "slow"):
        talk.watch(name)
    talk.lag("slow")
    talk.hot.forget_viewers(talk.key)
    talk.hot.resume(talk.key, talk.stream, epoch=0, offset=0, connection="slow")
    assert talk.hot.viewers(talk.key) == ()
    talk.watch("c1")
    assert talk.hot.viewers(talk.key) == ("c1",)


def test_only_so_many_view_a_conversation_and_run_out_leases_make_room(talk: Talk) -> None:
    for number in range(VIEWERS_MAX - 1):
        talk.watch(f"c{number}")
    talk.watch("short", lease_ms=200)
    assert talk.hot.subscribe(talk.key, "more", lease_ms=60_000) == Full()
    assert talk.hot.subscribe(talk.key, "c1", lease_ms=60_000) is None  # is one already
    assert len(talk.hot.viewers(talk.key)) == VIEWERS_MAX
    time.sleep(0.21)
    talk.watch("more")
    assert talk.hot.subscribe(talk.key, "short", lease_ms=60_000) == Full()


# --- viewers that lag -----------------------------------------------------------------------------------------


def named(talk: Talk) -> set[str]:
    return set(talk.hot.viewers(talk.key))


def test_a_viewer_that_lags_is_named_by_nothing(talk: Talk) -> None:
    epoch = talk.opened()
    for connection in ("slow", "quick", "slower"):
        talk.watch(connection)
    talk.lag("slow", "slower")
    assert named(talk) == {"quick"}
    assert talk.append(epoch, 0, b"[1]") == Accepted(1, ("quick",))
    anew = talk.open(held=epoch)
    assert isinstance(anew, Opened)
    assert anew.viewers == ("quick",)
    assert talk.fill(talk.stream) == ("quick",)
    talk.seal(anew.epoch, 0)
    assert talk.settle() == ("quick",)


def test_only_viewers_lag(talk: Talk) -> None:
    talk.watch("c1")
    talk.lag("nobody")
    talk.lag()
    talk.lag("c1")
    talk.lag("c1")
    assert talk.hot.subscribe(talk.key, "nobody", lease_ms=60_000) is None
    assert named(talk) == {"nobody"}
    talk.hot.unsubscribe(talk.key, ["c1"])
    talk.resume(connection="c1")
    assert named(talk) == {"nobody"}


def test_who_has_resumed_lags_no_longer(talk: Talk) -> None:
    epoch = talk.written(b"[1]", b"[2]")
    talk.watch("slow")
    talk.lag("slow")
    talk.resume(epoch, 1)  # somebody else does
    talk.resume(epoch, 1, connection="another")
    assert named(talk) == set()
    page = talk.resume(epoch, 1, connection="slow")
    assert isinstance(page, Resumed)
    assert page.log == (b"[2]",)
    assert talk.append(epoch, 2, b"[3]") == Accepted(3, ("slow",))  # from there on, without a gap


def test_only_the_last_page_ends_the_lag(talk: Talk) -> None:
    epoch = talk.written(*[b"x" * (PAGE_OPS_BYTES_MAX // 2)] * 5)
    talk.watch("slow")
    talk.lag("slow")
    at, seen = 0, []
    while True:
        page = talk.resume(epoch, at, connection="slow")
        assert isinstance(page, Resumed)
        at = page.offset
        seen.append((page.more, "slow" in named(talk)))
        if not page.more:
            break
    assert seen == [(True, False), (True, False), (False, True)]


@pytest.mark.parametrize("is_settled", [True, False])
def test_what_the_table_answers_ends_the_lag_too(talk: Talk, *, is_settled: bool) -> None:
    """Else whoever resumes after the end hears nothing of the next answer."""
    if is_settled:
        talk.closed(b"[1]")
        talk.settle()
    talk.watch("slow")
    talk.lag("slow")
    assert talk.resume(connection="slow") == Unknown()
    assert named(talk) == {"slow"}


def test_subscribing_again_ends_the_lag(talk: Talk) -> None:
    talk.watch("slow")
    talk.lag("slow")
    talk.watch("slow")
    assert named(talk) == {"slow"}
    talk.lag("slow")
    assert named(talk) == set()


BACK: dict[str, Callable[[Talk], object]] = {
    "resumed": lambda talk: talk.resume(connection="slow"),
    "still lagging": lambda talk: None,  # noqa: ARG005 -- as the other
}


@pytest.mark.parametrize("back", BACK)
def test_a_lag_does_not_lengthen_the_lease(talk: Talk, back: str) -> None:
    talk.watch("long")
    talk.watch("slow", lease_ms=60)
    talk.lag("slow", "long")
    BACK[back](talk)
    time.sleep(0.08)
    talk.resume(connection="slow")
    talk.resume(connection="long")
    assert named(talk) == {"long"}


def test_those_that_lag_have_their_places_among_the_viewers(talk: Talk) -> None:
    for number in range(1, VIEWERS_MAX):
        talk.watch(f"c{number}")
    talk.lag("c1", "c2", "c3")
    talk.watch("c0", lease_ms=200)
    talk.lag("c0")
    assert talk.hot.subscribe(talk.key, "more", lease_ms=60_000) == Full()
    assert talk.hot.subscribe(talk.key, "c1", lease_ms=60_000) is None  # is one already
    assert talk.hot.subscribe(talk.key, "more", lease_ms=60_000) == Full()
    talk.hot.unsubscribe(talk.key, ["c2"])
    talk.watch("more")
    assert talk.hot.subscribe(talk.key, "c2", lease_ms=60_000) == Full()
    time.sleep(0.21)  # c0's lease runs out while it lags
    talk.watch("c2")
    assert len(named(talk)) == VIEWERS_MAX - 1
