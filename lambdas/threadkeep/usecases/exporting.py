"""The making of an export: every conversation of its owner, or one, read once and written to a file as it is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from threadkeep.domain import times
from threadkeep.domain.archive import Damaged
from threadkeep.domain.bounds import (
    EXPORT_ATTEMPTS_MAX,
    EXPORT_PASSES_MAX,
    EXPORT_PAUSE_S,
    EXPORT_PROGRESS_MS,
    PAGE_ITEMS_MAX,
    PULSE_EVERY_MS,
    QUEUE_DELAY_S_MAX,
)
from threadkeep.domain.errors import TierUnavailable
from threadkeep.domain.exports import Export, ExportJob
from threadkeep.domain.model import Conversation, ConversationKey
from threadkeep.exporting import FORMS, Entry
from threadkeep.usecases.exports import is_lost
from threadkeep.usecases.services import Services
from threadkeep.usecases.whole_history import newest_first, oldest_first

Outcome = Literal["done", "failed", "again", "nothing"]
"""``again``: a store could not be reached, and it is tried later. ``nothing``: it was finished before, or is gone."""


class _OutOfTime(Exception):  # noqa: N818 -- named for the state that it reports
    """There is more than one run can write."""


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
    except _OutOfTime:
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
        writing = _Writing(services, tenant, export, until_ms)
        size_bytes = services.export_files.write(tenant, export.id, writing.pieces())
        if not writing.has_lost_some():
            counted = writing.counted(size_bytes)
            if export.conversation is not None and counted.conversations == 0:
                return _failed(counted, "not_found")
            return msgspec.structs.replace(counted, state="done")
    return _failed(export, "unsettled")


class _Writing:
    """One pass over all that is exported."""

    def __init__(self, services: Services, tenant: str, export: Export, until_ms: int) -> None:
        self._services = services
        self._tenant = tenant
        self._export = export
        self._form = FORMS[export.format]
        self._until_ms = until_ms
        self._written: list[str] = []
        self._messages = self._skipped = self._bytes = 0
        self._told_ms = services.clock.now_ms()

    def pieces(self) -> Iterator[bytes]:
        """The file, piece by piece."""
        for piece in self._pieces():
            self._bytes += len(piece)
            yield piece

    def has_lost_some(self) -> bool:
        """Whether any of what was written has been deleted since, or has expired."""
        return any(self._read(identifier) is None for identifier in self._written)

    def counted(self, size_bytes: int) -> Export:
        """The export with what has been written so far."""
        return msgspec.structs.replace(
            self._export,
            conversations=len(self._written),
            messages=self._messages,
            skipped=self._skipped,
            bytes=size_bytes,
        )

    def _pieces(self) -> Iterator[bytes]:
        yield self._form.start()
        for identifier, active_at in self._conversations().items():
            conversation = self._read(identifier)
            if conversation is None:
                continue
            conversation = msgspec.structs.replace(conversation, active_at=max(active_at, conversation.active_at))
            is_first = not self._written
            self._written.append(identifier)
            yield from self._form.conversation(conversation, self._entries(identifier), is_first=is_first)
            self._tell()
        yield self._form.end()

    def _conversations(self) -> dict[str, str]:
        """Their ids, and when each was last active."""
        one = self._export.conversation
        if one is None:
            return _all_of(self._services, self._tenant, self._export.owner)
        return {one: self._services.warm.read_active_at(ConversationKey(self._tenant, one)) or ""}

    def _read(self, identifier: str) -> Conversation | None:
        """The conversation, if it is the owner's and there to be seen."""
        self._check_time()
        head = self._services.warm.read_head(ConversationKey(self._tenant, identifier))
        if not isinstance(head, Conversation) or head.owner != self._export.owner:
            return None
        return None if head.is_expired(self._services.clock.now_ms()) else head

    def _entries(self, identifier: str) -> Iterator[Entry]:
        key = ConversationKey(self._tenant, identifier)
        read = oldest_first if self._form.oldest_first else newest_first
        for entry in read(self._services, key):
            self._check_time()
            if isinstance(entry, Damaged):
                self._skipped += entry.count
            else:
                self._messages += 1
            yield entry

    def _check_time(self) -> None:
        if self._services.clock.now_ms() >= self._until_ms:
            raise _OutOfTime

    def _tell(self) -> None:
        """Let the owner see how far it is. Another run may have finished it: then that stays as it is."""
        now_ms = self._services.clock.now_ms()
        if now_ms - self._told_ms >= EXPORT_PROGRESS_MS:
            self._services.exports.put(self._tenant, self.counted(self._bytes))
            self._told_ms = now_ms


def _all_of(services: Services, tenant: str, owner: str) -> dict[str, str]:
    """The ids of all the owner's conversations, newest activity first, and when each was last active.

    Listed at once, before any is read. One that becomes active meanwhile moves to the front of the list, perhaps past
    where the reading has come to: so the front is read again, as far as it has changed, until that shows nothing new.
    """
    found: dict[str, str] = {}
    since: str | None = None
    while True:
        known = len(found)
        begun = times.to_rfc3339(services.clock.now_ms() - PULSE_EVERY_MS)
        for conversation in _listed(services, tenant, owner, since):
            found[conversation.id] = conversation.active_at
        if since is not None and len(found) == known:
            return found
        since = begun


def _listed(services: Services, tenant: str, owner: str, since: str | None) -> Iterator[Conversation]:
    cursor: str | None = None
    while True:
        page = services.warm.list_conversations(tenant, owner, limit=PAGE_ITEMS_MAX, cursor=cursor)
        for conversation in page.conversations:
            if since is not None and conversation.active_at < since:
                return
            yield conversation
        cursor = page.cursor
        if cursor is None:
            return
