"""What takes as long as it says: `make smoke-long`."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from websockets.asyncio.client import ClientConnection

from smoke.ground import Ground
from smoke.outcome import Outcome, failed, shown
from smoke.raw import close_code, exchange, frame
from smoke.registry import check

_IDLE_S: Final = 10 * 60
_LIFETIME_S: Final = 2 * 60 * 60
_SPARE_S: Final = 120
_BEAT_S: Final = 60
_GOING_AWAY: Final = 1001


@check("idle-limit", seconds_max=_IDLE_S + 2 * _SPARE_S)
async def an_idle_connection_is_closed(ground: Ground) -> Outcome:
    """Nothing is sent, no keep-alive either."""
    begun = time.monotonic()
    async with ground.socket() as socket:
        code = await close_code(socket, _IDLE_S + _SPARE_S)
    return _judged(code, time.monotonic() - begun, limit_s=_IDLE_S)


@check("lifetime-limit", seconds_max=_LIFETIME_S + 2 * _SPARE_S)
async def a_busy_connection_is_closed_too(ground: Ground) -> Outcome:
    """A ping a minute, so that it is never idle."""
    begun = time.monotonic()
    async with ground.socket() as socket:
        beating = asyncio.create_task(_beat(socket))
        try:
            code = await close_code(socket, _LIFETIME_S + _SPARE_S)
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)
    return _judged(code, time.monotonic() - begun, limit_s=_LIFETIME_S)


async def _beat(socket: ClientConnection) -> None:
    while True:
        await exchange(socket, frame("ping", ref="smoke"))
        await asyncio.sleep(_BEAT_S)


def _judged(code: int | None, seconds: float, *, limit_s: int) -> Outcome:
    text = f"closed with {code} after {seconds:.0f} s" if code else f"open for {seconds:.0f} s"
    in_time = abs(seconds - limit_s) < _SPARE_S
    return shown(text, closed_after_s=round(seconds)) if code == _GOING_AWAY and in_time else failed(text)
