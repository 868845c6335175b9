"""What the use cases ask of the outside. Each port has a suite in tests/contract that every implementation passes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Protocol

import msgspec
from msgspec import UNSET, Meta, UnsetType

from threadkeep.domain.commands import Id
from threadkeep.domain.json_values import JsonObject
from threadkeep.domain.leaf import ClaimVerdict
from threadkeep.domain.model import Conversation, ConversationKey, LiveStream, StoredMessage
from threadkeep.domain.streams import (
    AppendVerdict,
    Due,
    ExpireVerdict,
    Facts,
    Full,
    OpenVerdict,
    ResumeVerdict,
    Seal,
    Sealed,
    SealedUnopened,
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
        """Open a stream. ``leaf`` is the newest message that the table was just seen to hold, as `claim`'s is.

        A new stream is the conversation's leaf until it settles, as if it were claimed. ``parent_settled`` says
        whether the table holds the parent (a root's always is). Of a new stream's place is judged, in this order:
        parent other than the leaf, without ``fork`` → `StaleLeaf`; parent live → `ParentOpen`; parent not settled →
        `ParentMissing`; too many live streams → `Full`.

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

    def stop(self, key: ConversationKey, stream: str, seal: Seal) -> Sealed | SealedUnopened:
        """Seal it whoever holds it, unless it is sealed: then by the seal that stands.

        Of a stream that is not (yet) known the seal alone is left for `SETTLED_STATE_MS`: opened meanwhile, it is
        closed.
        """
        ...

    def expire(self, key: ConversationKey, stream: str) -> ExpireVerdict:
        """Seal it if its time has run out, judged and written in one step.

        A stream that is dead, silent or too long is sealed so. `Sealed` also where an old seal was never finished;
        `Alive` while there is time; `Unknown` where nothing is left to do.
        """
        ...

    def settle(self, key: ConversationKey, stream: str) -> tuple[str, ...]:
        """Drop the log of a stream whose message is stored; its state stays for late writers. Returns the viewers.

        The message counts as filled, see `fill`.
        """
        ...

    def claim(
        self,
        key: ConversationKey,
        message: str,
        *,
        parent: str | None,
        fork: bool,
        confirmed: str | UnsetType | None = UNSET,
    ) -> ClaimVerdict:
        """Claim the place of a message before it is put. The same message again gets its place again.

        ``confirmed`` is the newest message that a strongly consistent read has just found in the table (None: there
        is none); UNSET: not asked, and then a register that is not sure of its leaf says `LeafUnknown`. With it a
        claim older than `CLAIM_VOID_MS` that the table lacks is void, a fresh one stands.

        Judged in this order: a live stream's id → `IdTaken`; parent other than the leaf, without ``fork`` →
        `StaleLeaf`; parent live → `ParentOpen`; parent claimed, newer than all that was confirmed → `ParentPending`.
        Whether any other parent is in the table is for the caller to know.
        """
        ...

    def fill(self, key: ConversationKey, message: str) -> tuple[str, ...]:
        """The message is in the table: its claim is filled, and the leaf advances to it if that was lost in between.

        Returns the viewers.
        """
        ...

    def release(self, key: ConversationKey, message: str) -> None:
        """Give a claim back: the put failed, and it is certain that the message is not in the table."""
        ...

    def resume(
        self, key: ConversationKey, stream: str, *, epoch: int, offset: int, connection: str | None = None
    ) -> ResumeVerdict:
        """A page of the log from that place, or from 0 where that place is of another epoch.

        Unless there are more pages, the connection lags no longer, if it did (`mark_lagging`).
        """
        ...

    def live(self, key: ConversationKey) -> tuple[LiveStream, ...]:
        """The conversation's live streams, in order of their ids."""
        ...

    def subscribe(self, key: ConversationKey, connection: str, *, lease_ms: int) -> Full | None:
        """Make the connection a viewer for so long, one that does not lag; again before that to renew."""
        ...

    def unsubscribe(self, key: ConversationKey, connections: Sequence[str]) -> None:
        """Remove viewers, gone ones too."""
        ...

    def mark_lagging(self, key: ConversationKey, connections: Sequence[str]) -> None:
        """Frames were dropped for these viewers: they are named no more until they have resumed or subscribe again."""
        ...

    def viewers(self, key: ConversationKey) -> tuple[str, ...]:
        """Connections whose lease runs and that do not lag."""
        ...

    def file(self, key: ConversationKey, stream: str) -> None:
        """Enter a stream in the deadline index, to be looked at when its first lease ends; before it is opened.

        The entry lies in another slot than the stream: the other way round a stream could be without one, and be
        forgotten. An entry that is not due yet stands as it is.
        """
        ...

    def due(self, limit: int) -> tuple[Due, ...]:
        """Entries to be looked at now, the oldest first."""
        ...

    def refile(self, due: Due, until_ms: int) -> None:
        """Look at it again then (ms, the hot tier's clock)."""
        ...

    def unfile(self, due: Due) -> None:
        """Remove an entry whose stream is no more, unless it was filed anew since it was read."""
        ...

    def scan_live(self) -> Iterator[tuple[ConversationKey, str]]:
        """Every stream that has not settled, whatever the index knows. Slow: it goes through all keys."""
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

    def keep(self, key: ConversationKey, upload: Upload) -> bool:
        """Let it stay for good; again: it does. False if nothing of that size lies there, nor has been kept."""
        ...


class Delivery(msgspec.Struct, frozen=True):
    """What became of a frame.

    Attributes:
        gone: connections that are closed for good.
        late: connections that it did not reach within the bound, for whatever reason; some may get it yet.
    """

    gone: tuple[str, ...] = ()
    late: tuple[str, ...] = ()


class Push(Protocol):
    """Frames to viewers, past the request that caused them."""

    def send(self, connections: Sequence[str], frame: bytes) -> Delivery:
        """Send to all within `FAN_OUT_WAIT_MS`. Never raises."""
        ...

    def hint(self, connections: Sequence[str], frame: bytes) -> None:
        """Send without waiting, and without being told what became of it: for what a viewer can do without.

        A Lambda function freezes after its reply, so it may arrive late or never. Never raises.
        """
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
