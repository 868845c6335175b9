"""What every `threadkeep.ports.DueList` does alike: in memory, and on DynamoDB's own API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.support.conversations import NOW_MS, conversation
from tests.support.moto_table import TABLE, empty_table, moto_clients
from threadkeep.domain import times
from threadkeep.domain.bounds import ARCHIVE_SHARDS, RETENTION_MARGIN_MS
from threadkeep.domain.model import ConversationKey
from threadkeep.ports import DueEntry, DueList, WarmStore
from threadkeep.stores.bodies_memory import BodiesMemory
from threadkeep.stores.due_dynamodb import DueDynamoDB
from threadkeep.stores.due_memory import DueMemory
from threadkeep.stores.warm_dynamodb import WarmDynamoDB
from threadkeep.stores.warm_memory import WarmMemory

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

HOUR_MS = 3_600_000
IDLE_MS = 30 * HOUR_MS
SLACK_MS = HOUR_MS
"""By which an entry is late, as a thirtieth of the idle time."""
TENANT = "a#b é"
LATER_MS = NOW_MS + 10 * IDLE_MS


class Table(msgspec.Struct, frozen=True):
    warm: WarmStore
    due: DueList


@pytest.fixture(scope="module")
def client() -> Iterator[DynamoDBClient]:
    with moto_clients() as (made, _):
        yield made


@pytest.fixture(params=["memory", "dynamodb"])
def table(request: pytest.FixtureRequest) -> Table:
    if request.param == "memory":
        memory = WarmMemory(idle_ms=IDLE_MS)
        return Table(memory, DueMemory(memory))
    client = request.getfixturevalue("client")
    empty_table(client)
    return Table(WarmDynamoDB(client, TABLE, BodiesMemory(), idle_ms=IDLE_MS), DueDynamoDB(client, TABLE))


def create(table: Table, *, now_ms: int = NOW_MS) -> ConversationKey:
    new = conversation(now_ms=now_ms)
    assert table.warm.create_conversation(TENANT, new) is None
    return ConversationKey(TENANT, new.id)


def day_of(ms: int) -> str:
    return times.to_rfc3339(ms)[:10]


def entries(table: Table, ms: int, *, until_ms: int = LATER_MS, limit: int = 100) -> dict[int, tuple[DueEntry, ...]]:
    """What is filed under the day of that time, by shard."""
    found = {
        shard: table.due.read(day_of(ms), shard, until_ms=until_ms, limit=limit, after=None)
        for shard in range(ARCHIVE_SHARDS)
    }
    return {shard: own for shard, own in found.items() if own}


def only_entry(table: Table, ms: int) -> DueEntry:
    """The one entry of that day."""
    ((entry,),) = entries(table, ms).values()
    return entry


def test_a_new_conversation_falls_due_a_little_after_its_idle_time_and_names_its_tenant(table: Table) -> None:
    key = create(table)
    due_ms = NOW_MS + IDLE_MS + SLACK_MS
    assert only_entry(table, due_ms) == DueEntry(key, times.to_rfc3339(due_ms))
    assert entries(table, due_ms, until_ms=due_ms) == entries(table, due_ms)
    assert entries(table, due_ms, until_ms=due_ms - 1) == {}
    assert entries(table, due_ms - 24 * HOUR_MS) == {}


def test_activity_does_not_move_an_entry(table: Table) -> None:
    key = create(table)
    due_ms = NOW_MS + IDLE_MS + SLACK_MS
    filed = only_entry(table, due_ms)
    table.warm.touch(key, now_ms=NOW_MS + 24 * HOUR_MS)
    assert only_entry(table, due_ms) == filed


def test_a_shard_is_read_page_by_page_the_oldest_first(table: Table) -> None:
    noon_ms = NOW_MS - NOW_MS % (24 * HOUR_MS) + 12 * HOUR_MS
    made = {create(table, now_ms=noon_ms + number // 2) for number in range(60)}
    due_ms = noon_ms + IDLE_MS + SLACK_MS
    seen: list[DueEntry] = []
    for shard, whole in entries(table, due_ms).items():
        own: list[DueEntry] = []
        while page := table.due.read(day_of(due_ms), shard, until_ms=LATER_MS, limit=2, after=own[-1] if own else None):
            assert len(page) <= 2
            own += page
        assert len(set(own)) == len(own)
        assert sorted(own, key=lambda entry: entry.due_at) == own
        assert set(own) == set(whole)
        seen += own
    assert {entry.key for entry in seen} == made


def test_an_entry_is_moved_to_another_day(table: Table) -> None:
    key = create(table)
    due_ms = NOW_MS + IDLE_MS + SLACK_MS
    later_ms = due_ms + 24 * HOUR_MS
    assert table.due.refile(only_entry(table, due_ms), due_ms=later_ms)
    assert entries(table, due_ms) == {}
    assert only_entry(table, later_ms) == DueEntry(key, times.to_rfc3339(later_ms))
    assert table.warm.read_active_at(key) == times.to_rfc3339(NOW_MS)


def test_an_entry_is_taken_out_until_the_conversation_wakes_up(table: Table) -> None:
    key = create(table)
    due_ms = NOW_MS + IDLE_MS + SLACK_MS
    assert table.due.refile(only_entry(table, due_ms), due_ms=None)
    assert entries(table, due_ms) == {}
    assert table.warm.read_active_at(key) == times.to_rfc3339(NOW_MS)
    woken_ms = NOW_MS + 48 * HOUR_MS
    table.warm.touch(key, now_ms=woken_ms)
    due_ms = woken_ms + IDLE_MS + SLACK_MS
    assert only_entry(table, due_ms) == DueEntry(key, times.to_rfc3339(due_ms))


@pytest.mark.parametrize("to_ms", [None, NOW_MS])
def test_an_entry_that_has_moved_since_stays_where_it_is(table: Table, to_ms: int | None) -> None:
    create(table)
    due_ms = NOW_MS + IDLE_MS + SLACK_MS
    old = only_entry(table, due_ms)
    assert table.due.refile(old, due_ms=due_ms + HOUR_MS)
    moved = only_entry(table, due_ms + HOUR_MS)
    assert not table.due.refile(old, due_ms=to_ms)
    assert only_entry(table, due_ms + HOUR_MS) == moved
    assert table.due.refile(moved, due_ms=None)
    assert not table.due.refile(moved, due_ms=to_ms)
    assert entries(table, due_ms + HOUR_MS) == {}


def test_an_entry_stays_where_there_was_activity_that_nobody_had_seen(table: Table) -> None:
    key = create(table)
    due_ms = NOW_MS + IDLE_MS + SLACK_MS
    entry = only_entry(table, due_ms)
    table.warm.touch(key, now_ms=due_ms)  # it has rested: the archive may be through with it just now
    assert not table.due.refile(entry, due_ms=None)
    assert entries(table, due_ms) == {}
    filed = only_entry(table, due_ms + IDLE_MS + SLACK_MS)
    assert filed == DueEntry(key, times.to_rfc3339(due_ms + IDLE_MS + SLACK_MS))
    assert table.due.refile(filed, due_ms=None)


@pytest.mark.parametrize("taken_out", [True, False])
def test_one_that_wakes_up_falls_due_by_the_end_of_its_retention_where_that_is_told(
    table: Table, *, taken_out: bool
) -> None:
    key = create(table)
    due_ms = NOW_MS + IDLE_MS + SLACK_MS
    if taken_out:
        assert table.due.refile(only_entry(table, due_ms), due_ms=None)
    ends_ms = due_ms + HOUR_MS
    table.warm.touch(key, now_ms=due_ms, ends_ms=ends_ms)
    assert only_entry(table, ends_ms) == DueEntry(key, times.to_rfc3339(ends_ms + RETENTION_MARGIN_MS))


def test_nothing_is_filed_for_what_is_not_there(table: Table) -> None:
    entry = DueEntry(ConversationKey(TENANT, "01a0c450-6c00-7745-89d2-49210750a2df"), times.to_rfc3339(NOW_MS))
    assert not table.due.refile(entry, due_ms=NOW_MS + HOUR_MS)
    assert not table.due.refile(entry, due_ms=None)
    assert table.warm.read_active_at(entry.key) is None
    assert entries(table, NOW_MS + HOUR_MS) == {}
