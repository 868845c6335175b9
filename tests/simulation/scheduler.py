"""One thing at a time, in an order that a seed decides, by a clock that only the scheduler moves."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from typing import Any, Final

from greenlet import getcurrent, greenlet

START_MS: Final = 1_800_000_000_000


class Scheduler:
    """Tasks are greenlets: code that blocks in its own words, and gives way wherever it calls `pause`."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 -- a seed must give the same history again
        self.trace: list[str] = []
        self._now_ms = START_MS
        self._queue: list[tuple[int, float, int, Callable[[], Any]]] = []
        self._count = 0
        self._hub: greenlet = getcurrent()

    def now_ms(self) -> int:
        """The only time there is; also the ports' `Clock`."""
        return self._now_ms

    def note(self, what: str) -> None:
        """Put a line into the trace that a failing seed prints."""
        self.trace.append(f"{self._now_ms - START_MS:>7} {what}")

    def at(self, delay_ms: int, action: Callable[[], Any]) -> None:
        """Do it after so long; what falls on one millisecond happens in any order."""
        self._count += 1
        heapq.heappush(self._queue, (self._now_ms + delay_ms, self.random.random(), self._count, action))

    def spawn(self, task: Callable[[], Any], *, after_ms: int = 0) -> None:
        """Start a task."""
        self.at(after_ms, lambda: greenlet(task, parent=self._hub).switch())

    def pause(self, delay_ms: int) -> None:
        """Let others go on for so long. Only a task may."""
        self.at(delay_ms, getcurrent().switch)
        self._hub.switch()

    def wait(self, ready: Callable[[], bool], *, at_most_ms: int, every_ms: int = 20) -> bool:
        """Pause until it is so; False if it is not after so long."""
        end_ms = self._now_ms + at_most_ms
        while not ready():
            if self._now_ms >= end_ms:
                return False
            self.pause(min(every_ms, end_ms - self._now_ms))
        return True

    def run(self, *, until_ms: int) -> None:
        """Let everything happen that is to happen within so long from now."""
        self._hub = getcurrent()
        end_ms = self._now_ms + until_ms
        while self._queue and self._queue[0][0] <= end_ms:
            self._now_ms, _, _, action = heapq.heappop(self._queue)
            action()
        self._now_ms = end_ms

    def chance(self, probability: float) -> bool:
        """A coin."""
        return probability > 0 and self.random.random() < probability
