"""The table, as the use cases see it: conversations and messages, manifests, what is due, erasures, exports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec
from msgspec import UNSET, UnsetType

from threadkeep.domain.archive import Manifest
from threadkeep.domain.contests import Claim, Head
from threadkeep.domain.erasure import ReceiptLine, Store, Tombstone
from threadkeep.domain.exports import Export
from threadkeep.domain.json_values import JsonObject
from threadkeep.domain.model import Conversation, ConversationKey, LiveStream, StoredMessage
from threadkeep.domain.tail import Several


class Gone(msgspec.Struct, frozen=True):
    """A conversation that was deleted, and its tombstone."""

    tombstone: Tombstone


class MessagePage(msgspec.Struct, frozen=True):
    """Messages, newest first; ``more`` if the store may hold older ones: at the very end, too, it may say so."""

    messages: tuple[StoredMessage, ...]
    more: bool


class ConversationPage(msgspec.Struct, frozen=True):
    """Conversations, newest activity first, and where to go on (None at the end)."""

    conversations: tuple[Conversation, ...]
    cursor: str | None


class WarmStore(Protocol):
    """The truth: strongly consistent within its region. Every method raises `WarmUnavailable`."""

    def create_conversation(
        self, tenant: str, conversation: Conversation, *, claimed_ms: int = 0
    ) -> Conversation | Gone | None:
        """Keep a new conversation; what stands there already is returned instead, untouched.

        ``claimed_ms`` is when its id was claimed; 0 where there is one region, and nobody to contend with.
        """
        ...

    def read_head(self, key: ConversationKey) -> Conversation | Gone | None:
        """Owner, title and metadata; ``active_at`` is the creation's, but the pulse's where there is a retention."""
        ...

    def read_active_at(self, key: ConversationKey) -> str | None:
        """When the conversation was last active, to the minute."""
        ...

    def update_conversation(
        self,
        key: ConversationKey,
        *,
        owner: str,
        title: str | UnsetType | None = UNSET,
        metadata: JsonObject | UnsetType = UNSET,
    ) -> Conversation | None:
        """Change what is given; None if that owner has no such conversation (any more)."""
        ...

    def list_conversations(self, tenant: str, owner: str, *, limit: int, cursor: str | None) -> ConversationPage:
        """A user's conversations. Eventually consistent."""
        ...

    def touch(self, key: ConversationKey, *, now_ms: int, ends_ms: int | None = None) -> None:
        """Note the activity: at most one write a minute, and none where there is no conversation.

        What the archive has taken out, or may be taking out just now, falls due again: after its idle time, or soon
        after ``ends_ms`` where that is told and earlier.
        """
        ...

    def put_message(self, tenant: str, stored: StoredMessage) -> StoredMessage | None:
        """Store a message once; the one that already has its id is returned instead, untouched."""
        ...

    def read_message(self, key: ConversationKey, message: str) -> StoredMessage | None:
        """One message."""
        ...

    def has_message(self, key: ConversationKey, message: str) -> bool:
        """Whether it is stored; reads nothing of its content."""
        ...

    def newest_id(self, key: ConversationKey) -> str | None:
        """Id of the newest settled message."""
        ...

    def read_first(self, key: ConversationKey) -> StoredMessage | Several | None:
        """The message with the oldest id, in page form as `read_messages` gives it; `SEVERAL` once that was said."""
        ...

    def note_several(self, key: ConversationKey) -> None:
        """Say, for good, that several messages are roots and one of them is a prompt. Again: nothing."""
        ...

    def read_messages(
        self,
        key: ConversationKey,
        *,
        before: str | None = None,
        after: str | None = None,
        limit: int,
        consistent: bool = True,
    ) -> MessagePage:
        """Messages of every branch with ids between the two bounds (both exclusive), newest first.

        Not ``consistent``, it costs half and may lack what was written a moment ago. One that no frame could carry
        comes without its parts: a page must not unpack megabytes to leave them out.
        """
        ...


class ManifestStore(Protocol):
    """Manifests of a conversation's segments. Strongly consistent. Raises `WarmUnavailable`."""

    def read(self, key: ConversationKey) -> tuple[Manifest, ...]:
        """All of them, by their first ids. One query."""
        ...

    def put(self, key: ConversationKey, manifest: Manifest) -> Manifest | None:
        """Keep it, unless one with its first id stands already, which is returned then."""
        ...

    def remove_messages(self, key: ConversationKey, messages: Sequence[str]) -> None:
        """Delete messages from the table that a segment holds. All of them, or it raises."""
        ...


class DueEntry(msgspec.Struct, frozen=True):
    """A conversation that falls due, and when (RFC 3339, as the index has it)."""

    key: ConversationKey
    due_at: str


