"""The warm tier in memory: the reference, and a fake for tests."""

from __future__ import annotations

import threading

import msgspec
from msgspec import UNSET, UnsetType

from threadkeep.domain import times
from threadkeep.domain.archive import Manifest, due_ms
from threadkeep.domain.bounds import ARCHIVE_IDLE_MS, PULSE_EVERY_MS
from threadkeep.domain.contests import Claim, Head
from threadkeep.domain.erasure import Tombstone
from threadkeep.domain.errors import WarmUnavailable
from threadkeep.domain.json_values import JsonObject
from threadkeep.domain.model import Conversation, ConversationKey, LiveStream, StoredMessage
from threadkeep.domain.tail import SEVERAL, Several
from threadkeep.ports import ConversationPage, Gone, MessagePage
from threadkeep.stores.list_cursor import ListCursor
from threadkeep.stores.warm_items import in_page


class WarmMemory:
    """`threadkeep.ports.WarmStore` on dictionaries.

    Attributes:
        gone: the tombstones of conversations that were deleted.
        several: conversations of several roots, one of them a prompt.
        messages, manifests, due_at: what lies in the table beside heads; other stores share it.
        claims: who claims the id where, by region.
        live: what streams where: by region, each stream with until when that is believed (ms).
        lagging: ids of messages that pages do not show yet unless they are read consistently, as on a replica behind.
        active_at: when conversations were last active, to the minute.
        listed_with: whose list a conversation is in, as its pulse says.
        unavailable: while set, every call raises `WarmUnavailable`.

    Args:
        idle_ms: how long a conversation rests before it is for the archive.
    """

    def __init__(self, *, idle_ms: int = ARCHIVE_IDLE_MS) -> None:
        self.gone: dict[ConversationKey, Tombstone] = {}
        self.messages: dict[ConversationKey, dict[str, StoredMessage]] = {}
        self.several: set[ConversationKey] = set()
        self.manifests: dict[ConversationKey, dict[str, Manifest]] = {}
        self.due_at: dict[ConversationKey, str] = {}
        self.claims: dict[ConversationKey, dict[str, Claim]] = {}
        self.live: dict[ConversationKey, dict[str, dict[str, tuple[LiveStream, int]]]] = {}
        self.active_at: dict[ConversationKey, str] = {}
        self.listed_with: dict[ConversationKey, str] = {}
        self.lagging: set[str] = set()
        self.unavailable = False
        self._heads: dict[ConversationKey, Conversation] = {}
        self._claimed_ms: dict[ConversationKey, int] = {}
        self._idle_ms = idle_ms
        self._lock = threading.Lock()

    def create_conversation(
        self, tenant: str, conversation: Conversation, *, claimed_ms: int = 0
    ) -> Conversation | Gone | None:
        """See `WarmStore`."""
        self.check_available()
        key = ConversationKey(tenant, conversation.id)
        with self._lock:
            existing = self._head(key)
            if existing is None:
                self._heads[key] = msgspec.structs.replace(conversation, active_at=conversation.created_at)
                self._claimed_ms[key] = claimed_ms
                active_ms = times.from_rfc3339(conversation.active_at)
                self.active_at[key] = conversation.active_at
                self.listed_with[key] = conversation.owner
                self.due_at[key] = self._due_at(active_ms, ends_ms=conversation.expires_ms)
        return existing

    def read_head(self, key: ConversationKey) -> Conversation | Gone | None:
        """See `WarmStore`."""
        self.check_available()
        return self._head(key)

    def standing_head(self, key: ConversationKey) -> Head | None:
        """The head's item, whether or not a tombstone stands beside it."""
        head = self._heads.get(key)
        return None if head is None else Head(head, self._claimed_ms.get(key, 0))

    def put_standing_head(self, key: ConversationKey, head: Head | None) -> None:
        """Put the head's item, whatever stands there; None: remove it."""
        if head is None:
            self._heads.pop(key, None)
            self._claimed_ms.pop(key, None)
        else:
            self._heads[key], self._claimed_ms[key] = head.conversation, head.claimed_ms

    def read_active_at(self, key: ConversationKey) -> str | None:
        """See `WarmStore`."""
        self.check_available()
        return self.active_at.get(key)

    def update_conversation(
        self,
        key: ConversationKey,
        *,
        owner: str,
        title: str | UnsetType | None = UNSET,
        metadata: JsonObject | UnsetType = UNSET,
    ) -> Conversation | None:
        """See `WarmStore`."""
        self.check_available()
        with self._lock:
            head = self._head(key)
            if not isinstance(head, Conversation) or head.owner != owner:
                return None
            if title is not UNSET:
                head = msgspec.structs.replace(head, title=title)
            if metadata is not UNSET:
                head = msgspec.structs.replace(head, metadata=dict(metadata))
            self._heads[key] = head
            return head

    def list_conversations(self, tenant: str, owner: str, *, limit: int, cursor: str | None) -> ConversationPage:
        """See `WarmStore`."""
        self.check_available()
        place = None if cursor is None else ListCursor.from_text(cursor)
        own = [
            msgspec.structs.replace(head, active_at=self.active_at[key])
            for key, head in self._heads.items()
            if key.tenant == tenant and head.owner == owner and key not in self.gone
            if self.listed_with.get(key) == owner
        ]
        own.sort(key=lambda conversation: (conversation.active_at, conversation.id), reverse=True)
        if place is not None:
            own = [found for found in own if (found.active_at, found.id) < (place.active_at, place.conversation)]
        page = own[:limit]
        more = len(own) > limit
        return ConversationPage(tuple(page), ListCursor(page[-1].active_at, page[-1].id).to_text() if more else None)

    def touch(self, key: ConversationKey, *, now_ms: int, ends_ms: int | None = None) -> None:
        """See `WarmStore`."""
        self.check_available()
        with self._lock:
            active_at = self.active_at.get(key)
            if active_at is None:
                return
            if key not in self.due_at or active_at < times.to_rfc3339(now_ms - self._idle_ms):
                self.due_at[key] = self._due_at(now_ms, ends_ms)
            if active_at < times.to_rfc3339(now_ms - PULSE_EVERY_MS):
                self.active_at[key] = times.to_rfc3339(now_ms)

    def put_message(self, tenant: str, stored: StoredMessage) -> StoredMessage | None:
        """See `WarmStore`."""
        self.check_available()
        message = stored.message
        if message.parts is UNSET:
            raise ValueError(f"message {message.id} must be stored with its parts")
        with self._lock:
            messages = self.messages.setdefault(ConversationKey(tenant, message.conversation), {})
            existing = messages.get(message.id)
            messages.setdefault(message.id, stored)
            return existing

    def read_message(self, key: ConversationKey, message: str) -> StoredMessage | None:
        """See `WarmStore`."""
        self.check_available()
        return self.messages.get(key, {}).get(message)

    def has_message(self, key: ConversationKey, message: str) -> bool:
        """See `WarmStore`."""
        self.check_available()
        return message in self.messages.get(key, {})

    def newest_id(self, key: ConversationKey) -> str | None:
        """See `WarmStore`."""
        self.check_available()
        return max(self.messages.get(key, {}), default=None)

    def note_several(self, key: ConversationKey) -> None:
        """See `WarmStore`."""
        self.check_available()
        self.several.add(key)

    def read_first(self, key: ConversationKey) -> StoredMessage | Several | None:
        """See `WarmStore`."""
        self.check_available()
        if key in self.several:
            return SEVERAL
        messages = self.messages.get(key, {})
        return in_page(messages[min(messages)]) if messages else None

    def read_messages(
        self,
        key: ConversationKey,
        *,
        before: str | None = None,
        after: str | None = None,
        limit: int,
        consistent: bool = True,
    ) -> MessagePage:
        """See `WarmStore`."""
        self.check_available()
        found = [
            in_page(stored)
            for identifier, stored in sorted(self.messages.get(key, {}).items(), reverse=True)
            if (before is None or identifier < before) and (after is None or identifier > after)
            if consistent or identifier not in self.lagging
        ]
        return MessagePage(tuple(found[:limit]), more=len(found) > limit)

    def _head(self, key: ConversationKey) -> Conversation | Gone | None:
        if key in self.gone:
            return Gone(self.gone[key])
        head = self._heads.get(key)
        if head is None or head.retention_days is None:
            return head
        return msgspec.structs.replace(head, active_at=self.active_at.get(key, head.active_at))

    def _due_at(self, active_ms: int, ends_ms: int | None = None) -> str:
        return times.to_rfc3339(due_ms(active_ms, idle_ms=self._idle_ms, ends_ms=ends_ms))

    def clear(self, key: ConversationKey) -> int:
        """Forget everything of a conversation but its tombstone; how many items there were."""
        count = 0
        for held in (self._heads, self.active_at, self.due_at):
            count += held.pop(key, None) is not None
        self._claimed_ms.pop(key, None)
        self.listed_with.pop(key, None)
        count += key in self.several
        self.several.discard(key)
        count += len(self.live.pop(key, ())) + len(self.claims.pop(key, ()))
        return count + len(self.messages.pop(key, ())) + len(self.manifests.pop(key, ()))

    def check_available(self) -> None:
        """Raises `WarmUnavailable` while it is told to be away."""
        if self.unavailable:
            raise WarmUnavailable("the warm tier in memory is told to be unavailable")
