"""An event loop with a clock of its own, which jumps ahead when nothing is left to do: real sockets, no real waiting.

Work takes no time on that clock, so that what is measured by it is the same on a busy machine.
"""

from __future__ import annotations

import asyncio
import selectors

_GRACE_S = 0.001
"""Loopback delivers at once; so much is left to the kernel before time is taken to be idle."""
_STUCK_S = 10.0


class _Selector(selectors.DefaultSelector):
    """Waits for the sockets, never for the clock."""

    now_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            ready = super().select(_STUCK_S)
            if not ready:
                raise RuntimeError("nothing will ever happen again: the test waits for what nobody sends")
            return ready
        ready = super().select(0)
        if ready or timeout <= 0:
            return ready
        ready = super().select(_GRACE_S)
        if not ready:
            self.now_s += timeout
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now_s


def now() -> float:
    """The running loop's time, in seconds."""
    return asyncio.get_running_loop().time()
