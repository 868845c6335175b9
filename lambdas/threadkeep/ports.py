"""What the use cases ask of the outside. Each port has a suite in tests/contract that every implementation passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Protocol

import msgspec
from msgspec import UNSET, Meta, UnsetType

from threadkeep.domain.commands import Id
from threadkeep.domain.json_values import JsonObject
from threadkeep.domain.model import Conversation, ConversationKey, LiveStream, StoredMessage
from threadkeep.domain.streams import (
    AppendVerdict,
    Facts,
    Full,
    OpenVerdict,
    ResumeVerdict,
    Seal,
    SealVerdict,
    Writer,
)
from threadkeep.domain.uploads import Upload


class Clock(Protocol):
    """The time, so that tests can own it."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        ...


class HotStore(Protocol):
    """The live tier: lossy, one conversation in one slot, one step a verb. Every method raises `HotUnavailable`."""

    def open(
        self,
        key: ConversationKey,
        stream: str,
        *,
        writer: Writer,
        facts: Facts,
        held: int | None = None,
        takeover: bool = False,
        fork: bool = False,
        leaf: str | None = None,
        parent_settled: bool = True,
    ) -> OpenVerdict:
        """Open a stream. ``leaf`` is the newest settled message; live streams that are newer come before it.

        ``parent_settled`` says whether the table holds the parent (a root's always is). Of a new stream's place is
        judged, in this order: parent other than the leaf, without ``fork`` → `StaleLeaf`; parent live → `ParentOpen`;
        parent nowhere → `ParentMissing`; too many live streams → `Full`.

        The leaf is judged for a new stream only, and not for one whose producer names the epoch it ``held``: that
        one is going on with an answer whose place was judged when it began.
        """
        ...

    def append(
        self, key: ConversationKey, stream: str, *, principal: str, epoch: int, offset: int, ops: bytes
    ) -> AppendVerdict:
        """Append one batch of ops and renew the lease."""
        ...

    def seal(
        self, key: ConversationKey, stream: str, *, principal: str, epoch: int, offset: int, seal: Seal
    ) -> SealVerdict:
        """Fix the end of a stream; later appends are refused."""
        ...

    def settle(self, key: ConversationKey, stream: str) -> tuple[str, ...]:
        """Drop the log of a stream whose message is stored; its state stays for late writers. Returns the viewers."""
        ...

    def resume(self, key: ConversationKey, stream: str, *, epoch: int, offset: int) -> ResumeVerdict:
        """A page of the log from that place, or from 0 where that place is of another epoch."""
        ...

    def live(self, key: ConversationKey) -> tuple[LiveStream, ...]:
        """The conversation's live streams, in order of their ids."""
        ...

    def subscribe(self, key: ConversationKey, connection: str, *, lease_ms: int) -> Full | None:
        """Make the connection a viewer for so long; again before that to renew."""
        ...

    def unsubscribe(self, key: ConversationKey, connections: Sequence[str]) -> None:
        """Remove viewers, gone ones too."""
        ...

    def viewers(self, key: ConversationKey) -> tuple[str, ...]:
        """Connections whose lease runs."""
        ...


class Gone(msgspec.Struct, frozen=True):
    """A conversation that was deleted."""


class MessagePage(msgspec.Struct, frozen=True):
    """Messages, newest first; ``more`` if the store may hold older ones."""

    messages: tuple[StoredMessage, ...]
    more: bool


class ConversationPage(msgspec.Struct, frozen=True):
    """Conversations, newest activity first, and where to go on (None at the end)."""

    conversations: tuple[Conversation, ...]
    cursor: str | None


class WarmStore(Protocol):
    """The truth: strongly consistent within its region. Every method raises `WarmUnavailable`."""

    def create_conversation(self, tenant: str, conversation: Conversation) -> Conversation | Gone | None:
        """Keep a new conversation; what stands there already is returned instead, untouched."""
        ...

    def read_head(self, key: ConversationKey) -> Conversation | Gone | None:
        """Owner, title and metadata; ``active_at`` is the creation's."""
        ...

    def read_active_at(self, key: ConversationKey) -> str | None:
        """When the conversation was last active, to the minute."""
        ...

    def update_conversation(
        self, key: ConversationKey, *, title: str | UnsetType | None = UNSET, metadata: JsonObject | UnsetType = UNSET
    ) -> Conversation | None:
        """Change what is given; None if there is no such conversation."""
        ...

    def list_conversations(self, tenant: str, owner: str, *, limit: int, cursor: str | None) -> ConversationPage:
        """A user's conversations. Eventually consistent."""
        ...

    def touch(self, key: ConversationKey, *, now_ms: int) -> None:
        """Note the activity: at most one write a minute, and none where there is no conversation."""
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

    def read_messages(
        self, key: ConversationKey, *, before: str | None = None, after: str | None = None, limit: int
    ) -> MessagePage:
        """Messages of every branch with ids between the two bounds (both exclusive), newest first.

        One that no frame could carry comes without its parts: a page must not unpack megabytes to leave them out.
        """
        ...


class BodyStore(Protocol):
    """Bodies too large for an item. Immutable objects of the cold tier. Raises `WarmUnavailable`."""

    def put(self, key: ConversationKey, message: str, body: bytes) -> str:
        """Keep a body; returns its object key, which carries the content's hash."""
        ...

    def get(self, pointer: str) -> bytes:
        """The body again, checked against the hash in its key."""
        ...


class PresignedPut(msgspec.Struct, frozen=True):
    """How a client uploads by itself: an HTTP PUT of the content to the URL, with exactly these headers."""

    url: str
    headers: dict[str, str]


class UploadStore(Protocol):
    """What clients upload past the frames. Objects that expire, in the cold tier. Raises `WarmUnavailable`."""

    def presign(self, key: ConversationKey, upload: Upload, *, media_type: str | None, lives_s: int) -> PresignedPut:
        """Let the client put those bytes, and no others, within so many seconds."""
        ...

    def read(self, key: ConversationKey, upload: Upload) -> bytes | None:
        """What lies there, None if nothing does. At most a byte more than was spoken of, and unchecked."""
        ...


class Push(Protocol):
    """Frames to viewers, past the request that caused them."""

    def send(self, connections: Sequence[str], frame: bytes) -> tuple[str, ...]:
        """Send to all within `FAN_OUT_WAIT_MS`; returns the connections that are gone for good. Never raises."""
        ...


class AnswerRequest(msgspec.Struct, frozen=True, kw_only=True, tag_field="internal", tag="threadkeep.answer"):
    """An answer that is wanted; also the event that the responder's function is invoked with.

    Attributes:
        user: who asked; the answer is written as their own.
        parent: the message to be answered.
        reply: the answer's id, minted by who asked.
        fork: the parent is not the conversation's present leaf, and a branch is meant.
    """

    tenant: Annotated[str, Meta(min_length=1)]
    user: Annotated[str, Meta(min_length=1)]
    conversation: Id
    parent: Id
    reply: Id
    fork: bool = False


class Responder(Protocol):
    """What calls a model and streams its answer into the conversation."""

    def start(self, request: AnswerRequest) -> None:
        """Have it answered; returns once that is taken on. Started twice, it is answered once.

        Raises:
            TierUnavailable: it could not be taken on.
        """
        ...


class TokenRefused(Exception):  # noqa: N818 -- an answer, not a fault of ours
    """A token does not hold. The message is a reason for the log, and says nothing of the token."""


class TokenVerifier(Protocol):
    """Checks a token's signature, issuer, audience and expiry."""

    def claims(self, token: str) -> dict[str, Any]:
        """The claims of a token that holds. Raises `TokenRefused`."""
        ...
