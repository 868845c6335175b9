"""The making of an export: every conversation of its owner, or one, read once and written to a file as it is read.

A run that is nearly over notes where it stands and hands the export on to the next, through its queue.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from threadkeep.domain import ids, times
from threadkeep.domain.bounds import EXPORT_ATTEMPTS_MAX, EXPORT_MS_MAX, EXPORT_PAUSE_S, QUEUE_DELAY_S_MAX
from threadkeep.domain.errors import TierUnavailable
from threadkeep.domain.exports import Export, ExportJob
from threadkeep.usecases.export_writing import OutOfTime, Overtaken, Writing
from threadkeep.usecases.exports import is_lost
from threadkeep.usecases.services import Services

Outcome = Literal["done", "failed", "again", "handed_on", "nothing"]
"""``again``: a store could not be reached, and it is tried later. ``handed_on``: the next run goes on. ``nothing``: it
was finished before, is another run's, or is gone."""


def make(services: Services, job: ExportJob, *, until_ms: int) -> Outcome:
    """Write the file, or a run's worth of it. After a crash it goes on from where the last run handed it on.

    Of two runs at once one hands it on or finishes it. Where each has put parts in place of the other's, the file is
    begun anew: no file is made of both.

    Conversations that are deleted or expire meanwhile are not in the file once it is done: it is written anew then.

    Args:
        services: the ports.
        job: which export.
        until_ms: when the run has to have ended (ms since the epoch).

    Raises:
        TierUnavailable: a store cannot be reached, and nothing could be noted of it.
        Exception: a fault. The export has failed, as ``internal``.
    """
    try:
        return _make(services, job, until_ms)
    except Overtaken:
        return "nothing"
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
    noted = None if export.notes is None else services.export_files.noted(job.tenant, export.id, export.notes)
    writing = Writing(services, job.tenant, export, noted, until_ms)
    try:
        finished = writing.finished()
    except OutOfTime:
        if writing.has_gone_on() and services.clock.now_ms() < times.from_rfc3339(export.created_at) + EXPORT_MS_MAX:
            return _hand_on(services, job.tenant, writing)
        finished = _failed(writing.counted(), "too_large")
    except BaseException:
        writing.drop(begun_here_alone=True)
        raise
    outcome = _finish(services, job.tenant, finished)
    if outcome == "failed":
        writing.drop()
    return outcome


def _hand_on(services: Services, tenant: str, writing: Writing) -> Outcome:
    """First the notes, then the word that there are some, then the job: after a crash between them it comes again."""
    export, name = writing.counted(), ids.mint(services.clock.now_ms())
    services.export_files.note(tenant, export.id, name, writing.notes())
    if not services.exports.hand_on(tenant, msgspec.structs.replace(export, notes=name), before=export.notes):
        writing.drop(begun_here_alone=True)
        raise Overtaken
    services.export_queue.send(ExportJob(tenant=tenant, export=export.id))
    return "handed_on"


def _give_up(services: Services, job: ExportJob, error: str) -> Outcome:
    export = services.exports.read(job.tenant, job.export, now_ms=services.clock.now_ms())
    return "nothing" if export is None else _finish(services, job.tenant, _failed(export, error))


def _finish(services: Services, tenant: str, export: Export) -> Outcome:
    is_first = services.exports.put(tenant, export)
    standing = export if is_first else services.exports.read(tenant, export.id, now_ms=services.clock.now_ms())
    if standing is None or standing.state != "running":  # else another run goes on, and has its place
        services.exports.release(tenant, export)
    if not is_first:
        return "nothing"
    return "done" if export.state == "done" else "failed"


def _failed(export: Export, error: str) -> Export:
    return msgspec.structs.replace(export, state="failed", error=error)
