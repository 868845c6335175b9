"""The planner: hourly it queues what has fallen due for the archive; daily it looks back for what was missed."""

from __future__ import annotations

from typing import Any

from threadkeep import container, telemetry
from threadkeep.domain.bounds import ARCHIVE_DAYS_BACK_MAX
from threadkeep.usecases.planning import plan


def _handle(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    days_back = ARCHIVE_DAYS_BACK_MAX if event.get("task") == "deep" else 1
    planned = plan(container.services(), days_back=days_back)
    telemetry.count("ConversationsPlanned", planned.queued)
    return {"queued": planned.queued, "moved": planned.moved}


handler = telemetry.instrumented(_handle)
