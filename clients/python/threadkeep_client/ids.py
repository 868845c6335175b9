"""UUIDv7 (RFC 9562, section 5.7), the ids of conversations and messages.

Within one process they rise strictly, so that a message minted after its parent sorts after it even within one
millisecond: order everywhere in Threadkeep is id order.
"""

from __future__ import annotations

import os
import re
import threading
import time
import uuid
from collections.abc import Callable
from typing import Final

_TAIL_BITS: Final = 74
"""What follows the 48 bits of time, version and variant left out."""
_STEP_BITS: Final = 32
"""Ids of one millisecond lie up to this far apart, so that none can be guessed from its neighbour."""


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


ID_PATTERN: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
"""A UUIDv7 in the form that the protocol takes; use `fullmatch`."""


class IdMint:
    """Mints strictly rising UUIDv7.

    Args:
        now_ms: The wall clock, in milliseconds since 1970.
        entropy: Gives that many random bytes. `os.urandom`, since a snapshot of a process (Lambda SnapStart) clones
            the state of `random`.
    """

    def __init__(self, now_ms: Callable[[], int] = _wall_ms, entropy: Callable[[int], bytes] = os.urandom) -> None:
        self._now_ms = now_ms
        self._entropy = entropy
        self._lock = threading.Lock()
        self._last = 0

    def mint(self, after: str | None = None) -> str:
        """A new id in lower-case canonical form.

        Args:
            after: Mint it greater than this id (a parent that was minted where the clock is ahead), at the price of a
                time that lies ahead too.

        Raises:
            ValueError: `after` is not a UUID.
        """
        floor = 0 if after is None else _number(uuid.UUID(after).int)
        with self._lock:
            fresh = self._now_ms() << _TAIL_BITS | self._random(_TAIL_BITS)
            floor = max(floor, self._last)
            number = fresh if fresh > floor else floor + 1 + self._random(_STEP_BITS)
            self._last = number
        return str(uuid.UUID(int=_uuid7(number)))

    def _random(self, bits: int) -> int:
        return int.from_bytes(self._entropy((bits + 7) // 8)) >> (-bits % 8)


def _number(value: int) -> int:
    """The 122 free bits of a UUID as one number: time, 12 bits, 62 bits, without version and variant."""
    return (value >> 80) << 74 | (value >> 64 & 0xFFF) << 62 | value & (1 << 62) - 1


def _uuid7(number: int) -> int:
    """The inverse of `_number`, with version 7 and variant 10 put in."""
    return (number >> 74) << 80 | 0x7 << 76 | (number >> 62 & 0xFFF) << 64 | 0b10 << 62 | number & (1 << 62) - 1


def time_ms(value: str) -> int:
    """The time in a UUIDv7, in milliseconds since 1970."""
    return uuid.UUID(value).int >> 80


def id_at(time: int, digest: bytes) -> str:
    """The id of that time whose other bits are the first of a digest: the same whenever it is asked for.

    Args:
        time: in milliseconds since 1970, at least 0.
        digest: at least 10 bytes.
    """
    tail = int.from_bytes(digest[:10]) >> (80 - _TAIL_BITS)
    return str(uuid.UUID(int=_uuid7(time << _TAIL_BITS | tail)))


MINT: Final = IdMint()
"""The process's own: one for all, or the ids of two mints would not rise together."""


def new_id(after: str | None = None) -> str:
    """A new id from the process's mint, greater than `after`."""
    return MINT.mint(after)
