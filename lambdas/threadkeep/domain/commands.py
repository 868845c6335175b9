"""The requests of the protocol, each a typed value: its action, who may ask, and what it must hold.

Decoding one is the whole of its syntax check; a message that fails it names the field.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from threadkeep.domain.bounds import (
    CONTEXT_MESSAGES_DEFAULT,
    CONTEXT_MESSAGES_MAX,
    NAME_CHARS_MAX,
    PAGE_ITEMS_DEFAULT,
    PAGE_ITEMS_MAX,
    PARTS_MAX,
    RETENTION_DAYS_MAX,
    TITLE_CHARS_MAX,
)
from threadkeep.domain.exports import Format
from threadkeep.domain.ids import ID_OR_ALL_PATTERN, ID_PATTERN
from threadkeep.domain.json_values import JsonObject
from threadkeep.domain.model import Role, Status
from threadkeep.domain.uploads import MEDIA_TYPE_PATTERN, SHA256_PATTERN

Id = Annotated[str, Meta(pattern=ID_PATTERN)]
Title = Annotated[str, Meta(max_length=TITLE_CHARS_MAX)]
Name = Annotated[str, Meta(min_length=1, max_length=NAME_CHARS_MAX)]
Count = Annotated[int, Meta(ge=0, lt=2**53)]
Held = Annotated[int, Meta(ge=0, lt=2**52)]
"""An epoch that is to be outbid: the next one must still be a `Count`."""
Limit = Annotated[int, Meta(ge=1, le=PAGE_ITEMS_MAX)]
PartList = Annotated[list[JsonObject], Meta(max_length=PARTS_MAX)]
MediaType = Annotated[str, Meta(pattern=MEDIA_TYPE_PATTERN)]

ANY: Final = frozenset({"chat", "produce", "admin"})
CHAT: Final = frozenset({"chat"})
PRODUCE: Final = frozenset({"produce"})
CHAT_OR_PRODUCE: Final = frozenset({"chat", "produce"})


class Command(msgspec.Struct, frozen=True, kw_only=True, tag_field="action"):
    """What every request has.

    Attributes:
        scopes: any of these may ask.
        metered: taken from the caller's rate: what writes or costs, but for appends, of which each stream has one in
            flight.
    """

    scopes: ClassVar[frozenset[str]]
    metered: ClassVar[bool] = False

    ref: Annotated[str, Meta(max_length=NAME_CHARS_MAX)] | None = None

    def is_metered(self) -> bool:
        """Whether this request is taken from the caller's rate."""
        return self.metered


class Ref(msgspec.Struct, frozen=True):
    """What `blob.create` gave, in place of what was uploaded there."""

    ref: Name


class Ping(Command, frozen=True, tag="ping"):
    scopes = ANY


class CreateConversation(Command, frozen=True, tag="conversation.create"):
    scopes = CHAT_OR_PRODUCE
    metered = True

    conversation: Id | None = None
    title: Title | None = None
    metadata: JsonObject = {}  # msgspec copies it
    retention_days: Annotated[int, Meta(ge=1, le=RETENTION_DAYS_MAX)] | None = None


class GetConversation(Command, frozen=True, tag="conversation.get"):
    scopes = CHAT_OR_PRODUCE

    conversation: Id


class UpdateConversation(Command, frozen=True, tag="conversation.update"):
    """``title: null`` takes the title away; what is absent stays as it is."""

    scopes = CHAT
    metered = True

    conversation: Id
    title: Title | UnsetType | None = UNSET
    metadata: JsonObject | UnsetType = UNSET


class ListConversations(Command, frozen=True, tag="conversation.list"):
    scopes = CHAT

    limit: Limit = PAGE_ITEMS_DEFAULT
    cursor: Name | None = None


class Subscribe(Command, frozen=True, tag="conversation.subscribe"):
    scopes = CHAT

    conversation: Id


class Unsubscribe(Command, frozen=True, tag="conversation.unsubscribe"):
    scopes = CHAT

    conversation: Id


class CreateMessage(Command, frozen=True, tag="message.create"):
    scopes = CHAT_OR_PRODUCE
    metered = True

    conversation: Id
    parent: Id | None
    role: Role
    parts: PartList | Ref
    message: Id | None = None
    metadata: JsonObject = {}
    fork: bool = False
    model: Name | UnsetType = UNSET
    status: Status | UnsetType = UNSET
    reply: Id | UnsetType = UNSET


