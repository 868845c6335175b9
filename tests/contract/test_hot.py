"""What every hot tier answers about streams and their writers."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.support.hot import (
    ANN,
    COMPLETE,
    REGION,
    ROOT,
    SystemClock,
    Talk,
    new_id,
    new_key,
    older_id,
)
from threadkeep.domain.bounds import LIVE_STREAMS_MAX, OPS_BYTES_MAX, PAGE_OPS_BYTES_MAX
from threadkeep.domain.model import ConversationKey, LiveStream
from threadkeep.domain.streams import (
    Accepted,
    Closed,
    Diverged,
    Duplicate,
    Facts,
    Fenced,
    Full,
    Gap,
    Held,
    Opened,
    ParentMissing,
    ParentOpen,
    PastEnd,
    PlaceDiffers,
    Resumed,
    Seal,
    Sealed,
    StaleLeaf,
    Unknown,
    Writer,
)
from threadkeep.ports import HotStore

ANN_AGAIN = Writer("ann", "run-2")
BOB = Writer("bob", "run-3")
FAR = 9_007_199_254_740_000
"""An epoch that no clock has reached, near the greatest that the protocol takes."""
STOPPED = Seal(
    status="stopped",
    usage={"output_tokens": msgspec.Raw(b"9007199254740993"), "cost": msgspec.Raw(b"1.0")},
    error={"code": msgspec.Raw(b'"\\u0000\\ud83d\\ude00"')},
)


# --- open -----------------------------------------------------------------------------------------------------


def test_a_new_stream_begins_at_the_hot_tiers_clock(talk: Talk) -> None:
    before = SystemClock().now_ms()
    verdict = talk.open()
    assert isinstance(verdict, Opened)
    assert before <= verdict.epoch <= SystemClock().now_ms()
    assert verdict == Opened(verdict.epoch, 0, fresh=True)


def test_a_new_streams_epoch_is_beyond_the_one_held(talk: Talk) -> None:
    assert talk.open(held=FAR) == Opened(FAR + 1, 0, fresh=True)


def test_a_new_epoch_is_beyond_the_one_known(talk: Talk) -> None:
    talk.opened(held=FAR)
    assert talk.open(writer=BOB, takeover=True) == Opened(FAR + 2, 0)


def test_a_repeated_open_finds_its_place(talk: Talk) -> None:
    epoch = talk.written(b"[1]", b"[2]")
    talk.watch("c1")
    assert talk.open() == Opened(epoch, 2)


def test_the_same_run_with_its_epoch_starts_over(talk: Talk) -> None:
    epoch = talk.written(b"[1]")
    talk.watch("c1")
    verdict = talk.open(held=epoch)
    assert isinstance(verdict, Opened)
    assert verdict == Opened(verdict.epoch, 0, fresh=True, viewers=("c1",))
    assert verdict.epoch > epoch
    assert talk.resume() == Resumed(epoch=verdict.epoch, at=0, log=(), offset=0, more=False, sealed=False)


def test_another_run_is_refused_while_one_holds_the_stream(talk: Talk) -> None:
    talk.opened()
    assert talk.open(writer=ANN_AGAIN) == Held()
    assert talk.open(writer=Writer("bob", ANN.producer)) == Held()


def test_another_run_that_held_the_stream_is_fenced_once_it_has_gone_on(talk: Talk) -> None:
    first = talk.opened()
    second = talk.opened(writer=BOB, takeover=True)
    assert second > first
    assert talk.open(held=first) == Fenced()
    assert talk.open(held=first, takeover=True) == Fenced()


def test_another_run_that_held_this_epoch_or_a_later_one_starts_over(talk: Talk) -> None:
    epoch = talk.written(b"[1]")
    verdict = talk.open(writer=BOB, held=epoch)
    assert isinstance(verdict, Opened)
    assert verdict == Opened(verdict.epoch, 0, fresh=True)
    assert talk.open(writer=ANN, held=FAR) == Opened(FAR + 1, 0, fresh=True)


def test_a_takeover_keeps_the_log_and_fences_the_one_before(talk: Talk) -> None:
    first = talk.written(b"[1]", b"[2]")
    talk.watch("c1")
    verdict = talk.open(writer=BOB, takeover=True)
    assert isinstance(verdict, Opened)
    assert verdict == Opened(verdict.epoch, 2)
    assert verdict.epoch > first
    assert talk.append(first, 2) == Unknown()  # the stream is Bob's now
    assert talk.append(verdict.epoch, 2, b"[3]", principal="bob") == Accepted(3, ("c1",))
    assert talk.resume(first, 2) == Resumed(
        epoch=verdict.epoch, at=0, log=(b"[1]", b"[2]", b"[3]"), offset=3, more=False, sealed=False
    )


def test_a_takeover_by_another_run_of_the_same_principal_fences_the_first(talk: Talk) -> None:
    first = talk.written(b"[1]")
    second = talk.opened(writer=ANN_AGAIN, takeover=True)
    assert talk.append(first, 1) == Fenced()
    assert talk.append(second, 1) == Accepted(2)


def test_a_takeover_keeps_the_facts_and_a_fresh_log_brings_its_own(talk: Talk) -> None:
    parent = older_id()
    epoch = talk.opened(leaf=parent, facts=Facts(parent=parent, role="assistant", model="m1"))
    epoch = talk.opened(writer=BOB, takeover=True, facts=Facts(parent=parent, role="assistant"))
    sealed = talk.seal(epoch, 0, principal="bob")
    assert isinstance(sealed, Sealed)
    assert sealed.facts == Facts(parent=parent, role="assistant", model="m1")

    again = talk.other()
    epoch = again.opened(leaf=parent, fork=True, facts=Facts(parent=parent, role="assistant", model="m1"))
    epoch = again.opened(held=epoch, facts=Facts(parent=parent, role="assistant", model="m2"))
    sealed = again.seal(epoch, 0)
    assert isinstance(sealed, Sealed)
    assert sealed.facts == Facts(parent=parent, role="assistant", model="m2")


@pytest.mark.parametrize("place", [Facts(parent=None, role="assistant"), Facts(parent=older_id(), role="assistant")])
def test_a_stream_stays_under_the_parent_and_role_it_began_with(talk: Talk, place: Facts) -> None:
    parent = older_id()
    begun = Facts(parent=parent, role="assistant")
    epoch = talk.written(b"[1]", leaf=parent, facts=begun)
    for facts in (place, Facts(parent=parent, role="user")):
        for options in ({}, {"held": epoch}, {"writer": BOB, "held": epoch}, {"writer": BOB, "takeover": True}):
            assert talk.open(facts=facts, **options) == PlaceDiffers()
        assert talk.open(facts=facts, writer=BOB) == Held()
        assert talk.open(facts=facts, writer=BOB, held=epoch - 1) == Fenced()
    assert talk.append(epoch, 1) == Accepted(2)
    verdict = talk.open(held=epoch, facts=begun, parent_settled=False)
    assert isinstance(verdict, Opened), "its parent had settled when it began"
    sealed = talk.seal(verdict.epoch, 0)
    assert isinstance(sealed, Sealed)
    assert sealed.facts == begun


@pytest.mark.parametrize("is_settled", [False, True])
@pytest.mark.parametrize("writer", [ANN, BOB])
@pytest.mark.parametrize("options", [{}, {"held": FAR}, {"held": 1}, {"takeover": True}])
def test_a_sealed_stream_is_closed_to_everyone(
    talk: Talk, writer: Writer, options: dict[str, Any], *, is_settled: bool
) -> None:
    talk.closed(b"[1]", seal=STOPPED)
    if is_settled:
        talk.settle()
    assert talk.open(writer=writer, **options) == Closed(STOPPED)


# --- the place of a new stream --------------------------------------------------------------------------------


def test_a_new_stream_stands_under_the_leaf(talk: Talk) -> None:
    leaf, older = older_id(), older_id()
    assert talk.open(facts=ROOT, leaf=leaf) == StaleLeaf(leaf)
    assert talk.open(facts=Facts(parent=older, role="assistant"), leaf=leaf) == StaleLeaf(leaf)
    assert Talk(talk.hot).open(facts=Facts(parent=older, role="assistant"), leaf=None) == StaleLeaf(None)
    assert isinstance(talk.open(facts=Facts(parent=leaf, role="assistant"), leaf=leaf), Opened)


def test_a_live_stream_is_the_leaf_from_its_opening(talk: Talk) -> None:
    question, reply = older_id(), talk.other()
    under_question = Facts(parent=question, role="assistant")
    talk.opened(facts=under_question, leaf=question)
    assert reply.open(facts=under_question, leaf=question) == StaleLeaf(talk.stream)
    newer = reply.other().stream
    assert reply.open(facts=under_question, leaf=newer) == StaleLeaf(newer)  # settled, and newer than the live one


def test_a_settled_stream_is_no_longer_live(talk: Talk) -> None:
    talk.closed()
    answer = Facts(parent=talk.stream, role="user")
    assert talk.other().open(facts=answer, leaf=None) == ParentOpen()  # sealed is not settled
    talk.settle()
    assert isinstance(talk.other().open(facts=answer, leaf=talk.stream), Opened)


def test_a_live_stream_is_no_parent(talk: Talk) -> None:
    talk.opened()
    under = Facts(parent=talk.stream, role="assistant")
    assert talk.other().open(facts=under) == ParentOpen()
    assert talk.other().open(facts=under, fork=True, parent_settled=False) == ParentOpen()
    assert talk.other().open(facts=under, held=1) == ParentOpen()


def test_what_is_neither_settled_nor_live_is_no_parent(talk: Talk) -> None:
    leaf, missing = older_id(), Facts(parent=older_id(), role="assistant")
    assert talk.open(facts=missing, leaf=leaf, fork=True, parent_settled=False) == ParentMissing()
    assert talk.open(facts=missing, leaf=leaf, held=1, parent_settled=False) == ParentMissing()
    assert isinstance(talk.open(facts=missing, leaf=leaf, fork=True), Opened)


def test_a_stale_leaf_comes_before_an_open_or_missing_parent(talk: Talk) -> None:
    talk.opened()
    newer = talk.other()
    newer.opened(fork=True)
    under = Facts(parent=talk.stream, role="assistant")
    assert newer.other().open(facts=under, parent_settled=False) == StaleLeaf(newer.stream)


def test_a_stream_that_was_held_is_not_judged_by_the_leaf(talk: Talk) -> None:
    assert isinstance(talk.open(leaf=older_id(), held=0), Opened)


def test_only_so_many_streams_are_live(talk: Talk) -> None:
    newest = talk
    for _ in range(LIVE_STREAMS_MAX):
        epoch = newest.opened(fork=True)
        newest = newest.other()
    assert newest.open(fork=True) == Full()
    assert newest.open(held=1) == Full()
    assert newest.open(facts=Facts(parent=older_id(), role="tool"), fork=True, parent_settled=False) == ParentMissing()
    assert newest.open() == StaleLeaf(max(live.stream for live in talk.hot.live(talk.key)))
    assert isinstance(talk.open(), Opened)  # known already
    last = Talk(talk.hot, talk.key, talk.hot.live(talk.key)[-1].stream)
    assert isinstance(last.seal(epoch, 0), Sealed)
    assert newest.open(fork=True) == Full()
    last.settle()
    assert isinstance(newest.open(fork=True), Opened)


# --- append ---------------------------------------------------------------------------------------------------


def test_appends_are_accepted_at_the_end(talk: Talk) -> None:
    epoch = talk.opened()
    talk.watch("c1")
    assert talk.append(epoch, 0, b"[1]") == Accepted(1, ("c1",))
    assert talk.append(epoch, 1, b"[]") == Accepted(2, ("c1",))
    assert talk.append(epoch, 2, b"[1]") == Accepted(3, ("c1",))
    assert talk.resume() == Resumed(epoch=epoch, at=0, log=(b"[1]", b"[]", b"[1]"), offset=3, more=False, sealed=False)


def test_the_same_ops_below_the_end_are_a_duplicate_answered_as_at_first(talk: Talk) -> None:
    epoch = talk.written(b"[1]", b"[2]", b"[3]")
    talk.watch("c1")
    for offset, ops in enumerate([b"[1]", b"[2]", b"[3]"]):
        assert talk.append(epoch, offset, ops) == Duplicate(offset + 1, ("c1",))
    assert talk.append(epoch, 3, b"[4]") == Accepted(4, ("c1",))


def test_other_ops_below_the_end_have_diverged(talk: Talk) -> None:
    epoch = talk.written(b"[1]", b"[2]")
    assert talk.append(epoch, 0, b"[2]") == Diverged()
    assert talk.append(epoch, 1, b"[2] ") == Diverged()
    assert talk.append(epoch, 1, b"[2") == Diverged()
    assert talk.append(epoch, 2, b"[3]") == Accepted(3)


def test_above_the_end_is_a_gap(talk: Talk) -> None:
    epoch = talk.written(b"[1]")
    assert talk.append(epoch, 2) == Gap(1)
    assert talk.append(epoch, FAR) == Gap(1)
    assert talk.append(epoch, 1) == Accepted(2)


def test_an_unknown_stream_a_higher_epoch_and_a_stranger_hear_unknown(talk: Talk) -> None:
    assert talk.append(1, 0) == Unknown()
    epoch = talk.opened()
    assert talk.append(epoch + 1, 0) == Unknown()
    assert talk.append(epoch, 0, principal="bob") == Unknown()
    assert talk.append(epoch - 1, 0, principal="bob") == Unknown()
    assert talk.append(epoch - 1, 0) == Fenced()


@pytest.mark.parametrize("is_settled", [False, True])
def test_nothing_is_appended_behind_a_seal(talk: Talk, *, is_settled: bool) -> None:
    epoch = talk.closed(b"[1]", seal=STOPPED)
    if is_settled:
        talk.settle()
    for offset, ops in ((0, b"[1]"), (0, b"[2]"), (1, b"[2]"), (7, b"[2]")):
        assert talk.append(epoch, offset, ops) == Closed(STOPPED)
    assert talk.append(epoch - 1, 1) == Fenced()
    assert talk.append(epoch + 1, 1) == Unknown()
    assert talk.append(epoch, 1, principal="bob") == Unknown()


def test_ops_are_kept_as_the_bytes_they_are(talk: Talk) -> None:
    log = (
        b'[["text",0,"a\\u0000b"]]',
        b"a\x00b\r\n$3\r\n",
        b"\xff\xfe\xed\xa0\x80",
        b"[1.0,9007199254740993,{}]",
        b"",
        bytes(range(256)) * (OPS_BYTES_MAX // 256),
    )
    epoch = talk.written(*log)
    for offset, ops in enumerate(log):
        assert talk.append(epoch, offset, ops) == Duplicate(offset + 1)
    sealed = talk.seal(epoch, len(log))
    assert isinstance(sealed, Sealed)
    assert sealed.log == log


def test_past_the_retentions_end_an_append_is_not_taken_until_its_caller_says_how_that_stands(talk: Talk) -> None:
    now_ms = SystemClock().now_ms()
    epoch = talk.opened(facts=msgspec.structs.replace(ROOT, ends_ms=now_ms - 1))
    assert talk.append(epoch, 0, b"[1]") == PastEnd()
    assert talk.append(epoch, 9, b"[1]") == PastEnd()
    assert talk.append(epoch, 0, b"[1]", principal="bob") == Unknown()
    assert talk.append(epoch, 0, b"[1]", ends_ms=now_ms) == PastEnd()
    assert talk.append(epoch, 0, b"[1]", ends_ms=now_ms + 60_000) == Accepted(1)
    assert talk.append(epoch, 1, b"[2]") == Accepted(2), "that holds from now on"
    # whoever takes it over goes on under the same; a log begun anew goes by what its opening says
    facts = msgspec.structs.replace(ROOT, ends_ms=now_ms)
    epoch = talk.opened(writer=BOB, takeover=True, facts=facts)
    assert talk.append(epoch, 2, b"[3]", principal="bob") == Accepted(3)
    epoch = talk.opened(writer=BOB, held=epoch, facts=facts)
    assert talk.append(epoch, 0, b"[1]", principal="bob") == PastEnd()
    assert talk.append(epoch, 0, b"[1]", principal="bob", ends_ms=None) == Accepted(1)
    assert talk.append(epoch, 1, b"[2]", principal="bob") == Accepted(2)
    assert isinstance(talk.seal(epoch, 2, principal="bob"), Sealed)
    assert isinstance(talk.append(epoch, 2, principal="bob", ends_ms=now_ms), Closed)


def test_before_the_retentions_end_and_without_one_nothing_is_asked(talk: Talk) -> None:
    epoch = talk.opened(facts=msgspec.structs.replace(ROOT, ends_ms=SystemClock().now_ms() + 60_000))
    assert talk.append(epoch, 0) == Accepted(1)
    other = talk.other()
    assert other.append(other.opened(facts=Facts(parent=None, role="assistant"), fork=True), 0) == Accepted(1)


# --- seal and settle ------------------------------------------------------------------------------------------


def test_a_seal_hands_over_all_that_settling_needs(talk: Talk) -> None:
    facts = Facts(parent=None, role="assistant", model="m1", metadata={"n": msgspec.Raw(b"1.0")})
    epoch = talk.opened(facts=facts)
    talk.append(epoch, 0, b"[1]")
    assert talk.seal(epoch, 1, seal=STOPPED) == Sealed(epoch=epoch, seal=STOPPED, facts=facts, log=(b"[1]",))


def test_a_repeated_close_is_answered_as_at_first_with_the_seal_first_set(talk: Talk) -> None:
    epoch = talk.closed(b"[1]", seal=STOPPED)
    again = Sealed(epoch=epoch, seal=STOPPED, facts=ROOT, log=(b"[1]",))
    assert talk.seal(epoch, 1, seal=STOPPED) == again
    assert talk.seal(epoch, 1, seal=COMPLETE) == again
    talk.settle()
    assert talk.seal(epoch, 1) == Sealed(epoch=epoch, seal=STOPPED, facts=ROOT, log=(), settled=True)


def test_a_close_elsewhere_than_at_the_end(talk: Talk) -> None:
    epoch = talk.written(b"[1]", b"[2]")
    assert talk.seal(epoch, 1) == Diverged()
    assert talk.seal(epoch, 3) == Gap(2)
    assert isinstance(talk.seal(epoch, 2), Sealed)
    assert talk.seal(epoch, 1) == Closed(COMPLETE)
    assert talk.seal(epoch, 3) == Closed(COMPLETE)


def test_a_close_is_judged_by_its_writer_first(talk: Talk) -> None:
    assert talk.seal(1, 0) == Unknown()
    epoch = talk.written(b"[1]")
    for is_sealed in (False, True):
        assert talk.seal(epoch + 1, 1) == Unknown()
        assert talk.seal(epoch, 1, principal="bob") == Unknown()
        assert talk.seal(epoch - 1, 1) == Fenced()
        if not is_sealed:
            assert isinstance(talk.seal(epoch, 1), Sealed)


def test_settling_names_the_viewers_and_may_be_repeated(talk: Talk) -> None:
    talk.closed(b"[1]")
    talk.watch("c1")
    assert talk.settle() == ("c1",)
    assert talk.settle() == ("c1",)
    assert talk.hot.live(talk.key) == ()
    assert talk.resume() == Unknown()


def test_settling_what_the_hot_tier_does_not_know_names_the_viewers_and_leaves_nothing(talk: Talk) -> None:
    talk.watch("c1")
    assert talk.settle() == ("c1",)
    assert talk.hot.live(talk.key) == ()
    assert isinstance(talk.open(fork=True), Opened)


def test_a_stream_that_settles_without_a_seal_is_forgotten(talk: Talk) -> None:
    """A failover may bring back a stream from before its seal: it must take no append at an offset of its lost log."""
    epoch = talk.written(b"[1]")
    talk.settle()
    assert talk.append(epoch, 0, b"[2]") == Unknown()
    assert talk.seal(epoch, 0) == Unknown()
    assert talk.hot.live(talk.key) == ()


# --- resume ---------------------------------------------------------------------------------------------------


def test_resume_goes_on_from_any_place_of_the_epoch(talk: Talk) -> None:
    log = (b"[1]", b"[2]", b"[3]")
    epoch = talk.written(*log)
    for at in range(4):
        assert talk.resume(epoch, at) == Resumed(epoch=epoch, at=at, log=log[at:], offset=3, more=False, sealed=False)


def test_resume_from_a_place_that_is_none_starts_over(talk: Talk) -> None:
    epoch = talk.written(b"[1]", b"[2]")
    whole = Resumed(epoch=epoch, at=0, log=(b"[1]", b"[2]"), offset=2, more=False, sealed=False)
    for place in ((0, 0), (0, 1), (epoch - 1, 1), (epoch + 1, 1), (epoch, 3), (epoch, FAR)):
        assert talk.resume(*place) == whole


def test_resume_says_whether_the_stream_is_sealed(talk: Talk) -> None:
    epoch = talk.closed(b"[1]")
    assert talk.resume() == Resumed(epoch=epoch, at=0, log=(b"[1]",), offset=1, more=False, sealed=True)


def test_resume_of_an_unknown_or_settled_stream(talk: Talk) -> None:
    assert talk.resume() == Unknown()
    talk.closed(b"[1]")
    talk.settle()
    assert talk.resume() == Unknown()


def test_a_long_log_is_read_in_pages_without_a_gap(talk: Talk) -> None:
    log = [bytes([65 + i % 26]) * (i * 7 % 400) for i in range(700)]
    epoch = talk.written(*log)
    read: list[bytes] = []
    pages = 0
    while True:
        page = talk.resume(epoch, len(read))
        assert isinstance(page, Resumed)
        assert (page.epoch, page.at, page.offset) == (epoch, len(read), len(read) + len(page.log))
        read += page.log
        pages += 1
        assert sum(map(len, page.log)) <= PAGE_OPS_BYTES_MAX
        assert page.more == (len(read) < len(log))
        if not page.more:
            break
        # as much as fits: the next element would not have
        assert sum(map(len, page.log)) + len(log[len(read)]) > PAGE_OPS_BYTES_MAX
    assert read == log
    assert pages > 1


@pytest.mark.parametrize(
    ("sizes", "taken"),
    [
        ([PAGE_OPS_BYTES_MAX], 1),
        ([PAGE_OPS_BYTES_MAX + 1, 0], 1),
        ([PAGE_OPS_BYTES_MAX + 1], 1),
        ([PAGE_OPS_BYTES_MAX, 0], 2),
        ([PAGE_OPS_BYTES_MAX, 1], 1),
        ([1, PAGE_OPS_BYTES_MAX - 1, 1], 2),
    ],
)
def test_a_page_at_its_bound(talk: Talk, sizes: list[int], taken: int) -> None:
    talk.written(*(b"x" * size for size in sizes))
    page = talk.resume()
    assert isinstance(page, Resumed)
    assert (len(page.log), page.offset, page.more) == (taken, taken, taken < len(sizes))


# --- live streams ---------------------------------------------------------------------------------------------


def test_live_streams_are_told_in_order_with_their_places(talk: Talk) -> None:
    assert talk.hot.live(talk.key) == ()
    parent, newer = older_id(), talk.other()
    newer_epoch = newer.written(b"[1]", b"[2]")
    epoch = talk.opened(facts=Facts(parent=parent, role="tool"), leaf=parent, fork=True)
    first = LiveStream(stream=talk.stream, epoch=epoch, offset=0, parent=parent, role="tool", region=REGION)
    second = LiveStream(stream=newer.stream, epoch=newer_epoch, offset=2, parent=None, role="assistant", region=REGION)
    assert talk.hot.live(talk.key) == (first, second)
    newer_epoch = newer.opened(writer=BOB, takeover=True)
    second = msgspec.structs.replace(second, epoch=newer_epoch)
    assert newer.seal(newer_epoch, 2, principal="bob")
    assert talk.hot.live(talk.key) == (first, second)
    newer.settle()
    assert talk.hot.live(talk.key) == (first,)


# --- isolation ------------------------------------------------------------------------------------------------

HOSTILE = ("a", "a/b", "a}b", "{a}", "#{}/%", "a%2Fb", "%", "ü\U0001f600", "a:live", "a:s:b", " ", "a*")


def test_tenants_and_conversations_meet_nowhere(hot: HotStore) -> None:
    """The same ids under any two of them are different streams with different viewers."""
    run, conversation, stream = new_id(), new_id(), new_id()
    keys = [ConversationKey(f"{run}{tenant}", conversation) for tenant in HOSTILE]
    keys += [ConversationKey(f"{run}a", new_id()), ConversationKey(run, f"a/{conversation}"), ConversationKey("", run)]
    talks = [Talk(hot, key, stream) for key in keys]
    epochs = []
    for number, talk in enumerate(talks):
        epochs.append(talk.opened(held=number))
        talk.watch(f"c{number}")
        assert talk.append(epochs[number], 0, f"[{number}]".encode()) == Accepted(1, (f"c{number}",))
    for number, talk in enumerate(talks):
        page = talk.resume()
        assert isinstance(page, Resumed)
        assert page.log == (f"[{number}]".encode(),)
        assert [live.epoch for live in hot.live(talk.key)] == [epochs[number]]
        assert hot.viewers(talk.key) == (f"c{number}",)


def test_settling_touches_its_own_conversation_only(hot: HotStore) -> None:
    key = new_key()
    one, other = Talk(hot, key), Talk(hot, ConversationKey(f"{key.tenant}/", key.conversation))
    other.stream = one.stream
    epoch = other.written(b"[1]")
    one.closed(b"[2]")
    one.settle()
    assert other.append(epoch, 1) == Accepted(2)
