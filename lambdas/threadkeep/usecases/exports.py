"""Exports: ask for one, ask after it. `exporting` makes them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import msgspec

from threadkeep.domain import ids, times
from threadkeep.domain.bounds import DOWNLOAD_URL_S, EXPORT_LIVES_MS, EXPORT_LOST_MS, EXPORTS_RUNNING_MAX
from threadkeep.domain.commands import CreateExport, GetExport
from threadkeep.domain.errors import Refused, WarmUnavailable, not_found
from threadkeep.domain.exports import Export, ExportJob
from threadkeep.domain.model import Caller
from threadkeep.exporting import FORMS
from threadkeep.usecases.services import Reply, Services, read_own

_OWN: Final = {"owner", "region", "notes"}
"""What its owner is not told: who asks, where, and what its runs leave each other."""
_AGAIN_MS: Final = 60_000
"""When to ask again for an export beside those under way."""


def create(services: Services, caller: Caller, command: CreateExport) -> Reply:
    """Have the caller's conversations written to a file, or one of them; asked again, that is another export.

    Raises:
        Refused: ``not_found`` for a conversation that is not the caller's own, whatever else they may see;
            ``rate_limited`` while `EXPORTS_RUNNING_MAX` are under way.
    """
    if command.conversation is not None and read_own(services, caller, command.conversation).owner != caller.user:
        raise not_found()
    now_ms = services.clock.now_ms()
    export = Export(
        id=ids.mint(now_ms),
        owner=caller.user,
        region=services.region,
        format=command.format,
        state="running",
        created_at=times.to_rfc3339(now_ms),
        expires_at=times.to_rfc3339(now_ms + EXPORT_LIVES_MS),
        conversation=command.conversation,
    )
    if not services.exports.claim(caller.tenant, export, now_ms=now_ms, until_ms=now_ms + EXPORT_LOST_MS):
        raise Refused(
            "rate_limited",
            f"{EXPORTS_RUNNING_MAX} exports of yours are under way: wait until one is done.",
            retry_after_ms=_AGAIN_MS,
        )
    try:
        services.exports.put(caller.tenant, export)
        services.export_queue.send(ExportJob(tenant=caller.tenant, export=export.id))
    except WarmUnavailable:
        # Nobody was told its id, so that nobody asks after it. Its place would be taken until it counts as lost.
        with suppress(WarmUnavailable):
            services.exports.release(caller.tenant, export)
        raise
    return {"export": _shown(export)}


def get(services: Services, caller: Caller, command: GetExport) -> Reply:
    """How far it is; once it is done, with a link that works for `DOWNLOAD_URL_S`.

    Raises:
        Refused: ``not_found``, whether it is another's, has expired or never was.
    """
    now_ms = services.clock.now_ms()
    export = services.exports.read(caller.tenant, command.export, now_ms=now_ms)
    if export is None or export.owner != caller.user:
        raise not_found()
    if export.state == "running" and is_lost(export, now_ms):
        export = msgspec.structs.replace(export, state="failed", error="lost")
    shown = _shown(export)
    if export.state == "done":
        shown["url"] = services.export_files.presign_get(
            caller.tenant, export.id, region=export.region, name=_file_name(export), lives_s=DOWNLOAD_URL_S
        )
        shown["url_expires_at"] = times.to_rfc3339(now_ms + DOWNLOAD_URL_S * 1_000)
    return {"export": shown}


def is_lost(export: Export, now_ms: int) -> bool:
    """Whether it was asked for so long ago that nobody makes it any more, should it be unfinished."""
    return times.from_rfc3339(export.created_at) + EXPORT_LOST_MS <= now_ms


def _shown(export: Export) -> dict[str, Any]:
    """What its owner is told; counts of 0 too."""
    told = {name: value for name, value in msgspec.structs.asdict(export).items() if value is not None}
    return {name: value for name, value in told.items() if name not in _OWN}


def _file_name(export: Export) -> str:
    return f"threadkeep-{export.created_at[:10]}-{export.id[-6:]}.{FORMS[export.format].suffix}"