class RespondMessage(Command, frozen=True, tag="message.respond"):
    scopes = CHAT
    metered = True

    conversation: Id
    parent: Id
    reply: Id
    fork: bool = False


class ListMessages(Command, frozen=True, tag="message.list"):
    scopes = CHAT_OR_PRODUCE

    conversation: Id
    leaf: Annotated[str, Meta(pattern=ID_OR_ALL_PATTERN)] | None = None
    before: Id | None = None
    after: Id | None = None
    limit: Limit = PAGE_ITEMS_DEFAULT
    cursor: Name | None = None


class DeleteConversation(Command, frozen=True, tag="conversation.delete"):
    scopes = CHAT
    metered = True

    conversation: Id


class GetErasure(Command, frozen=True, tag="erasure.get"):
    """An erasure goes by its conversation's id."""

    scopes = CHAT

    erasure: Id


class ReadContext(Command, frozen=True, tag="context.read"):
    scopes = CHAT_OR_PRODUCE

    conversation: Id
    leaf: Id | None = None
    max_messages: Annotated[int, Meta(ge=1, le=CONTEXT_MESSAGES_MAX)] = CONTEXT_MESSAGES_DEFAULT
    max_tokens: Annotated[int, Meta(ge=1, lt=2**53)] | None = None
    cursor: Name | None = None


class CreateExport(Command, frozen=True, tag="export.create"):
    scopes = CHAT
    metered = True

    format: Format
    conversation: Id | None = None


class GetExport(Command, frozen=True, tag="export.get"):
    scopes = CHAT

    export: Id


class GetBlob(Command, frozen=True, tag="blob.get"):
    scopes = CHAT_OR_PRODUCE

    conversation: Id
    blob: Name


class CreateBlob(Command, frozen=True, tag="blob.create"):
    """``bytes`` has no bound here: what is too large is told so in words."""

    scopes = CHAT_OR_PRODUCE
    metered = True

    conversation: Id
    bytes: Annotated[int, Meta(ge=1, lt=2**53)]
    sha256: Annotated[str, Meta(pattern=SHA256_PATTERN)]
    media_type: MediaType | None = None


class OpenStream(Command, frozen=True, tag="stream.open"):
    scopes = PRODUCE
    metered = True

    conversation: Id
    parent: Id | None
    role: Role
    producer: Name
    message: Id | None = None
    takeover: bool = False
    epoch: Held | None = None
    fork: bool = False
    model: Name | UnsetType = UNSET
    metadata: JsonObject = {}


class AppendStream(Command, frozen=True, tag="stream.append"):
    scopes = PRODUCE

    conversation: Id
    stream: Id
    epoch: Count
    offset: Count
    ops: Raw


class CloseStream(Command, frozen=True, tag="stream.close"):
    scopes = PRODUCE

    conversation: Id
    stream: Id
    epoch: Count
    offset: Count
    status: Status
    usage: JsonObject | UnsetType = UNSET
    error: JsonObject | UnsetType = UNSET
    # The whole answer, for when the hot tier has lost it; the four below then say what `stream.open` said.
    body: PartList | Ref | UnsetType = UNSET
    parent: Id | UnsetType | None = UNSET
    role: Role | UnsetType = UNSET
    model: Name | UnsetType = UNSET
    metadata: JsonObject = {}

    def is_metered(self) -> bool:
        """With a body it may write a message that no metered opening went before."""
        return self.body is not UNSET


class CancelStream(Command, frozen=True, tag="stream.cancel"):
    scopes = CHAT
    metered = True

    conversation: Id
    stream: Id | None = None


class ResumeStream(Command, frozen=True, tag="stream.resume"):
    scopes = CHAT_OR_PRODUCE

    conversation: Id
    stream: Id
    epoch: Count
    offset: Count


COMMANDS: Final = (
    Ping,
    CreateConversation,
    GetConversation,
    UpdateConversation,
    ListConversations,
    Subscribe,
    Unsubscribe,
    CreateMessage,
    RespondMessage,
    ListMessages,
    CreateBlob,
    GetBlob,
    DeleteConversation,
    GetErasure,
    ReadContext,
    CreateExport,
    GetExport,
    OpenStream,
    AppendStream,
    CloseStream,
    CancelStream,
    ResumeStream,
)
