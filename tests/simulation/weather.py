"""How bad a world may be: the odds of every fault, drawn once a seed; none of them while it calms down at the end."""

from __future__ import annotations

import random

import msgspec


class Weather(msgspec.Struct, frozen=True, kw_only=True):
    """Odds per occasion.

    Attributes:
        hot_before, hot_after, warm_before, warm_after: a store's call fails, before or after it took effect.
        crash: a Lambda invocation ends at a store's call, without a word.
        request_lost, request_doubled, reply_lost, push_lost, push_doubled: frames.
        delay_ms_max: of frames and calls; now and then ten times as long.
        cut: a socket breaks when a frame passes.
        forget, fail_over: the hot tier loses everything, or falls back to an older state, per second.
    """

    hot_before: float = 0
    hot_after: float = 0
    warm_before: float = 0
    warm_after: float = 0
    crash: float = 0
    request_lost: float = 0
    request_doubled: float = 0
    reply_lost: float = 0
    push_lost: float = 0
    push_doubled: float = 0
    delay_ms_max: int = 5
    cut: float = 0
    forget: float = 0
    fail_over: float = 0

    @property
    def loses_hot(self) -> bool:
        """Whether the hot tier may forget, or answer without having been asked everything."""
        return bool(self.forget or self.fail_over or self.hot_before or self.hot_after)


CALM = Weather()


def draw(rng: random.Random, *, cuts: bool) -> Weather:
    """Some faults are on in a world, most are off: with everything on at once little would ever get far.

    ``cuts``: sockets break all the time.
    """

    def odds(most: float) -> float:
        return rng.uniform(0, most) if rng.random() < 0.35 else 0.0

    return Weather(
        hot_before=odds(0.08),
        hot_after=odds(0.08),
        warm_before=odds(0.08),
        warm_after=odds(0.08),
        crash=odds(0.04),
        request_lost=odds(0.1),
        request_doubled=odds(0.2),
        reply_lost=odds(0.1),
        push_lost=odds(0.2),
        push_doubled=odds(0.2),
        delay_ms_max=rng.choice((1, 5, 50, 500)),
        cut=rng.uniform(0.2, 0.4) if cuts else odds(0.05),
        forget=odds(0.05),
        fail_over=odds(0.05),
    )
