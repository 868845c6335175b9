"""One pass over all that an export holds, from the stores to the bytes of its file."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from threadkeep.domain import times
from threadkeep.domain.archive import Damaged
from threadkeep.domain.bounds import EXPORT_PROGRESS_MS, PAGE_ITEMS_MAX, PULSE_EVERY_MS
from threadkeep.domain.exports import Export
from threadkeep.domain.model import Conversation, ConversationKey
from threadkeep.exporting import FORMS, Entry
from threadkeep.usecases.services import Services
from threadkeep.usecases.whole_history import newest_first, oldest_first


class OutOfTime(Exception):  # noqa: N818 -- named for the state that it reports
    """There is more than one run can write."""


class Writing:
    """A pass. Conversations come one after the other, newest activity first, each as far as it can be read.

    Args:
        services: the ports.
        tenant: of the export.
        export: as it stands in the table.
        until_ms: when the pass has to have ended (ms since the epoch); every method raises `OutOfTime` then.
    """

    def __init__(self, services: Services, tenant: str, export: Export, until_ms: int) -> None:
        self._services = services
        self._tenant = tenant
        self._export = export
        self._form = FORMS[export.format]
        self._until_ms = until_ms
        self._written: list[str] = []
        self._expiring: list[str] = []
        self._messages = self._skipped = self._bytes = 0
        self._told_ms = services.clock.now_ms()

    def pieces(self) -> Iterator[bytes]:
        """The file, piece by piece."""
        for piece in self._pieces():
            self._bytes += len(piece)
            yield piece

    def has_lost_some(self) -> bool:
        """Whether any of what was written has been deleted since, or has expired."""
        for start in range(0, len(self._written), PAGE_ITEMS_MAX):
            self._check_time()
            page = self._written[start : start + PAGE_ITEMS_MAX]
            if self._services.erasures.gone([ConversationKey(self._tenant, identifier) for identifier in page]):
                return True
        return any(self._read(identifier) is None for identifier in self._expiring)

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
            if conversation.retention_days is not None:
                self._expiring.append(identifier)
            yield from self._form.conversation(conversation, self._entries(identifier), is_first=is_first)
            self._tell()
        yield self._form.end()

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
            raise OutOfTime

    def _tell(self) -> None:
        """Let the owner see how far it is. Another run may have finished it: then that stays as it is."""
        now_ms = self._services.clock.now_ms()
        if now_ms - self._told_ms >= EXPORT_PROGRESS_MS:
            self._services.exports.put(self._tenant, self.counted(self._bytes))
            self._told_ms = now_ms
