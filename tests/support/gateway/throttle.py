"""The rate at which the gateway takes requests."""

from __future__ import annotations

from tests.support.gateway.clock import VirtualClock


class TokenBucket:
    """A token bucket (as API Gateway's throttling): `rate` tokens a second, never more than `burst`."""

    def __init__(self, *, rate: float, burst: int, clock: VirtualClock) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._clock = clock
        self._tokens = self._burst
        self._filled_s = clock.now()

    def take(self) -> bool:
        """Take one, if there is one."""
        now = self._clock.now()
        self._tokens = min(self._burst, self._tokens + (now - self._filled_s) * self._rate)
        self._filled_s = now
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True
