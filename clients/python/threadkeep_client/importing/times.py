"""Times as exports write them: seconds since 1970 (ChatGPT), RFC 3339 (Claude, Threadkeep), or nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

_MS_FROM: Final = 100_000_000_000
"""A number above this counts milliseconds: as seconds it would lie three thousand years ahead."""
_TIME_MS_MAX: Final = 1 << 47
"""Well within the 48 bits that an id has for it."""


def to_ms(value: Any) -> int | None:
    """Milliseconds since 1970, or None for what names no time after that."""
    if isinstance(value, str):
        return _sane(_from_text(value))
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return _sane(round(value if value > _MS_FROM else value * 1_000))
    except (ValueError, OverflowError):
        return None  # not a number, or infinite


def _from_text(text: str) -> int | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    # Exports write UTC; where one forgets to say so it is UTC all the same, wherever it is read.
    return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1_000)


def _sane(time_ms: int | None) -> int | None:
    return time_ms if time_ms is not None and 0 < time_ms < _TIME_MS_MAX else None
