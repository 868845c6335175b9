"""Attempts at what DynamoDB does in part: so many and no more, with growing pauses between them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Final

_PAUSE_S: Final = 0.05

# The system's own randomness: a restored sandbox would clone any other, and all would come again at once.
_RANDOM: Final = random.SystemRandom()


def attempts(at_most: int, sleep: Callable[[float], None]) -> Iterator[int]:
    """The attempts, numbered from 0; before the second it pauses up to 0.1 s, before each later one up to twice that.

    Args:
        at_most: how many there are, if the caller does not leave off before.
        sleep: seconds to pause.
    """
    for attempt in range(at_most):
        if attempt:
            sleep(_RANDOM.uniform(0, _PAUSE_S * 2**attempt))
        yield attempt
