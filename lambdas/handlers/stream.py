"""Streams: what a producer writes, piece by piece."""

from __future__ import annotations

from typing import Any, Final

from handlers.serving import Routes, answer
from threadkeep.domain.commands import AppendStream, CloseStream, OpenStream
from threadkeep.telemetry import instrumented
from threadkeep.usecases import streams

ROUTES: Final[Routes] = {
    OpenStream: streams.open_,
    AppendStream: streams.append,
    CloseStream: streams.close,
}


def _handle(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    return answer(event, ROUTES)


handler = instrumented(_handle)
