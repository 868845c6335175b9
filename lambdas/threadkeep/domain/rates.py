"""How often somebody may ask: the generic cell rate algorithm (GCRA), as a function of one number.

Each bucket is one time, its *theoretical arrival time*: when the next request would come if they came evenly. A
request is taken while that time lies no further ahead than the burst allows, and moves it on by one interval; a
refusal moves nothing. (ITU-T I.371, the virtual scheduling algorithm; Valkey runs the same rule in `take.lua`.)
"""

from __future__ import annotations

import math
from typing import Final

import msgspec

_SECOND_MS: Final = 1_000


class Rate(msgspec.Struct, frozen=True):
    """So many requests a second on the long run, and at most ``burst`` at once."""

    per_s: float
    burst: int

    @property
    def interval_ms(self) -> float:
        """Between two requests that come evenly."""
        return _SECOND_MS / self.per_s


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """What each user and each tenant may do.

    Attributes:
        user, tenant: requests that write or cost: sends, openings, uploads, exports. Appends are bounded by their
            stream, which has one in flight; reads by the gateway's own throttles.
        streams_max: live streams of one user at a time.
    """

    user: Rate = Rate(per_s=5.0, burst=30)
    tenant: Rate = Rate(per_s=200.0, burst=1_000)
    streams_max: int = 20


def take(rate: Rate, expected_ms: float, now_ms: int) -> tuple[float, int]:
    """Judge one request.

    Returns:
        The bucket's new time, and 0; or its old one, and after how many ms it is worth asking again.
    """
    expected_ms = max(expected_ms, now_ms)
    ahead_ms = expected_ms - now_ms - (rate.burst - 1) * rate.interval_ms
    if ahead_ms > 0:
        return expected_ms, math.ceil(ahead_ms)
    return expected_ms + rate.interval_ms, 0
