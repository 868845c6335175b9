"""The time that passes, so that tests can own it."""

from __future__ import annotations

import time
from typing import Protocol


class Timing(Protocol):
    """A clock that never goes back, and a way to wait."""

    def now_s(self) -> float:
        """Seconds since some fixed moment."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class SystemTiming:
    """The system's."""

    def now_s(self) -> float:
        """See `Timing`."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """See `Timing`."""
        time.sleep(seconds)
