"""A table that meters each of its partitions, and functions that take so many requests at a time and no more."""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from threadkeep.domain.errors import WarmThrottled
from threadkeep.domain.json_values import encode
from threadkeep.domain.model import ConversationKey, StoredMessage
from threadkeep.ports import Clock, MessagePage
from threadkeep.stores.warm_memory import WarmMemory

READ_UNITS_A_S: Final = 3_000
WRITE_UNITS_A_S: Final = 1_000
"""What one partition takes, whatever the table's mode (DynamoDB developer guide, "Best practices for designing and
using partition keys effectively", recalled 2026-11-29)."""
_READ_UNIT_BYTES: Final = 4 * 1024
_WRITE_UNIT_BYTES: Final = 1024
_SECOND_MS: Final = 1_000


class Meter:
    """What each partition has taken in this second.

    Args:
        clock: the time.
        partition_of: what shares a partition; a conversation has one of its own.

    Attributes:
        throttled: refused calls, by partition.
        peak: the most write units that a partition took in one second.
    """

    def __init__(self, clock: Clock, partition_of: Callable[[ConversationKey], Any] = lambda key: key) -> None:
        self.throttled: Counter[Any] = Counter()
        self.peak: Counter[Any] = Counter()
        self._clock = clock
        self._partition_of = partition_of
        self._second = 0
        self._read: Counter[Any] = Counter()
        self._written: Counter[Any] = Counter()

    def write(self, key: ConversationKey, size_bytes: int) -> None:
        """Raises `WarmThrottled`."""
        self._take(self._written, WRITE_UNITS_A_S, key, -(-size_bytes // _WRITE_UNIT_BYTES))
        partition = self._partition_of(key)
        self.peak[partition] = max(self.peak[partition], self._written[partition])

    def read(self, key: ConversationKey, size_bytes: int) -> None:
        """Raises `WarmThrottled`."""
        self._take(self._read, READ_UNITS_A_S, key, -(-size_bytes // _READ_UNIT_BYTES))

    def _take(self, taken: Counter[Any], most: int, key: ConversationKey, units: int) -> None:
        second = self._clock.now_ms() // _SECOND_MS
        if second != self._second:
            self._second = second
            self._read.clear()
            self._written.clear()
        partition = self._partition_of(key)
        if taken[partition] + units > most:
            self.throttled[partition] += 1
            raise WarmThrottled("the partition has taken all that it takes in a second")
        taken[partition] += units


class MeteredTable(WarmMemory):
    """A table in memory that throttles a partition beyond what it takes in a second."""

    def __init__(self, meter: Meter) -> None:
        super().__init__()
        self._meter = meter

    def put_message(self, tenant: str, stored: StoredMessage) -> StoredMessage | None:
        """See `WarmStore`."""
        self._meter.write(ConversationKey(tenant, stored.message.conversation), len(encode(stored.message.parts)))
        return super().put_message(tenant, stored)

    def touch(self, key: ConversationKey, *, now_ms: int, ends_ms: int | None = None) -> None:
        """See `WarmStore`. A refused condition costs as much as a write."""
        self._meter.write(key, 1)
        super().touch(key, now_ms=now_ms, ends_ms=ends_ms)

    def read_head(self, key: ConversationKey) -> Any:
        """See `WarmStore`."""
        self._meter.read(key, 1)
        return super().read_head(key)

    def read_message(self, key: ConversationKey, message: str) -> StoredMessage | None:
        """See `WarmStore`."""
        found = super().read_message(key, message)
        self._meter.read(key, 1 if found is None else len(encode(found.message.parts)))
        return found

    def read_messages(self, key: ConversationKey, **bounds: Any) -> MessagePage:
        """See `WarmStore`."""
        page = super().read_messages(key, **bounds)
        self._meter.read(key, sum(len(encode(stored.message)) for stored in page.messages))
        return page


# --- functions ----------------------------------------------------------------------------------------------------


class Arrival(msgspec.Struct, frozen=True, order=True):
    """A request: when it comes, which, and how long a function is at it."""

    at_ms: float
    action: str
    takes_ms: float


class Served(msgspec.Struct):
    """What became of the requests of an action.

    Attributes:
        latencies_ms: from the first try to the reply.
        throttled: tries for which no function was free.
    """

    latencies_ms: list[float] = msgspec.field(default_factory=list)
    throttled: int = 0


def serve(
    arrivals: Iterable[Arrival],
    *,
    pool_of: Callable[[str], str],
    sizes: dict[str, int],
    draw: random.Random,
    pause_ms: float,
) -> dict[str, Served]:
    """Have requests served by functions, of which each pool runs so many at a time.

    Lambda queues nothing for a gateway: whoever finds all of them busy is refused, and comes again after a pause of
    up to ``pause_ms``, twice that the next time and so on.
    """
    waiting = [(one.at_ms, draw.random(), one, 0) for one in arrivals]
    heapq.heapify(waiting)
    busy: dict[str, list[float]] = {pool: [] for pool in sizes}
    served: dict[str, Served] = {}
    while waiting:
        now_ms, _, arrival, tries = heapq.heappop(waiting)
        outcome = served.setdefault(arrival.action, Served())
        running = busy[pool_of(arrival.action)]
        while running and running[0] <= now_ms:
            heapq.heappop(running)
        if len(running) < sizes[pool_of(arrival.action)]:
            heapq.heappush(running, now_ms + arrival.takes_ms)
            outcome.latencies_ms.append(now_ms + arrival.takes_ms - arrival.at_ms)
            continue
        outcome.throttled += 1
        again_ms = now_ms + draw.uniform(0, pause_ms * 2 ** min(tries, 6))
        heapq.heappush(waiting, (again_ms, draw.random(), arrival, tries + 1))
    return served
