"""Quotas in memory: the reference, and what a sandbox goes by while Valkey is away."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final

from threadkeep.domain import rates
from threadkeep.domain.bounds import STREAM_MS_MAX
from threadkeep.domain.rates import Rate, Rates
from threadkeep.ports import Clock

BUCKETS_MAX: Final = 10_000


class QuotasMemory:
    """`threadkeep.ports.Quotas` on dictionaries, the longest unused going first where there is no room."""

    def __init__(self, clock: Clock, limits: Rates | None = None) -> None:
        self._clock = clock
        self._limits = limits or Rates()
        self._expected: OrderedDict[tuple[str, str | None], float] = OrderedDict()
        self._streams: OrderedDict[tuple[str, str], dict[str, int]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, tenant: str, user: str | None) -> int:
        """See `Quotas`."""
        asked: list[tuple[tuple[str, str | None], Rate]] = [((tenant, None), self._limits.tenant)]
        if user is not None:
            asked.append(((tenant, user), self._limits.user))
        now_ms = self._clock.now_ms()
        with self._lock:
            judged = {name: rates.take(rate, self._expected.get(name, 0.0), now_ms) for name, rate in asked}
            wait_ms = max(wait for _, wait in judged.values())
            if wait_ms == 0:
                for name, (expected, _) in judged.items():
                    self._expected[name] = expected
                    self._expected.move_to_end(name)
                while len(self._expected) > BUCKETS_MAX:
                    self._expected.popitem(last=False)
        return wait_ms

    def lease_stream(self, tenant: str, user: str, stream: str) -> bool:
        """See `Quotas`."""
        now_ms = self._clock.now_ms()
        with self._lock:
            held = self._streams.setdefault((tenant, user), {})
            for name in [name for name, until_ms in held.items() if until_ms <= now_ms]:
                del held[name]
            if stream not in held and len(held) >= self._limits.streams_max:
                return False
            held[stream] = now_ms + STREAM_MS_MAX
            self._streams.move_to_end((tenant, user))
            while len(self._streams) > BUCKETS_MAX:
                self._streams.popitem(last=False)
        return True

    def release_stream(self, tenant: str, user: str, stream: str) -> None:
        """See `Quotas`."""
        with self._lock:
            self._streams.get((tenant, user), {}).pop(stream, None)
