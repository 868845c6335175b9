"""Frames of one connection: in which order, and whether any comes twice."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any, Final

from smoke.ground import Ground
from smoke.live import live_stream
from smoke.outcome import Outcome, failed, shown
from smoke.raw import REPLY_S, exchange, frame, heard
from smoke.registry import check

_FRAMES: Final = 40


@check("order-requests", turn="alone")
async def requests_in_flight_together(ground: Ground) -> Outcome:
    """Each is answered once; in which order, nobody here relies on."""
    async with ground.socket() as socket:
        for number in range(_FRAMES):
            await socket.send(frame("ping", ref=str(number)))
        refs = [int((await heard(socket, REPLY_S)).get("ref", -1)) for _ in range(_FRAMES)]
        try:
            await heard(socket, 2)
        except TimeoutError:
            doubled = False
        else:
            doubled = True
    late = sum(second < first for first, second in pairwise(refs))
    if sorted(refs) != list(range(_FRAMES)) or doubled:
        return failed(f"of {_FRAMES} requests at once not each was answered exactly once")
    text = f"{_FRAMES} requests at once, each answered once, {late} replies before the one to an earlier request"
    return shown(text, replies_out_of_order=late)


@check("order-pushes", turn="alone")
async def deltas_at_a_viewer(ground: Ground) -> Outcome:
    """However they come, each place of the stream comes, and together they are what was said."""
    async with live_stream(ground) as live, ground.socket() as viewer:
        await exchange(viewer, frame("conversation.subscribe", ref="smoke", conversation=live.conversation))
        for number in range(_FRAMES):
            await live.append(f"{number} ")
        deltas: list[dict[str, Any]] = []
        try:
            async with asyncio.timeout(20):
                while {delta["at"] for delta in deltas} < set(range(_FRAMES)):
                    received = await heard(viewer, 20)
                    if received.get("type") == "stream.delta" and received["ops"]:
                        deltas.append(received)
        except TimeoutError:
            return failed(f"of {_FRAMES} appends {len(deltas)} arrived in 20 s")
        said = live.text
    late = sum(second["at"] < first["at"] for first, second in pairwise(deltas))
    texts = {delta["at"]: "".join(op[2] for op in delta["ops"]) for delta in deltas}
    if "".join(texts[at] for at in sorted(texts)) != said:
        return failed("what arrived is not what was said")
    doubled = len(deltas) - len(texts)
    text = f"{_FRAMES} deltas: {late} after a later one, {doubled} twice; together what was said"
    return shown(text, deltas_out_of_order=late, deltas_twice=doubled)
