"""The archiver: moves what rests from the table into segments, a conversation a job."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from handlers.jobs import work_off
from threadkeep import telemetry
from threadkeep.ports import DueEntry
from threadkeep.usecases.archiving import archive
from threadkeep.usecases.services import Services

_JOB: Final = msgspec.json.Decoder(DueEntry)


def _archive(services: Services, entry: DueEntry) -> None:
    outcome = archive(services, entry)
    telemetry.count("ConversationsCold", int(outcome.state == "cold"))
    telemetry.count("SegmentsWritten", outcome.segments)
    telemetry.count("MessagesArchived", outcome.archived)
    telemetry.count("MessagesRemoved", outcome.removed)


def _handle(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    return work_off(event, _JOB, _archive)


handler = telemetry.instrumented(_handle)
