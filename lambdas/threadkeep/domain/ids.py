"""Identifiers: UUIDv7 (RFC 9562, section 5.7) in lower-case canonical form. Their order is the order of everything."""

from __future__ import annotations

import os
import re
import uuid
from typing import Final

from threadkeep.domain.bounds import ID_AHEAD_MS_MAX

ID_PATTERN: Final = r"^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\Z"
ID_OR_ALL_PATTERN: Final = ID_PATTERN + r"|^all\Z"
_ID: Final = re.compile(ID_PATTERN)


def is_id(text: str) -> bool:
    """Whether it is a UUIDv7 in lower-case canonical form."""
    return _ID.match(text) is not None


def mint(now_ms: int, *, after: str | None = None) -> str:
    """A new id of that time (milliseconds since the epoch), or of the first that sorts behind the id ``after``.

    A parent may be of the same millisecond, or of a client whose clock is ahead.

    Its random part is the operating system's at every call, since a restored sandbox clones the state of any
    generator that lives in the process.
    """
    time = now_ms if after is None else max(now_ms, time_ms(after) + 1)
    value = (time << 80) | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | (0x7 << 76)
    value = value & ~(0x3 << 62) | (0x2 << 62)
    return str(uuid.UUID(int=value))


def time_ms(identifier: str) -> int:
    """The time in an id, in milliseconds since the epoch."""
    return int(identifier[:8] + identifier[9:13], 16)


def is_ahead(identifier: str, now_ms: int) -> bool:
    """Whether its time lies further in the future than a client's clock may be off: no child could sort after it."""
    return time_ms(identifier) > now_ms + ID_AHEAD_MS_MAX
