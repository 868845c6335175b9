"""The writing of an export: from the stores to the bytes of its file, from one run to the next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import msgspec

from threadkeep.domain import times
from threadkeep.domain.archive import Damaged
from threadkeep.domain.bounds import (
    EXPORT_BYTES_MAX,
    EXPORT_CONVERSATIONS_MAX,
    EXPORT_PASSES_MAX,
    EXPORT_PROGRESS_MS,
    PAGE_ITEMS_MAX,
    PULSE_EVERY_MS,
)
from threadkeep.domain.errors import ExportFileGone, TierUnavailable
from threadkeep.domain.exports import Export, Growing, Notes
from threadkeep.domain.model import Conversation, ConversationKey
from threadkeep.exporting import FORMS, Entry
from threadkeep.usecases.export_file import ExportFile
from threadkeep.usecases.services import Services
from threadkeep.usecases.whole_history import newest_first, oldest_first

_NOTES: Final = msgspec.msgpack.Decoder(Notes)


class OutOfTime(Exception):  # noqa: N818 -- named for the state that it reports
    """There is more than one run can write."""


class Overtaken(Exception):  # noqa: N818 -- named for the state that it reports
    """Another run has finished the export, or handed it on."""


class _TooLarge(Exception):  # noqa: N818 -- named for the state that it reports
    """There is more than an export may hold."""


@dataclass(slots=True)
class _Counts:
    """Of a conversation, while it is written."""

    messages: int = 0
    skipped: int = 0


class Writing:
    """What a run does. Conversations come one after the other, newest activity first, each as far as it can be read.

    Args:
        services: the ports.
        tenant: of the export.
        export: as it stands in the table.
        noted: what the run before left; None: this is the first.
        until_ms: when the run has to have ended (ms since the epoch).
    """

    def __init__(self, services: Services, tenant: str, export: Export, noted: bytes | None, until_ms: int) -> None:
        self._services = services
        self._tenant = tenant
        self._export = export
        self._form = FORMS[export.format]
        self._until_ms = until_ms
        self._told_ms = services.clock.now_ms()
        self._notes = Notes() if noted is None else _NOTES.decode(noted)
        """As they stand between two conversations: while one is written nothing is changed in them."""
        self._inherited = self._notes.file
        self._file = None if self._inherited is None else self._grow(self._inherited)
        self._began_at = self._place()

    def finished(self) -> Export:
        """The export, done or failed, once all is written. What was deleted or expired meanwhile is not in its file.

        Raises:
            OutOfTime: the run is over; `notes` says where the next goes on.
            Overtaken: it is another run's.
        """
        try:
            while not self._is_sound():
                if self._notes.passes + 1 >= EXPORT_PASSES_MAX:
                    return self._failed("unsettled")
                self.drop()
                self._notes = Notes(passes=self._notes.passes + 1)
        except _TooLarge:
            return self._failed("too_large")
        if self._export.conversation is not None and not self._notes.written:
            return self._failed("not_found")
        return msgspec.structs.replace(self.counted(), state="done")

    def counted(self) -> Export:
        """The export with what has been written so far."""
        notes = self._notes
        size_bytes = self._file.size_bytes if self._file is not None else notes.size_bytes or 0
        return msgspec.structs.replace(
            self._export,
            conversations=len(notes.written),
            messages=notes.messages,
            skipped=notes.skipped,
            bytes=size_bytes,
        )

    def notes(self) -> bytes:
        """Where the next run goes on: behind the last conversation that is written to its end."""
        file = None if self._file is None else self._file.marked()
        return msgspec.msgpack.encode(msgspec.structs.replace(self._notes, file=file))

    def has_gone_on(self) -> bool:
        """Whether the next run would begin further on than this one did."""
        return self._place() != self._began_at

    def drop(self, *, begun_here_alone: bool = False) -> None:
        """Let go of the file as far as it is; of none that a run before began, if so told: its notes name it.

        Where it cannot be reached its parts stay, until the bucket's own rule takes them.
        """
        if self._file is None or (begun_here_alone and self._inherited is not None):
            return
        with suppress(TierUnavailable):
            self._file.abort()
        self._file = self._inherited = None

    def _place(self) -> tuple[int, int | None, int | None]:
        notes = self._notes
        return notes.passes, None if notes.left is None else len(notes.left), notes.size_bytes

    def _is_sound(self) -> bool:
        """Write what is missing; whether the file has all that it should, and nothing that it should not."""
        try:
            if self._notes.size_bytes is None:
                self._write()
        except ExportFileGone:
            return False
        return not self._has_lost_some()

    def _write(self) -> None:
        notes = self._notes
        if notes.left is None:
            notes.left = list(self._conversations().items())[::-1]
        file = self._file or self._begin()
        while notes.left:
            identifier, active_at = notes.left[-1]
            conversation = self._read(identifier)
            if conversation is not None:
                self._write_one(file, conversation, active_at)
            notes.left.pop()
            file.mark()
            self._tell()
        file.add([self._form.end()])
        self._tell(now=True)  # whoever has been overtaken puts no file in place of another's
        file.finish()
        notes.size_bytes, self._file, self._inherited = file.size_bytes, None, None

    def _begin(self) -> ExportFile:
        upload = self._services.export_files.begin(self._tenant, self._export.id)
        file = self._file = self._grow(Growing(upload))
        file.add([self._form.start()])
        file.mark()
        return file

    def _grow(self, begun: Growing) -> ExportFile:
        return ExportFile(self._services.export_files, self._tenant, self._export.id, begun)

    def _write_one(self, file: ExportFile, conversation: Conversation, active_at: str) -> None:
        notes, counts = self._notes, _Counts()
        shown = msgspec.structs.replace(conversation, active_at=max(active_at, conversation.active_at))
        entries = self._entries(conversation.id, counts)
        for piece in self._form.conversation(shown, entries, is_first=not notes.written):
            file.add([piece])
            if file.size_bytes > EXPORT_BYTES_MAX:
                raise _TooLarge
        notes.written.append(conversation.id)
        if conversation.expires_ms is not None:
            notes.expiring.append((conversation.id, conversation.expires_ms))
        notes.messages += counts.messages
        notes.skipped += counts.skipped

    def _has_lost_some(self) -> bool:
        """Whether any of what was written has been deleted since, or has expired.

        A retention that had not ended by the time that was read has not: activity moves its end on, nothing back.
        """
        written = self._notes.written
        for start in range(0, len(written), PAGE_ITEMS_MAX):
            self._check_time()
            page = written[start : start + PAGE_ITEMS_MAX]
            if self._services.erasures.gone([ConversationKey(self._tenant, identifier) for identifier in page]):
                return True
        now_ms = self._services.clock.now_ms()
        ended = [identifier for identifier, expires_ms in self._notes.expiring if expires_ms <= now_ms]
        return any(self._read(identifier) is None for identifier in ended)

    def _failed(self, error: str) -> Export:
        return msgspec.structs.replace(self.counted(), state="failed", error=error)

    def _conversations(self) -> dict[str, str]:
        """Their ids, and when each was last active."""
        one = self._export.conversation
        if one is None:
            return self._all()
        return {one: self._services.warm.read_active_at(ConversationKey(self._tenant, one)) or ""}

    def _all(self) -> dict[str, str]:
        """The ids of all the owner's conversations, newest activity first, and when each was last active.

        Listed at once, before any is read. One that becomes active meanwhile moves to the front of the list, perhaps
        past where the reading has come to: so the front is read again, as far as it has changed, until that shows
        nothing new.
        """
        found: dict[str, str] = {}
        since: str | None = None
        while True:
            known = len(found)
            begun = times.to_rfc3339(self._services.clock.now_ms() - PULSE_EVERY_MS)
            for conversation in self._listed(since):
                found[conversation.id] = conversation.active_at
                if len(found) > EXPORT_CONVERSATIONS_MAX:
                    raise _TooLarge
            if since is not None and len(found) == known:
                return found
            since = begun

    def _listed(self, since: str | None) -> Iterator[Conversation]:
        cursor: str | None = None
        while True:
            self._check_time()  # of an owner for whom something begins all the time there is always more
            page = self._services.warm.list_conversations(
                self._tenant, self._export.owner, limit=PAGE_ITEMS_MAX, cursor=cursor
            )
            for conversation in page.conversations:
                if since is not None and conversation.active_at < since:
                    return
                yield conversation
            cursor = page.cursor
            if cursor is None:
                return

    def _read(self, identifier: str) -> Conversation | None:
        """The conversation, if it is the owner's and there to be seen."""
        self._check_time()
        head = self._services.warm.read_head(ConversationKey(self._tenant, identifier))
        if not isinstance(head, Conversation) or head.owner != self._export.owner:
            return None
        return None if head.is_expired(self._services.clock.now_ms()) else head

    def _entries(self, identifier: str, counts: _Counts) -> Iterator[Entry]:
        key = ConversationKey(self._tenant, identifier)
        read = oldest_first if self._form.oldest_first else newest_first
        for entry in read(self._services, key):
            self._check_time()
            if isinstance(entry, Damaged):
                counts.skipped += entry.count
            else:
                counts.messages += 1
            yield entry

    def _check_time(self) -> None:
        if self._services.clock.now_ms() >= self._until_ms:
            raise OutOfTime

    def _tell(self, *, now: bool = False) -> None:
        """Let the owner see how far it is, from time to time."""
        now_ms = self._services.clock.now_ms()
        if now or now_ms - self._told_ms >= EXPORT_PROGRESS_MS:
            if not self._services.exports.put(self._tenant, self.counted()):
                raise Overtaken
            self._told_ms = now_ms
