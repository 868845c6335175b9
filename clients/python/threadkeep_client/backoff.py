"""Pauses between attempts: growing, bounded, and jittered, so that many clients do not come back in step."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_RANDOM: Final = random.SystemRandom()


@dataclass(frozen=True, slots=True)
class Backoff:
    """Full jitter over a doubling ceiling, never below a floor.

    The pause before attempt n + 1 is drawn evenly from `floor_s` to `min(ceiling_s, base_s * 2**n)`. "Full jitter" is
    the variant with the least work and the shortest finish in "Exponential Backoff And Jitter" (AWS Architecture Blog,
    2015).
    """

    base_s: float = 0.2
    ceiling_s: float = 20.0
    floor_s: float = 0.02

    def __post_init__(self) -> None:
        if not 0 <= self.floor_s <= self.base_s <= self.ceiling_s:
            raise ValueError("floor_s <= base_s <= ceiling_s must hold, none negative")

    def pauses(self, source: random.Random = _RANDOM) -> Iterator[float]:
        """Endless pauses in seconds."""
        ceiling = self.base_s
        while True:
            yield source.uniform(self.floor_s, ceiling)
            ceiling = min(self.ceiling_s, ceiling * 2)
