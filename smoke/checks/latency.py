"""How long things take, seen from where the pack runs: the way there and back is in every figure."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from smoke.ground import Ground
from smoke.live import live_stream
from smoke.outcome import Outcome, shown
from smoke.raw import REPLY_S, exchange, frame, heard
from smoke.registry import check

_TIMES: Final = 40


def median_and_p95(seconds: Sequence[float]) -> tuple[float, float]:
    """In ms, one digit behind the point."""
    ordered = sorted(seconds)
    return round(ordered[len(ordered) // 2] * 1000, 1), round(ordered[len(ordered) * 95 // 100] * 1000, 1)


@check("latency-reply", turn="alone")
async def a_ping_and_its_reply(ground: Ground) -> Outcome:
    """By the route response; the first few are left out, since they may start functions."""
    taken = []
    async with ground.socket() as socket:
        for number in range(_TIMES + 5):
            begun = time.perf_counter()
            await exchange(socket, frame("ping", ref=str(number)))
            taken.append(time.perf_counter() - begun)
    median, p95 = median_and_p95(taken[5:])
    return shown(f"median {median} ms, p95 {p95} ms", median_ms=median, p95_ms=p95)


@check("latency-push", turn="alone")
async def from_an_append_to_its_delta(ground: Ground) -> Outcome:
    """Two connections of this machine: the clock is the same."""
    taken = []
    async with live_stream(ground) as live, ground.socket() as viewer:
        await exchange(viewer, frame("conversation.subscribe", ref="smoke", conversation=live.conversation))
        for number in range(_TIMES + 5):
            begun = time.perf_counter()
            at = live.offset
            await live.append(f"{number} ")
            while (await heard(viewer, REPLY_S)).get("at") != at:
                pass
            taken.append(time.perf_counter() - begun)
    median, p95 = median_and_p95(taken[5:])
    return shown(f"median {median} ms, p95 {p95} ms", median_ms=median, p95_ms=p95)


@check("latency-send", turn="alone")
async def a_message_until_it_is_durable(ground: Ground) -> Outcome:
    """Eight of them: sends are metered."""
    taken = []
    async with ground.user() as user:
        conversation = await ground.conversation(user)
        parent: str | None = None
        for number in range(8):
            begun = time.perf_counter()
            parent = (await user.create_message(conversation, f"smoke {number}", parent=parent))["id"]
            taken.append(time.perf_counter() - begun)
    median, p95 = median_and_p95(taken)
    return shown(f"median {median} ms, slowest {p95} ms of 8", median_ms=median, slowest_ms=p95)
