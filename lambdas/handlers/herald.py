"""The herald: what the table's stream has to tell a region's hot tier, and those who watch there."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from handlers.jobs import work_off
from threadkeep.domain.erasure import ErasureJob
from threadkeep.domain.news import News
from threadkeep.telemetry import instrumented
from threadkeep.usecases.erasing import herald
from threadkeep.usecases.news import tell_news
from threadkeep.usecases.services import Services

Job = ErasureJob | News
_JOB: Final[msgspec.json.Decoder[Job]] = msgspec.json.Decoder(Job)


def _do(services: Services, job: Job) -> None:
    if isinstance(job, ErasureJob):
        herald(services, job)
    else:
        tell_news(services, job)


def _handle(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    return work_off(event, _JOB, _do, soon=lambda services: services.tell_queue)


handler = instrumented(_handle)