class DueList(Protocol):
    """Which conversations are due for the archive. Reads are eventually consistent. Raises `WarmUnavailable`."""

    def read(self, day: str, shard: int, *, until_ms: int, limit: int, after: DueEntry | None) -> tuple[DueEntry, ...]:
        """Entries of one shard of one day (``2026-11-29``) that are due by then, the oldest first, after an entry."""
        ...

    def refile(self, entry: DueEntry, *, due_ms: int | None) -> bool:
        """Let it fall due then, or no more until it wakes up (None); False if it has moved since it was read.

        It moves when a conversation wakes up that has rested (`WarmStore.touch`): it is not taken out under that.
        """
        ...


class ErasureStore(Protocol):
    """Tombstones and receipts. Strongly consistent. Raises `WarmUnavailable`."""

    def put_tombstone(self, key: ConversationKey, tombstone: Tombstone) -> Tombstone | None:
        """Delete a conversation, for good: the tombstone stays. The one that stands already is returned instead."""
        ...

    def read(self, key: ConversationKey) -> tuple[Tombstone | None, tuple[ReceiptLine, ...]]:
        """The tombstone and the receipt as it stands."""
        ...

    def gone(self, keys: Sequence[ConversationKey]) -> frozenset[ConversationKey]:
        """Those of them that a tombstone stands for; one that was put a moment ago may be left out."""
        ...

    def note(
        self, key: ConversationKey, region: str, store: Store, *, count: int, is_pass: bool, is_done: bool, now_ms: int
    ) -> None:
        """Add to a store's line what was found there and removed, and the pass, if one is through.

        One step, so that two passes at once lose nothing of each other's. ``is_done`` ends the line, for good.
        """
        ...

    def clear(self, key: ConversationKey) -> int:
        """Remove items of the conversation, but never the tombstone or its receipt; how many, 0 if there are no more.

        At most `ERASURE_ITEMS_MAX` of them, so that they are counted soon; all of these, or it raises.
        """
        ...


class LiveRegister(Protocol):
    """Which of a conversation's streams live in which region, told to the others. Raises `WarmUnavailable`.

    Every region writes its own and no other's. It says where to look, not what is so: it lags behind, and what a lost
    hot tier forgot stands until its time is over.
    """

    def put(self, key: ConversationKey, live: LiveStream, *, until_ms: int) -> None:
        """Say that a stream lives in our region, with the region's endpoint; believed until then at the longest."""
        ...

    def remove(self, key: ConversationKey, stream: str) -> None:
        """It lives here no more; again, or never said: nothing."""
        ...

    def read_others(self, key: ConversationKey, *, now_ms: int) -> tuple[LiveStream, ...]:
        """Those of all other regions, in order of their ids, with ``region`` and ``endpoint``. One query."""
        ...


class OtherTables(Protocol):
    """The replicas of other regions, for what ours has not been given yet. Raises `WarmUnavailable`."""

    def read_message(self, region: str, key: ConversationKey, message: str) -> StoredMessage | None:
        """One message in page form, as that region has it. One call, which takes 2 s at the most."""
        ...

    def read_head(self, region: str, key: ConversationKey) -> Head | Gone | None:
        """A conversation's head, or that it was deleted, as that region has it; expired ones too.

        Two calls, which take 2 s each at the most.
        """
        ...

    def read_claim(self, region: str, key: ConversationKey) -> Claim | None:
        """Who claims a conversation's id there. One call, which takes 2 s at the most."""
        ...

    def read_active_at(self, region: str, key: ConversationKey) -> str | None:
        """When the conversation was last active, as that region knows; None where it has neither pulse nor message.

        The later of what its pulse says and of when its newest message began: of two pulses that regions wrote the
        table keeps one, but it loses no message. One call, which takes 2 s at the most.
        """
        ...


class ExportStore(Protocol):
    """Exports that were asked for; each is gone when it expires. Strongly consistent. Raises `WarmUnavailable`."""

    def claim(self, tenant: str, export: Export, *, now_ms: int, until_ms: int) -> bool:
        """Take one of the `EXPORTS_RUNNING_MAX` places of its owner; again: it has one. False where none is free.

        A place is free until somebody takes it, after its release, and from ``until_ms`` on.
        """
        ...

    def release(self, tenant: str, export: Export) -> None:
        """Give its place back, if it has one."""
        ...

    def put(self, tenant: str, export: Export) -> bool:
        """Write it, in place of what it was; False if that was finished or handed on already, and stays so."""
        ...

    def hand_on(self, tenant: str, export: Export, *, before: str | None) -> bool:
        """Write it with new ``notes``, in place of what it was with those from ``before``; again: it is so already.

        False if that was finished, handed on to another or never put, and stays so.
        """
        ...

    def read(self, tenant: str, export: str, *, now_ms: int) -> Export | None:
        """One of them; None for one that has expired, whether or not it still lies there."""
        ...
