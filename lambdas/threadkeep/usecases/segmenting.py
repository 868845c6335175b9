"""One pass over the warm part of a resting conversation: from the table into segments, and out of the table.

A message leaves the table only once a segment that holds it has settled and was seen in every region as it was
written. Until then it lies in both, and readers merge by id; so a pass may break off anywhere, and the next goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from msgspec import UNSET

from threadkeep import telemetry
from threadkeep.domain.archive import Manifest, Member, SegmentDamaged, unarchived_until_ms
from threadkeep.domain.bounds import (
    ARCHIVE_PASS_REMOVED_MAX,
    ARCHIVE_PASS_SEGMENTS_MAX,
    SEGMENT_BYTES_MAX,
    SEGMENT_MESSAGES_MAX,
)
from threadkeep.domain.json_values import encode
from threadkeep.domain.model import ConversationKey, StoredMessage
from threadkeep.ports import Gone
from threadkeep.usecases.holdings import Holdings
from threadkeep.usecases.services import Services

MESSAGES_AT_ONCE: Final = 200


class Deleted(Exception):  # noqa: N818 -- named for what has happened
    """The conversation was deleted while it was being archived."""


class Segmenting:
    """A pass. `run` it, then ask.

    Args:
        services: the ports.
        key: the conversation.

    Attributes:
        segments, archived: segments that were written, and their messages.
        removed: messages that have left the table.
        left: those that have not.
        stuck: of these, those that cannot be archived as things are.
        fresh: of these, those too young to be in any segment (`threadkeep.domain.archive.unarchived_until_ms`).
        fresh_until_ms: when the last of them will not be.
        is_whole: False where the pass has ended at its bound.
    """

    def __init__(self, services: Services, key: ConversationKey) -> None:
        self._services = services
        self._key = key
        self._manifests = services.manifests.read(key)
        self._holdings = Holdings(services.cold, key, self._manifests)
        self._settled_ms = services.clock.now_ms() - services.archive_settle_ms
        self._checked: set[str] = set()
        self._proven: set[str] = set()
        self._pending: list[StoredMessage] = []
        self._pending_bytes = 0
        self.segments = self.archived = self.removed = self.left = self.stuck = self.fresh = 0
        self.fresh_until_ms = 0
        self.is_whole = True

    def run(self) -> None:
        """Go through the conversation, newest first.

        Raises:
            Deleted: a tombstone was met; what was written has no manifest.
            WarmUnavailable: a store could not be reached.
        """
        for page in self._pages():
            messages = self._old_enough(page)
            holders = self._holders([stored.message.id for stored in reversed(messages)])
            proven = [one for one, held in holders.items() if any(found.object_key in self._proven for found in held)]
            if proven:
                self._services.manifests.remove_messages(self._key, proven)
            self.removed += len(proven)
            self.left += len(page) - len(proven)
            for stored in messages:
                if not holders[stored.message.id]:
                    self._add(stored)
            if self.segments >= ARCHIVE_PASS_SEGMENTS_MAX or self.removed >= ARCHIVE_PASS_REMOVED_MAX:
                self.is_whole = False
                return
        self._write()
        self.stuck = len(self._pending)

    def _pages(self, *, after: str | None = None, before: str | None = None) -> Iterator[tuple[StoredMessage, ...]]:
        while True:
            page = self._services.warm.read_messages(self._key, before=before, after=after, limit=MESSAGES_AT_ONCE)
            if page.messages:
                yield page.messages
                before = page.messages[-1].message.id
            if not page.more:
                return

    def _old_enough(self, page: Sequence[StoredMessage]) -> list[StoredMessage]:
        """Those that may be in a segment. The others are noted: readers would not look for them there."""
        idle_ms, now_ms = self._services.archive_idle_ms, self._services.clock.now_ms()
        whole_ms = unarchived_until_ms(self._key.conversation, idle_ms=idle_ms)
        old: list[StoredMessage] = []
        for stored in page:
            until_ms = max(whole_ms, unarchived_until_ms(stored.message.id, idle_ms=idle_ms))
            if until_ms <= now_ms:
                old.append(stored)
            else:
                self.fresh += 1
                self.fresh_until_ms = max(self.fresh_until_ms, until_ms)
        return old

    # --- into segments ----------------------------------------------------------------------------------------

    def _add(self, stored: StoredMessage) -> None:
        """Gather a message, older than all before, for the next segment."""
        whole = self._whole(stored)
        if whole is None:
            return  # another archiver was quicker
        size_bytes = len(encode(whole))
        if len(self._pending) == SEGMENT_MESSAGES_MAX or self._pending_bytes + size_bytes > SEGMENT_BYTES_MAX:
            self._write()
        self._pending.append(whole)
        self._pending_bytes += size_bytes

    def _whole(self, stored: StoredMessage) -> StoredMessage | None:
        if stored.message.parts is not UNSET:
            return stored
        return self._services.warm.read_message(self._key, stored.message.id)

    def _write(self) -> None:
        """Write what was gathered, but for messages by whose id a damaged segment goes: it cannot be the first."""
        firsts = {manifest.first for manifest in self._manifests}
        messages = self._pending[::-1]
        start = next((place for place, one in enumerate(messages) if one.message.id not in firsts), len(messages))
        self._pending = messages[:start][::-1]
        self._pending_bytes = sum(len(encode(stored)) for stored in self._pending)
        if start == len(messages):
            return
        written = self._services.cold.write(self._key, messages[start:], now_ms=self._services.clock.now_ms())
        self._check_deleted()
        # It begins to settle when readers can know of it.
        manifest = msgspec.structs.replace(written, archived_ms=self._services.clock.now_ms())
        standing = self._services.manifests.put(self._key, manifest)
        if standing is None:  # else another archiver's; the next pass looks what it holds
            self.segments += 1
            self.archived += manifest.count

    def _check_deleted(self) -> None:
        """Look for the tombstone, after everything that is written.

        Raises:
            Deleted: there it is.
        """
        if isinstance(self._services.warm.read_head(self._key), Gone):
            raise Deleted

    # --- what segments hold -----------------------------------------------------------------------------------

    def _holders(self, messages: Sequence[str]) -> dict[str, list[Manifest]]:
        """The segments that hold these messages (ids in rising order), each as it was written wherever it matters."""
        while True:
            holders = self._holdings.holders(messages)
            found = {manifest.object_key: manifest for held in holders.values() for manifest in held}
            doubted = {manifest.object_key: manifest for manifest in self._holdings.damaged}
            doubted |= {name: manifest for name, manifest in found.items() if manifest.archived_ms <= self._settled_ms}
            unchecked = [manifest for name, manifest in doubted.items() if name not in self._checked]
            if not unchecked:
                return holders
            for manifest in unchecked:
                self._check(manifest)

    def _check(self, manifest: Manifest) -> None:
        """See that every region has the segment as it was written, and put it there again where one has not."""
        self._checked.add(manifest.object_key)
        is_sound = manifest not in self._holdings.damaged and not self._services.cold.missing_in(self._key, manifest)
        if not is_sound:
            is_sound = self._restore(manifest)
            self._check_deleted()
            if is_sound:
                self._holdings.restored(manifest)
                telemetry.count("SegmentsRestored")
            else:
                self._holdings.given_up(manifest)
                telemetry.count("SegmentsDamaged")
                telemetry.logger().error(
                    "A segment cannot be restored; what the table still has of it is archived again",
                    conversation=self._key.conversation,
                    segment=[manifest.first, manifest.last],
                )
        if is_sound and manifest.archived_ms <= self._settled_ms:
            self._proven.add(manifest.object_key)

    def _restore(self, manifest: Manifest) -> bool:
        try:
            self._services.cold.mend(self._key, manifest)
        except SegmentDamaged:
            return self._write_again(manifest)
        return True

    def _write_again(self, manifest: Manifest) -> bool:
        """Write a segment that no region has anew, of what can be read of it and what the table still has."""
        messages: list[StoredMessage] = []
        for member in manifest.members:
            try:
                own = self._read(manifest, member)
            except SegmentDamaged:
                own = self._warm_between(member.first, member.last)
            if len(own) != member.count:
                return False
            messages += own
        written = self._services.cold.write(self._key, messages, now_ms=self._services.clock.now_ms())
        return written.object_key == manifest.object_key

    def _read(self, manifest: Manifest, member: Member) -> list[StoredMessage]:
        cold = self._services.cold
        shown = cold.read(self._key, manifest, [member])
        whole = [
            cold.read_whole(self._key, manifest, member, one.message.id) if one.message.parts is UNSET else one
            for one in shown
        ]
        return [stored for stored in whole if stored is not None]

    def _warm_between(self, first: str, last: str) -> list[StoredMessage]:
        """What the table has between two ids (both inclusive), whole and in order."""
        # Both bounds are exclusive: a text just below the first, one just behind the last.
        pages = self._pages(after=first[:-1], before=last + "~")
        shown = [stored for page in pages for stored in page if stored.message.id >= first]
        whole = [self._whole(stored) for stored in reversed(shown)]
        return [stored for stored in whole if stored is not None]
