"""Planning the archive: whatever has fallen due is queued, conversation by conversation.

The index stays the truth. What is planned is given a lease in it, so that it is planned again by itself if its
archiver never comes to an end; the archiver moves it on from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from threadkeep.domain import times
from threadkeep.domain.bounds import ARCHIVE_JOBS_MAX, ARCHIVE_LEASE_MS, ARCHIVE_SHARDS
from threadkeep.ports import DueEntry
from threadkeep.usecases.services import Services

ENTRIES_AT_ONCE: Final = 200
_DAY_MS: Final = 24 * 60 * 60 * 1_000


class Planned(msgspec.Struct, frozen=True):
    """What a run of the planner did.

    Attributes:
        queued: conversations that an archiver will look at.
        moved: those that somebody else has moved meanwhile, or that the index had not forgotten yet.
    """

    queued: int = 0
    moved: int = 0


def plan(services: Services, *, days_back: int) -> Planned:
    """Queue what has fallen due today and on so many days before, the oldest first; at most `ARCHIVE_JOBS_MAX`.

    Raises:
        WarmUnavailable: the table or the queue could not be reached. What was queued by then is; the rest is still due.
    """
    now_ms = services.clock.now_ms()
    lease_ms = now_ms + ARCHIVE_LEASE_MS
    queued = moved = 0
    for entry in _fallen_due(services, now_ms, days_back):
        if queued == ARCHIVE_JOBS_MAX:
            break
        # The lease comes first: should the job then not be sent, it is a day late, and not sent every hour.
        if services.due.refile(entry, due_ms=lease_ms):
            services.archive_queue.send(DueEntry(entry.key, times.to_rfc3339(lease_ms)))
            queued += 1
        else:
            moved += 1
    return Planned(queued, moved)


def _fallen_due(services: Services, now_ms: int, days_back: int) -> Iterator[DueEntry]:
    for day_ms in range(now_ms - days_back * _DAY_MS, now_ms + 1, _DAY_MS):
        day = times.to_rfc3339(day_ms)[: len("2026-11-29")]
        for shard in range(ARCHIVE_SHARDS):
            last: DueEntry | None = None
            while page := services.due.read(day, shard, until_ms=now_ms, limit=ENTRIES_AT_ONCE, after=last):
                yield from page
                last = page[-1]
                if len(page) < ENTRIES_AT_ONCE:
                    break
