"""The herald: what the table's stream has to tell a region's hot tier, and those who watch there."""

from __future__ import annotations

from typing import Any

from handlers.jobs import work_off
from threadkeep.domain.erasure import ErasureJob
from threadkeep.telemetry import instrumented
from threadkeep.usecases.erasing import herald


def _handle(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    return work_off(event, ErasureJob, herald)


handler = instrumented(_handle)
