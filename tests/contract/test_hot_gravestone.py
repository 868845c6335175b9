"""What every hot tier makes of a deleted conversation: nothing is left, and nothing comes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.hot import COMPLETE, Lab, Talk, new_id, new_key, stored
from threadkeep.domain.bounds import GRAVESTONE_MS
from threadkeep.domain.leaf import LeafUnknown
from threadkeep.domain.model import ConversationKey
from threadkeep.domain.streams import Facts, Opened, SealedUnopened, Unknown
from threadkeep.domain.tail import Erased, Tail
from threadkeep.ports import HotStore


def lived_in(talk: Talk) -> Talk:
    """A conversation with all that one may have here; its live stream."""
    [question] = talk.said(1)
    talk.closed(b"[0]", held=1, facts=Facts(parent=None, role="assistant"))
    talk.settle()
    live = talk.other()
    live.written(b"[1]", fork=True, facts=Facts(parent=question.message.id, role="assistant"), leaf=talk.stream)
    talk.watch("quick")
    talk.watch("slow")
    talk.lag("slow")
    talk.tail(new_id(), reader="reader")
    return live


def test_all_that_is_there_is_dropped_and_counted_and_the_viewers_are_named(talk: Talk) -> None:
    live = lived_in(talk)
    count, viewers = talk.hot.bury(talk.key)
    # the register, the live streams, the viewers, those that lag, the tail, the loader; a state and a log; a state
    assert count == 9
    assert set(viewers) == {"quick", "slow"}
    assert talk.hot.viewers(talk.key) == ()
    assert talk.hot.live(talk.key) == ()
    for each in (talk, live):
        assert each.append(1, 0) == Unknown()
        assert each.resume() == Unknown()
        assert each.expire() == Unknown()


def test_again_it_is_as_at_first(talk: Talk) -> None:
    lived_in(talk)
    talk.hot.bury(talk.key)
    assert talk.hot.bury(talk.key) == (0, ())


def test_one_that_nobody_knows_is_buried_too(talk: Talk) -> None:
    assert talk.hot.bury(talk.key) == (0, ())
    assert talk.open() == Erased()


@pytest.mark.parametrize("is_lived_in", [True, False])
def test_nobody_is_let_in(talk: Talk, *, is_lived_in: bool) -> None:
    live = lived_in(talk) if is_lived_in else talk
    talk.hot.bury(talk.key)
    for each in (live, talk.other()):
        assert each.open() == Erased()
        assert each.open(held=1, takeover=True, fork=True) == Erased()
    for options in ({}, {"fork": True}, {"confirmed": None}):
        fields: dict[str, Any] = options
        assert talk.claim(new_id(), None, **fields) == Erased()
    assert talk.hot.subscribe(talk.key, "c1", lease_ms=60_000) == Erased()
    assert talk.hot.read_tail(talk.key, limit=20, reader="r") == Erased()


LATE: dict[str, Callable[[Talk], Any]] = {
    "fill": lambda talk: talk.fill(new_id()),
    "settle": lambda talk: talk.settle(),
    "load": lambda talk: talk.hot.load(
        talk.key, [stored(talk.key, new_id())], owner="ann", newest=new_id(), reader="reader"
    ),
    "forget_tail": lambda talk: talk.hot.forget_tail(talk.key),
    "forget_viewers": lambda talk: talk.hot.forget_viewers(talk.key),
    "release": lambda talk: talk.hot.release(talk.key, new_id()),
    "mark_lagging": lambda talk: talk.lag("quick"),
    "unsubscribe": lambda talk: talk.hot.unsubscribe(talk.key, ["quick"]),
    "append": lambda talk: talk.append(1, 0, b"[1]"),
    "seal": lambda talk: talk.seal(1, 0),
    "resume": lambda talk: talk.resume(connection="slow"),
    "subscribe": lambda talk: talk.hot.subscribe(talk.key, "late", lease_ms=60_000),
    "claim": lambda talk: talk.claim(new_id(), None, confirmed=None),
    "open": lambda talk: talk.open(),
}


@pytest.mark.parametrize("late", LATE)
def test_what_was_under_way_leaves_nothing(lab: Lab, talk: Talk, late: str) -> None:
    live = lived_in(talk)
    talk.hot.bury(talk.key)
    LATE[late](live)
    assert talk.hot.bury(talk.key) == (0, ())
    LATE[late](live)
    lab.pass_ms(talk, GRAVESTONE_MS)
    assert talk.tail() == Tail(is_known=False)
    assert talk.hot.bury(talk.key) == (0, ())


def test_viewers_of_a_late_fill_are_nobody(talk: Talk) -> None:
    live = lived_in(talk)
    talk.hot.bury(talk.key)
    assert talk.fill(new_id()) == ()
    assert live.settle() == ()


def test_it_is_forgotten_after_its_time(lab: Lab, talk: Talk) -> None:
    talk.hot.bury(talk.key)
    lab.pass_ms(talk, GRAVESTONE_MS - 60_000)
    assert talk.claim(new_id(), None) == Erased()
    talk.hot.bury(talk.key)  # stands anew
    lab.pass_ms(talk, GRAVESTONE_MS - 60_000)
    assert talk.claim(new_id(), None) == Erased()
    lab.pass_ms(talk, 60_000)
    assert talk.claim(new_id(), None) == LeafUnknown()


def test_only_that_conversation_is_buried(hot: HotStore) -> None:
    key = new_key()
    others = [
        Talk(hot, ConversationKey(f"{key.tenant}/", key.conversation)),
        Talk(hot, ConversationKey(key.tenant, new_id())),
    ]
    epochs = [other.written(b"[1]") for other in others]
    for other in others:
        other.watch("c1")
    Talk(hot, key).hot.bury(key)
    for other, epoch in zip(others, epochs, strict=True):
        assert other.hot.viewers(other.key) == ("c1",)
        assert other.open() == Opened(epoch, 1)
        assert isinstance(other.other().open(fork=True), Opened)


def test_a_stop_of_what_was_dropped_finds_nothing(talk: Talk) -> None:
    live = lived_in(talk)
    talk.hot.bury(talk.key)
    assert live.stop(COMPLETE) == SealedUnopened()
    assert live.open() == Erased()
