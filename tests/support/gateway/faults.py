"""What goes wrong, as one small value: the same seed draws the same faults, whatever the threads do."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

Chance = Literal[
    "lose_request",
    "double_request",
    "delay_request",
    "fail_integration",
    "lose_reply",
    "delay_reply",
    "lose_push",
    "double_push",
    "delay_push",
    "fail_post",
    "slow_post",
    "cut",
    "vanish",
    "lose_disconnect",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Chances are between 0 and 1 and are drawn anew for each frame, post or connection.

    A draw depends on the seed and on its place (connection number, frame number) alone, not on what was drawn before:
    threads that overtake each other change nothing.

    Attributes:
        seed: of every draw.
        lose_request: a message is swallowed; its function never runs.
        double_request: a message's function runs twice, at once, and both replies are sent.
        delay_request: a message's function starts late, so that a later message's may start first.
        fail_integration: the gateway answers in place of the function, which by a coin ran to its end or never began.
        lose_reply: a reply is not sent, although the function ran.
        delay_reply: a reply is sent late, so after events and replies that came later.
        lose_push: a post is answered with 200 and its frame is not sent.
        double_push: a pushed frame is sent twice.
        delay_push: a post is answered at once and its frame is sent late.
        fail_post: a post is refused with 429 or, by a coin, with 500.
        slow_post: a post is answered late.
        cut: the socket is cut at a frame, of either direction, before or after it by a coin.
        vanish: a client's socket that ends without a close frame is not noticed: the connection counts as open, takes
            posts, and ends at the idle limit.
        lose_disconnect: `$disconnect` is not run.
        drop_pushes: pushed frames of these types (`message.created`) are never sent, though the post gets its 200.
        cut_after: the first connection is cut at so many frames (of both directions), the second at the next number;
            those beyond the list are left alone.
        delay_ms_max: how late, in real milliseconds.
        slow_ms: how long a slow post takes, in real milliseconds.
    """

    seed: int = 0
    lose_request: float = 0.0
    double_request: float = 0.0
    delay_request: float = 0.0
    fail_integration: float = 0.0
    lose_reply: float = 0.0
    delay_reply: float = 0.0
    lose_push: float = 0.0
    double_push: float = 0.0
    delay_push: float = 0.0
    fail_post: float = 0.0
    slow_post: float = 0.0
    cut: float = 0.0
    vanish: float = 0.0
    lose_disconnect: float = 0.0
    drop_pushes: tuple[str, ...] = ()
    cut_after: tuple[int, ...] = ()
    delay_ms_max: float = 20.0
    slow_ms: float = 300.0

    def happens(self, fault: Chance, *place: int) -> bool:
        """Whether the fault happens at this place."""
        chance: float = getattr(self, fault)
        return chance > 0.0 and self._draw(fault, *place) < chance

    def coin(self, fault: Chance, *place: int) -> bool:
        """Which of a fault's two forms it takes."""
        return self._draw(f"coin of {fault}", *place) < 0.5

    def delay_s(self, fault: Chance, *place: int) -> float:
        """Seconds by which something is late: 0, unless the fault happens."""
        if not self.happens(fault, *place):
            return 0.0
        return self._draw(f"length of {fault}", *place) * self.delay_ms_max / 1_000

    def _draw(self, what: str, *place: int) -> float:
        return random.Random(f"{self.seed} {what} {place}").random()  # noqa: S311 -- repeatable, not secret
