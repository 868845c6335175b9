"""An event loop whose clock jumps ahead when nothing is left to do: real sockets, no real waiting."""

from __future__ import annotations

import asyncio
import selectors

_GRACE_S = 0.001
"""Loopback delivers at once; so much is left to the kernel before time is taken to be idle."""
_STUCK_S = 10.0


class _Selector(selectors.DefaultSelector):
    """Waits for the sockets, never for the clock."""

    skipped_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            ready = super().select(_STUCK_S)
            if not ready:
                raise RuntimeError("nothing will ever happen again: the test waits for what nobody sends")
            return ready
        if timeout <= 0:
            return super().select(0)
        ready = super().select(min(timeout, _GRACE_S))
        if not ready:
            self.skipped_s += timeout
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return super().time() + self._virtual.skipped_s
