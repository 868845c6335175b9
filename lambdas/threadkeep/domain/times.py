"""Times on the wire: RFC 3339, UTC, milliseconds, ``Z``."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_rfc3339(ms: int) -> str:
    """Milliseconds since the epoch as ``2026-11-29T12:00:00.000Z``."""
    moment = _EPOCH + timedelta(milliseconds=ms)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03d}Z"


def from_rfc3339(text: str) -> int:
    """The reverse, for what `to_rfc3339` wrote."""
    return round((datetime.fromisoformat(text) - _EPOCH) / timedelta(milliseconds=1))
