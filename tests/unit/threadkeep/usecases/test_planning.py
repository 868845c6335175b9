"""What falls due is queued once, today's and yesterday's every hour, older days' once a day."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.conversations import conversation
from tests.support.house import House, house
from threadkeep.domain import times
from threadkeep.domain.bounds import ARCHIVE_DAYS_BACK_MAX, ARCHIVE_LEASE_MS
from threadkeep.domain.errors import WarmUnavailable
from threadkeep.domain.model import ConversationKey
from threadkeep.ports import DueEntry
from threadkeep.usecases import planning
from threadkeep.usecases.planning import Planned, plan

__all__ = ["house"]

DAY_MS = 24 * 60 * 60 * 1_000
DUE_MS = 31 * DAY_MS


def create(house: House, *, tenant: str = "acme") -> ConversationKey:
    """A conversation that nobody says anything in."""
    new = conversation(now_ms=house.clock.ms)
    house.clock.ms += 1
    assert house.warm.create_conversation(tenant, new) is None
    return ConversationKey(tenant, new.id)


def queued(house: House) -> list[DueEntry]:
    return [msgspec.convert(job, DueEntry) for job in house.archive_queue.take()]


def test_what_has_fallen_due_is_queued_with_the_lease_that_it_now_has(house: House) -> None:
    keys = {create(house, tenant=tenant) for tenant in ("acme", "a#b é") for _ in range(20)}
    house.clock.ms += DUE_MS
    fresh = create(house)
    assert plan(house.services, days_back=1) == Planned(queued=40)
    lease = times.to_rfc3339(house.clock.ms + ARCHIVE_LEASE_MS)
    jobs = queued(house)
    assert len(jobs) == 40
    assert set(jobs) == {DueEntry(key, lease) for key in keys}
    assert {house.warm.due_at[key] for key in keys} == {lease}
    assert fresh in house.warm.due_at


def test_it_is_queued_again_only_a_day_later_if_no_archiver_has_come_to_an_end(house: House) -> None:
    key = create(house)
    house.clock.ms += DUE_MS
    plan(house.services, days_back=1)
    (first,) = queued(house)
    for _ in range(23):
        house.clock.ms += 3_600_000
        assert plan(house.services, days_back=1) == Planned()
    house.clock.ms += 3_600_000
    assert plan(house.services, days_back=1) == Planned(queued=1)
    (second,) = queued(house)
    assert second.key == first.key == key
    assert second.due_at > first.due_at


@pytest.mark.parametrize(("days_back", "found"), [(1, 0), (ARCHIVE_DAYS_BACK_MAX, 1)])
def test_what_was_missed_for_days_is_found_by_the_deep_look(house: House, days_back: int, found: int) -> None:
    create(house)
    house.clock.ms += DUE_MS + ARCHIVE_DAYS_BACK_MAX * DAY_MS
    assert plan(house.services, days_back=days_back) == Planned(queued=found)


def test_what_fell_due_late_yesterday_is_found_today(house: House) -> None:
    midnight_ms = house.clock.ms - house.clock.ms % DAY_MS
    house.clock.ms = midnight_ms - 1
    create(house)
    house.clock.ms = midnight_ms + DUE_MS + DAY_MS - 2
    assert plan(house.services, days_back=1) == Planned(queued=1)


def test_shards_of_more_than_a_page_are_read_to_their_end(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "ENTRIES_AT_ONCE", 2)
    keys = {create(house) for _ in range(100)}
    house.clock.ms += DUE_MS
    assert plan(house.services, days_back=1) == Planned(queued=100)
    assert {entry.key for entry in queued(house)} == keys


def test_one_run_queues_so_many_and_the_next_goes_on(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "ARCHIVE_JOBS_MAX", 7)
    keys = {create(house) for _ in range(10)}
    house.clock.ms += DUE_MS
    assert [plan(house.services, days_back=1).queued for _ in range(3)] == [7, 3, 0]
    assert {entry.key for entry in queued(house)} == keys


def test_what_somebody_has_moved_meanwhile_is_left_to_them(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    key = create(house)
    house.clock.ms += DUE_MS
    entry = DueEntry(key, house.warm.due_at[key])
    assert house.due.refile(entry, due_ms=house.clock.ms + 1)
    monkeypatch.setattr(house.due, "read", lambda *_, after, **__: () if after else (entry,))  # an index that lags
    planned = plan(house.services, days_back=0)
    assert planned.queued == 0
    assert planned.moved > 0
    assert queued(house) == []


def test_a_queue_that_is_away_fails_the_run_and_no_entry_is_lost(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {create(house) for _ in range(5)}
    house.clock.ms += DUE_MS
    with monkeypatch.context() as away:

        def send(*_: object, **__: object) -> None:
            raise WarmUnavailable("away")

        away.setattr(house.archive_queue, "send", send)
        with pytest.raises(WarmUnavailable):
            plan(house.services, days_back=1)
    assert plan(house.services, days_back=1) == Planned(queued=4)
    house.clock.ms += ARCHIVE_LEASE_MS
    plan(house.services, days_back=1)
    assert {entry.key for entry in queued(house)} == keys
