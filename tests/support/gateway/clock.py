"""Time that tests own: idle, lifetime, throttle and the integration timeout go by it, never by the wall."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(order=True, slots=True)
class Timer:
    """A call to be made; see `VirtualClock.call_at`."""

    due: float
    number: int
    call: Callable[[], None] | None = field(compare=False)

    def cancel(self) -> None:
        """Never call."""
        self.call = None


class VirtualClock:
    """Stands still until it is advanced. May be used from any thread.

    Args:
        start_s: seconds since the epoch; now, unless given, so that ids minted elsewhere lie near.
        flowing: go on with real time as well, for runs that are too long to be throttled by a clock that stands.
            Timers still fire in `advance` only.
    """

    def __init__(self, *, start_s: float | None = None, flowing: bool = False) -> None:
        self._base_s = time.time() if start_s is None else start_s
        self._begun_s = time.monotonic() if flowing else None
        self._timers: list[Timer] = []
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._base_s + (0.0 if self._begun_s is None else time.monotonic() - self._begun_s)

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return int(self.now() * 1_000)

    def call_at(self, due: float, call: Callable[[], None]) -> Timer:
        """Call when the clock is advanced to `due` or beyond; in the thread that advances it."""
        timer = Timer(due, next(self._numbers), call)
        with self._lock:
            heapq.heappush(self._timers, timer)
        return timer

    def advance(self, seconds: float) -> None:
        """Move on, and make the calls that fall due, in order, each at its own time."""
        until = self.now() + seconds
        while (timer := self._pop(until)) is not None:
            self._base_s += max(0.0, timer.due - self.now())
            if timer.call is not None:
                timer.call()
        self._base_s += max(0.0, until - self.now())

    def _pop(self, until: float) -> Timer | None:
        with self._lock:
            return heapq.heappop(self._timers) if self._timers and self._timers[0].due <= until else None
