"""What every hot tier answers about the end of a stream that its writer does not bring: a stop, time, size."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.hot import ANN, COMPLETE, ROOT, Lab, Talk, new_id
from threadkeep.domain.bounds import (
    LEASE_MS,
    OPS_BYTES_MAX,
    SEAL_OLD_MS,
    SILENT_MS,
    STREAM_BYTES_MAX,
    STREAM_MS_MAX,
)
from threadkeep.domain.leaf import Claimed
from threadkeep.domain.model import ConversationKey
from threadkeep.domain.streams import (
    BEAT,
    DEAD,
    SILENT,
    TOO_LONG,
    Accepted,
    Alive,
    Closed,
    Duplicate,
    Gap,
    Limits,
    Opened,
    Resumed,
    Seal,
    Sealed,
    SealedUnopened,
    TooLarge,
    Unknown,
    Writer,
)

BOB = Writer("bob", "run-2")
STOPPED = Seal(status="stopped")
SLACK_MS = 3_000
"""For a machine that is busy: the real clock goes on while a test runs."""


# --- a stop ---------------------------------------------------------------------------------------------------


def test_a_stop_seals_whoever_holds_the_stream(talk: Talk) -> None:
    talk.written(b"[1]")
    epoch = talk.opened(writer=BOB, takeover=True)
    stopped = Sealed(epoch=epoch, seal=STOPPED, facts=ROOT, log=(b"[1]",))
    assert talk.stop(STOPPED) == stopped
    assert talk.append(epoch, 1, principal="bob") == Closed(STOPPED)  # told by its next append
    assert talk.seal(epoch, 1, principal="bob") == Closed(STOPPED)
    assert talk.open(writer=ANN, takeover=True) == Closed(STOPPED)


def test_a_stop_that_is_repeated_is_answered_alike(talk: Talk) -> None:
    epoch = talk.written(b"[1]")
    stopped = Sealed(epoch=epoch, seal=STOPPED, facts=ROOT, log=(b"[1]",))
    assert talk.stop(STOPPED) == stopped
    assert talk.stop(Seal(status="failed")) == stopped


def test_a_stop_after_the_end_changes_nothing(talk: Talk) -> None:
    epoch = talk.closed(b"[1]")
    assert talk.stop(STOPPED) == Sealed(epoch=epoch, seal=COMPLETE, facts=ROOT, log=(b"[1]",))
    talk.settle()
    assert talk.stop(STOPPED) == Sealed(epoch=epoch, seal=COMPLETE, facts=ROOT, log=(), settled=True)


def test_a_close_of_before_the_stop_is_not_taken_for_its_own(talk: Talk) -> None:
    epoch = talk.written(b"[1]")
    talk.stop(STOPPED)
    for offset in (0, 1, 2):
        assert talk.seal(epoch, offset) == Closed(STOPPED)


def test_a_stop_before_the_opening_waits_for_it(talk: Talk) -> None:
    assert talk.stop(STOPPED) == SealedUnopened()
    assert talk.stop(Seal(status="failed")) == SealedUnopened()
    for options in ({}, {"takeover": True}, {"held": 7}, {"fork": True}):
        assert talk.open(**options) == Closed(STOPPED)
    assert talk.append(1, 0) == Unknown()
    assert talk.seal(1, 0) == Unknown()
    assert talk.resume() == Unknown()
    assert talk.expire() == Unknown()
    assert talk.hot.live(talk.key) == ()
    assert talk.key not in {key for key, _ in talk.hot.scan_live()}


def test_a_stop_is_of_one_stream(talk: Talk) -> None:
    other = talk.other()
    other.opened(fork=True)
    talk.stop(STOPPED)
    assert isinstance(other.append(other.opened(), 0), Accepted)
    foreign = Talk(talk.hot, ConversationKey(f"{talk.key.tenant}/", talk.key.conversation), talk.stream)
    assert isinstance(foreign.open(), Opened)


# --- time -----------------------------------------------------------------------------------------------------


def test_an_unknown_stream_has_nothing_to_expire(talk: Talk) -> None:
    assert talk.expire() == Unknown()


def test_a_stream_lives_until_its_lease_ends(lab: Lab, talk: Talk) -> None:
    epoch = talk.written(b"[1]")
    alive = talk.expire()
    assert isinstance(alive, Alive)
    lab.pass_ms(talk, LEASE_MS - SLACK_MS)
    assert isinstance(talk.expire(), Alive)
    assert isinstance(talk.append(epoch, 1, b"[2]"), Accepted)
    lab.pass_ms(talk, LEASE_MS - SLACK_MS)
    assert isinstance(talk.expire(), Alive)


@pytest.mark.parametrize("sign", ["append", "beat", "duplicate", "open", "takeover"])
def test_every_sign_of_life_keeps_it_alive(lab: Lab, talk: Talk, sign: str) -> None:
    epoch = talk.written(b"[1]")
    lab.pass_ms(talk, LEASE_MS)
    signs: dict[str, Callable[[], object]] = {
        "append": lambda: talk.append(epoch, 1, b"[2]"),
        "beat": lambda: talk.append(epoch, 1, BEAT),
        "duplicate": lambda: talk.append(epoch, 0, b"[1]"),
        "open": talk.open,
        "takeover": lambda: talk.open(writer=BOB, takeover=True),
    }
    signs[sign]()
    alive = talk.expire()
    assert isinstance(alive, Alive)
    lab.pass_ms(talk, LEASE_MS)
    assert isinstance(talk.expire(), Sealed)


def test_a_dead_stream_is_interrupted_with_what_it_has(lab: Lab, talk: Talk) -> None:
    epoch = talk.written(b"[1]", b"[2]")
    lab.pass_ms(talk, LEASE_MS)
    assert talk.expire() == Sealed(epoch=epoch, seal=DEAD, facts=ROOT, log=(b"[1]", b"[2]"))
    assert DEAD.status == "interrupted"
    assert talk.append(epoch, 2) == Closed(DEAD)
    assert talk.seal(epoch, 2) == Closed(DEAD)
    assert isinstance(talk.expire(), Alive)  # somebody is settling it just now


def test_a_long_tool_call_is_not_death(lab: Lab, talk: Talk) -> None:
    """Minutes without content, but with beats."""
    epoch = talk.written(b"[1]")
    offset = 1
    for _ in range(9):
        lab.pass_ms(talk, LEASE_MS - SLACK_MS)
        assert isinstance(talk.expire(), Alive)
        assert talk.append(epoch, offset, BEAT) == Accepted(offset + 1)
        offset += 1
    assert talk.append(epoch, offset, b"[2]") == Accepted(offset + 1)


def test_beats_without_content_fail_as_silent(lab: Lab, talk: Talk) -> None:
    epoch = talk.written(b"[1]")
    lab.pass_ms(talk, SILENT_MS - SLACK_MS)
    talk.append(epoch, 1, BEAT)
    assert isinstance(talk.expire(), Alive)
    lab.pass_ms(talk, SLACK_MS)
    talk.append(epoch, 2, BEAT)
    talk.append(epoch, 0, b"[1]")  # nor is a repeated append content
    assert talk.expire() == Sealed(epoch=epoch, seal=SILENT, facts=ROOT, log=(b"[1]", BEAT, BEAT))
    assert (SILENT.status, bytes((SILENT.error or {})["code"])) == ("failed", b'"silent"')


def test_a_model_that_never_speaks_fails_as_silent(lab: Lab, talk: Talk) -> None:
    epoch = talk.opened()
    lab.pass_ms(talk, SILENT_MS)
    talk.append(epoch, 0, BEAT)
    talk.open()  # a repeated open is no content either
    assert talk.expire() == Sealed(epoch=epoch, seal=SILENT, facts=ROOT, log=(BEAT,))


def test_content_and_a_new_run_begin_the_silence_anew(lab: Lab, talk: Talk) -> None:
    epoch = talk.opened()
    lab.pass_ms(talk, SILENT_MS)
    talk.append(epoch, 0, b"[1]")
    assert isinstance(talk.expire(), Alive)
    lab.pass_ms(talk, SILENT_MS)
    epoch = talk.opened(writer=BOB, takeover=True)
    assert isinstance(talk.expire(), Alive)
    lab.pass_ms(talk, SILENT_MS)
    talk.opened(writer=BOB, held=epoch)
    assert isinstance(talk.expire(), Alive)


def test_no_stream_goes_on_for_ever(lab: Lab, talk: Talk) -> None:
    talk.opened()
    lab.pass_ms(talk, STREAM_MS_MAX - SLACK_MS)
    epoch = talk.opened(writer=BOB, takeover=True)  # a new run gets no more time in all
    epoch = talk.opened(writer=BOB, held=epoch)
    talk.append(epoch, 0, b"[1]", principal="bob")
    assert isinstance(talk.expire(), Alive)
    lab.pass_ms(talk, SLACK_MS)
    talk.append(epoch, 1, b"[2]", principal="bob")
    assert talk.expire() == Sealed(epoch=epoch, seal=TOO_LONG, facts=ROOT, log=(b"[1]", b"[2]"))
    assert (TOO_LONG.status, bytes((TOO_LONG.error or {})["code"])) == ("failed", b'"too_long"')


def test_what_is_dead_is_not_silent(lab: Lab, talk: Talk) -> None:
    talk.written(b"[1]")
    lab.pass_ms(talk, STREAM_MS_MAX)
    sealed = talk.expire()
    assert isinstance(sealed, Sealed)
    assert sealed.seal == DEAD


def test_it_says_when_to_look_again(lab: Lab, talk: Talk) -> None:
    epoch = talk.opened()
    beaten = talk.expire()
    lab.pass_ms(talk, SILENT_MS - LEASE_MS // 2)
    talk.append(epoch, 0, BEAT)
    silent_soon = talk.expire()
    assert isinstance(beaten, Alive)
    assert isinstance(silent_soon, Alive)
    lab.pass_ms(talk, 1_000)
    talk.append(epoch, 1, BEAT)
    again = talk.expire()
    assert isinstance(again, Alive)
    # by then it is silent, beats or not: sooner than its lease ends; moved back with the time that passed, or not
    assert again.until_ms in {silent_soon.until_ms, silent_soon.until_ms - 1_000}


# --- seals left behind ----------------------------------------------------------------------------------------


def test_an_acknowledged_append_is_in_the_seal_or_the_append_is_refused(lab: Lab, talk: Talk) -> None:
    """A sweep finds the stream dead, its producer wakes and appends: judged again it lives; once sealed, refused."""
    epoch = talk.written(b"[1]")
    lab.pass_ms(talk, LEASE_MS)
    page = talk.resume()
    assert isinstance(page, Resumed)
    assert page.is_due  # what a sweeper that read first and judged later would have seen
    assert talk.append(epoch, 1, b"[2]") == Accepted(2)
    assert isinstance(talk.expire(), Alive)
    lab.pass_ms(talk, LEASE_MS)
    sealed = talk.expire()
    assert isinstance(sealed, Sealed)
    assert sealed.log == (b"[1]", b"[2]")
    assert talk.append(epoch, 2, b"[3]") == Closed(DEAD)


@pytest.mark.parametrize("ended", [COMPLETE, STOPPED, DEAD])
def test_whoever_finds_an_old_seal_finishes_it_as_it_says(lab: Lab, talk: Talk, ended: Seal) -> None:
    """A close, stop or sweep dies between seal and put."""
    epoch = talk.written(b"[1]")
    if ended == COMPLETE:
        talk.seal(epoch, 1)
    elif ended == STOPPED:
        talk.stop(STOPPED)
    else:
        lab.pass_ms(talk, LEASE_MS)
        talk.expire()
    assert isinstance(talk.expire(), Alive)
    lab.pass_ms(talk, SEAL_OLD_MS)
    found = Sealed(epoch=epoch, seal=ended, facts=ROOT, log=(b"[1]",))
    assert talk.expire() == found
    assert talk.expire() == found  # a failed put leaves the seal: no second one, no other status
    lab.pass_ms(talk, STREAM_MS_MAX)
    assert talk.expire() == found
    talk.settle()
    assert talk.expire() == Unknown()


def test_a_stream_that_a_failover_brings_back_from_before_its_seal_ends_again(lab: Lab, talk: Talk) -> None:
    epoch = talk.closed(b"[1]")
    talk.settle()
    lab.lose(talk)
    back = talk.written(b"[1]", held=epoch)
    lab.pass_ms(talk, LEASE_MS)
    assert talk.expire() == Sealed(epoch=back, seal=DEAD, facts=ROOT, log=(b"[1]",))


# --- what readers are told ------------------------------------------------------------------------------------


def _is_due(talk: Talk) -> bool:
    page = talk.resume()
    (live,) = talk.hot.live(talk.key)
    assert isinstance(page, Resumed)
    assert page.is_due == live.is_due
    return page.is_due


def test_a_reader_is_told_of_a_dead_stream(lab: Lab, talk: Talk) -> None:
    epoch = talk.written(b"[1]")
    assert not _is_due(talk)
    lab.pass_ms(talk, LEASE_MS)
    assert _is_due(talk)
    talk.append(epoch, 1, BEAT)
    assert not _is_due(talk)
    lab.pass_ms(talk, SILENT_MS)
    talk.append(epoch, 2, BEAT)
    assert _is_due(talk)


def test_a_reader_is_told_of_an_old_seal(lab: Lab, talk: Talk) -> None:
    talk.closed(b"[1]")
    assert not _is_due(talk)
    lab.pass_ms(talk, SEAL_OLD_MS)
    assert _is_due(talk)


# --- size -----------------------------------------------------------------------------------------------------


def test_a_stream_grows_to_its_bound_and_no_further(talk: Talk) -> None:
    piece = b"x" * OPS_BYTES_MAX
    count = STREAM_BYTES_MAX // OPS_BYTES_MAX
    epoch = talk.written(*[piece] * (count - 1), piece[:-1])
    assert talk.append(epoch, count, b"[]") == TooLarge()
    assert talk.append(epoch, count, b"1") == Accepted(count + 1)
    assert talk.append(epoch, count + 1, b"1") == TooLarge()
    assert talk.append(epoch, count, b"1") == Duplicate(count + 1)
    assert talk.append(epoch, count + 2, b"1") == Gap(count + 1)
    failed = Seal(status="failed")
    sealed = talk.stop(failed)
    assert isinstance(sealed, Sealed)
    assert sum(map(len, sealed.log)) == STREAM_BYTES_MAX
    assert talk.append(epoch, count + 1, b"1") == Closed(failed)


def test_a_log_that_begins_anew_has_all_its_room_and_a_kept_one_what_is_left(talk: Talk) -> None:
    piece = b"x" * OPS_BYTES_MAX
    count = STREAM_BYTES_MAX // OPS_BYTES_MAX
    epoch = talk.written(*[piece] * count)
    taken = talk.opened(writer=BOB, takeover=True)
    assert talk.append(taken, count, b"1", principal="bob") == TooLarge()
    assert talk.open(held=epoch) != Opened(epoch, 0)  # fenced
    anew = talk.opened(writer=BOB, held=taken)
    assert talk.append(anew, 0, b"1", principal="bob") == Accepted(1)


# --- limits of one's own --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (Limits(lease_ms=0), DEAD),
        (Limits(silent_ms=0), SILENT),
        (Limits(stream_ms_max=0), TOO_LONG),
        (Limits(seal_old_ms=0), COMPLETE),
    ],
)
def test_every_time_can_be_set(lab: Lab, limits: Limits, expected: Seal) -> None:
    talk = Talk(lab.limited(limits))
    if expected == COMPLETE:
        talk.closed(b"[1]")
    else:
        talk.written(b"[1]")
    sealed = talk.expire()
    assert isinstance(sealed, Sealed)
    assert (sealed.seal, sealed.log) == (expected, (b"[1]",))


def test_size_and_the_time_of_a_claim_can_be_set(lab: Lab) -> None:
    talk = Talk(lab.limited(Limits(stream_bytes_max=4, claim_void_ms=0)))
    assert talk.claim(new_id(), None, confirmed=None) == Claimed()
    assert talk.claim(new_id(), None, confirmed=None) == Claimed()
    epoch = talk.opened()
    assert talk.append(epoch, 0, b"[12]") == Accepted(1)
    assert talk.append(epoch, 1, b"") == Accepted(2)
    assert talk.append(epoch, 2, b"1") == TooLarge()
