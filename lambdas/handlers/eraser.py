"""The eraser: clears a region's bucket of what was deleted, and in the home region the table."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from handlers.jobs import work_off
from threadkeep.domain.erasure import ErasureJob
from threadkeep.telemetry import instrumented
from threadkeep.usecases.erasing import erase

_JOB: Final = msgspec.json.Decoder(ErasureJob)


def _handle(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    return work_off(event, _JOB, erase)


handler = instrumented(_handle)
