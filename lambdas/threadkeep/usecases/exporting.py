"""The making of an export: every conversation of its owner, or one, read once and written to a file as it is read."""

from __future__ import annotations

from typing import Literal

import msgspec

from threadkeep.domain.bounds import EXPORT_ATTEMPTS_MAX, EXPORT_PASSES_MAX, EXPORT_PAUSE_S, QUEUE_DELAY_S_MAX
from threadkeep.domain.errors import TierUnavailable
from threadkeep.domain.exports import Export, ExportJob
from threadkeep.usecases.export_writing import OutOfTime, Writing
from threadkeep.usecases.exports import is_lost
from threadkeep.usecases.services import Services

Outcome = Literal["done", "failed", "again", "nothing"]
"""``again``: a store could not be reached, and it is tried later. ``nothing``: it was finished before, or is gone."""


def make(services: Services, job: ExportJob, *, until_ms: int) -> Outcome:
    """Write the file. Run again after a crash, or twice at once, it writes the whole file again, and one run finishes.

    Conversations that are deleted or expire meanwhile are not in the file when this returns: it is written anew then.

    Args:
        services: the ports.
        job: which export.
        until_ms: when it has to have ended (ms since the epoch).

    Raises:
        TierUnavailable: a store cannot be reached, and nothing could be noted of it.
        Exception: a fault. The export has failed, as ``internal``.
    """
    try:
        return _make(services, job, until_ms)
    except TierUnavailable:
        attempt = job.attempt + 1
        if attempt < EXPORT_ATTEMPTS_MAX:
            services.export_queue.send(
                msgspec.structs.replace(job, attempt=attempt), delay_s=min(EXPORT_PAUSE_S * attempt, QUEUE_DELAY_S_MAX)
            )
            return "again"
        return _give_up(services, job, "unavailable")
    except Exception:
        _give_up(services, job, "internal")
        raise


def _make(services: Services, job: ExportJob, until_ms: int) -> Outcome:
    now_ms = services.clock.now_ms()
    export = services.exports.read(job.tenant, job.export, now_ms=now_ms)
    if export is None:
        return "nothing"
    if export.state != "running":
        services.exports.release(job.tenant, export)  # whoever finished it may have died before
        return "nothing"
    if is_lost(export, now_ms):
        return _finish(services, job.tenant, _failed(export, "lost"))
    try:
        finished = _written(services, job.tenant, export, until_ms)
    except OutOfTime:
        finished = _failed(export, "too_large")
    return _finish(services, job.tenant, finished)


def _give_up(services: Services, job: ExportJob, error: str) -> Outcome:
    export = services.exports.read(job.tenant, job.export, now_ms=services.clock.now_ms())
    return "nothing" if export is None else _finish(services, job.tenant, _failed(export, error))


def _finish(services: Services, tenant: str, export: Export) -> Outcome:
    is_first = services.exports.put(tenant, export)
    services.exports.release(tenant, export)
    if not is_first:
        return "nothing"
    return "done" if export.state == "done" else "failed"


def _failed(export: Export, error: str) -> Export:
    return msgspec.structs.replace(export, state="failed", error=error)


def _written(services: Services, tenant: str, export: Export, until_ms: int) -> Export:
    """The export as it stands once its file is written."""
    for _ in range(EXPORT_PASSES_MAX):
        writing = Writing(services, tenant, export, until_ms)
        size_bytes = services.export_files.write(tenant, export.id, writing.pieces())
        if not writing.has_lost_some():
            counted = writing.counted(size_bytes)
            if export.conversation is not None and counted.conversations == 0:
                return _failed(counted, "not_found")
            return msgspec.structs.replace(counted, state="done")
    return _failed(export, "unsettled")
