"""Sweeping: what nobody writes any more is ended with what it has (docs/protocol.md, section 3.3).

The deadline index names every stream that was ever opened until a sweep finds it gone. Only the sweeper moves or
removes its entries; a stream itself is judged in one step where it lies.
"""

from __future__ import annotations

from typing import Final

import msgspec

from threadkeep import telemetry
from threadkeep.domain import streams
from threadkeep.domain.bounds import LEASE_MS
from threadkeep.usecases.live_elsewhere import tell_ended
from threadkeep.usecases.services import Services
from threadkeep.usecases.settling import end_due

ENTRIES_AT_ONCE: Final = 100


class Swept(msgspec.Struct, frozen=True):
    """What a sweep did."""

    looked_at: int = 0
    ended: int = 0
    failed: int = 0

    def __add__(self, other: Swept) -> Swept:
        return Swept(self.looked_at + other.looked_at, self.ended + other.ended, self.failed + other.failed)


def sweep(services: Services) -> Swept:
    """Look at the oldest entries that are due, a bounded number of them.

    Raises:
        HotUnavailable: the index cannot be read.
    """
    total = Swept()
    for due in services.hot.due(ENTRIES_AT_ONCE):
        total += _look_at(services, due)
    return total


def _look_at(services: Services, due: streams.Due) -> Swept:
    # From now, not from when it was due: after a long pause entries that cannot be ended would stay the oldest, and
    # keep all others from being looked at. And before anything else: one whose ending takes longer than a sweep may,
    # or kills it, is behind the others at the next.
    later_ms = max(due.at_ms, services.clock.now_ms()) + LEASE_MS
    services.hot.refile(due, later_ms)
    verdict = services.hot.expire(due.key, due.stream)
    if isinstance(verdict, streams.Alive):
        services.hot.refile(due, verdict.until_ms)
        return Swept(looked_at=1)
    if isinstance(verdict, streams.Unknown):
        if tell_ended(services, due.key, due.stream):  # else other regions still have to hear that it is gone
            services.hot.unfile(msgspec.structs.replace(due, at_ms=later_ms))
        return Swept(looked_at=1)
    try:
        is_ended = end_due(services, due.key, due.stream, verdict) is not None
    except Exception as error:  # noqa: BLE001 -- one stream that cannot be ended now keeps no other waiting
        telemetry.note_fault("A stream cannot be ended; its seal and its entry stay", error)
        return Swept(looked_at=1, failed=1)
    # Not removed yet: a failover may bring the stream back from before its end. A later pass finds it gone.
    return Swept(looked_at=1, ended=int(is_ended))


def file_forgotten(services: Services) -> int:
    """Enter every live stream in the index again: what a failover of the index forgot. Once a day; how many."""
    count = 0
    for key, stream in services.hot.scan_live():
        services.hot.file(key, stream)
        count += 1
    return count
