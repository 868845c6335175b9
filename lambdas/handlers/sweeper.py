"""The sweeper: once a minute it ends what nobody writes any more; once a day it looks for what the index forgot."""

from __future__ import annotations

import time
from typing import Any, Final

from threadkeep import container, telemetry
from threadkeep.usecases.sweeping import Swept, file_forgotten, sweep

PASSES: Final = 3
PAUSE_S: Final = 20
"""The schedule knows no less than a minute; a dead stream should not wait for two of them."""


def _handle(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    services = container.services()
    if event.get("task") == "backstop":
        found = file_forgotten(services)
        telemetry.count("StreamsFiledAgain", found)
        return {"filed": found}
    total = Swept()
    for number in range(PASSES):
        if number:
            time.sleep(PAUSE_S)
        total += sweep(services)
    telemetry.count("StreamsEnded", total.ended)
    telemetry.count("StreamsNotEnded", total.failed)
    return {"looked_at": total.looked_at, "ended": total.ended, "failed": total.failed}


handler = telemetry.instrumented(_handle)
