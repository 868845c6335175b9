"""The exporter: takes one job at a time from the region's export queue, and writes the file."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from threadkeep import container, telemetry
from threadkeep.domain.exports import ExportJob
from threadkeep.usecases.exporting import make

_SPARE_MS: Final = 30_000
"""Left of the function's time for what follows the last piece: the end of the upload, the state."""
_JOB: Final = msgspec.json.Decoder(ExportJob)


class ExportFailed(Exception):  # noqa: N818 -- named for what Lambda is told
    """The export failed, and why has been noted. SQS delivers it once more, which then finds it finished."""


def _handle(event: dict[str, Any], context: Any) -> dict[str, Any]:
    services = container.services()
    for record in event["Records"]:
        outcome: str = "fault"
        until_ms = services.clock.now_ms() + context.get_remaining_time_in_millis() - _SPARE_MS
        try:
            outcome = make(services, _JOB.decode(record["body"]), until_ms=until_ms)
        except Exception as error:  # noqa: BLE001 -- the one catch-all: its text may quote a conversation
            telemetry.note_fault("An export failed", error)
            raise ExportFailed("see the line before") from None
        finally:
            telemetry.count("Exports", outcome=outcome)
    return {"batchItemFailures": []}


handler = telemetry.instrumented(_handle)
"""An SQS event of one record: more would share one function's time."""
