"""What every hot tier answers about its deadline index: no stream that was opened is ever forgotten."""

from __future__ import annotations

from tests.support.hot import Lab, Talk, new_key
from threadkeep.domain.bounds import LEASE_MS, STREAM_MS_MAX
from threadkeep.domain.model import ConversationKey
from threadkeep.domain.streams import Due, Seal, Sealed, Unknown

STOPPED = Seal(status="stopped")
SLACK_MS = 3_000
"""For a machine that is busy: the real clock goes on while a test runs."""
MANY = 100_000
"""More entries than all tests leave."""


def _due(talk: Talk) -> list[Due]:
    """The conversation's entries that are due, among those of all tests."""
    return [due for due in talk.hot.due(MANY) if due.key == talk.key]


def test_an_entry_is_due_when_the_first_lease_ends(lab: Lab, talk: Talk) -> None:
    talk.file()
    assert _due(talk) == []
    lab.pass_ms(talk, LEASE_MS - SLACK_MS)
    assert _due(talk) == []
    lab.pass_ms(talk, SLACK_MS)
    (due,) = _due(talk)
    assert (due.key, due.stream) == (talk.key, talk.stream)
    assert _due(talk) == [due]  # it stays until the sweeper says so


def test_filing_again_moves_no_entry_that_is_not_due(lab: Lab, talk: Talk) -> None:
    """Else a producer that opens and opens would never be looked at."""
    talk.file()
    lab.pass_ms(talk, LEASE_MS - SLACK_MS)
    talk.file()
    lab.pass_ms(talk, SLACK_MS)
    assert len(_due(talk)) == 1


def test_an_entry_can_be_put_off_and_removed(lab: Lab, talk: Talk) -> None:
    talk.file()
    lab.pass_ms(talk, LEASE_MS)
    (due,) = _due(talk)
    talk.hot.refile(due, due.at_ms + 60_000)
    assert _due(talk) == []
    lab.pass_ms(talk, 60_000)
    (due,) = _due(talk)
    talk.hot.unfile(due)
    talk.hot.unfile(due)
    lab.pass_ms(talk, STREAM_MS_MAX)
    assert _due(talk) == []


def test_the_oldest_entries_come_first_and_no_more_than_asked_for(lab: Lab, talk: Talk) -> None:
    talks = [Talk(talk.hot) for _ in range(5)]
    for number, each in enumerate(talks):
        each.file()
        lab.pass_ms(each, 40 * 365 * 86_400_000 - number * 60_000)  # before all that other tests have left
    found = talk.hot.due(MANY)
    assert [due.at_ms for due in found] == sorted(due.at_ms for due in found)
    assert talk.hot.due(3) == found[:3]
    mine = [due.key for due in found if due.key in {each.key for each in talks}]
    assert set(mine) == {each.key for each in talks}
    for due in found:
        if due.key in set(mine):
            talk.hot.unfile(due)


def test_entries_of_hostile_names_are_read_back(lab: Lab) -> None:
    for tenant in ("a/b", "a}b{", "%2F", "ü\U0001f600", "", " "):
        talk = Talk(lab.hot, ConversationKey(f"{tenant}{new_key().tenant}{tenant}", new_key().conversation))
        talk.file()
        lab.pass_ms(talk, LEASE_MS)
        (due,) = _due(talk)
        assert due.stream == talk.stream
        lab.hot.unfile(due)
        assert _due(talk) == []


def test_a_crash_between_entry_and_opening_leaves_an_entry_that_goes(lab: Lab, talk: Talk) -> None:
    """The index first: what was never opened is found gone."""
    talk.file()
    lab.pass_ms(talk, LEASE_MS)
    (due,) = _due(talk)
    assert talk.expire() == Unknown()
    talk.hot.unfile(due)
    assert _due(talk) == []


def test_an_opening_just_while_its_old_entry_is_removed_keeps_one(lab: Lab, talk: Talk) -> None:
    """The sweeper reads the entry and finds no stream; it is filed again and opened; the sweeper removes."""
    talk.file()
    lab.pass_ms(talk, LEASE_MS)
    (due,) = _due(talk)
    assert talk.expire() == Unknown()
    talk.file()
    talk.opened()
    talk.hot.unfile(due)
    lab.pass_ms(talk, LEASE_MS)
    assert len(_due(talk)) == 1
    assert isinstance(talk.expire(), Sealed)


def test_settling_leaves_the_entry_to_the_sweeper(lab: Lab, talk: Talk) -> None:
    """A failover may forget the settling and not the entry's removal; so nobody else removes it."""
    talk.file()
    talk.closed(b"[1]")
    talk.settle()
    lab.pass_ms(talk, LEASE_MS)
    (due,) = _due(talk)
    assert talk.expire() == Unknown()
    talk.hot.unfile(due)


def test_a_stream_that_the_index_forgot_is_found_by_going_through_all(lab: Lab, talk: Talk) -> None:
    """A failover of the index's node."""
    settled, sealed, unopened = Talk(talk.hot), Talk(talk.hot), Talk(talk.hot)
    talk.file()
    talk.opened()
    sealed.closed(b"[1]")
    settled.closed(b"[1]")
    settled.settle()
    unopened.stop(STOPPED)
    lab.lose_entry(talk)
    found = list(talk.hot.scan_live())
    assert (talk.key, talk.stream) in found
    assert (sealed.key, sealed.stream) in found
    assert not {settled.key, unopened.key} & {key for key, _ in found}
    talk.file()
    lab.pass_ms(talk, LEASE_MS)
    assert len(_due(talk)) == 1
