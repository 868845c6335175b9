"""The things that are kept. Frozen, and on the wire as they stand (docs/protocol.md, section 5)."""

from __future__ import annotations

from typing import Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from threadkeep.domain import ids, times
from threadkeep.domain.bounds import PULSE_EVERY_MS
from threadkeep.domain.json_values import JsonObject, encode
from threadkeep.domain.ops import Parts

Role = Literal["system", "user", "assistant", "tool"]
Status = Literal["complete", "stopped", "failed", "interrupted"]

_DAY_MS: Final = 24 * 60 * 60 * 1_000
_BYTES_A_TOKEN: Final = 4
_COUNT_DIGITS_MAX: Final = 15
"""What every JSON reader takes exactly. `int` itself refuses more than 4,300 digits, and a stream must settle."""


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks, as the authorizer vouched for it, and over which connection."""

    tenant: str
    user: str
    scopes: frozenset[str]
    expires_at_ms: int
    connection: str

    @property
    def produces(self) -> bool:
        """Whether it acts for every user of its tenant."""
        return "produce" in self.scopes


class ConversationKey(msgspec.Struct, frozen=True):
    """A conversation of a tenant: what every key of every store is built from."""

    tenant: str
    conversation: str


class Conversation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A conversation as its owner sees it.

    Attributes:
        retention_days: so long after its last activity it is gone; None: it stays.
    """

    id: str
    owner: str
    metadata: JsonObject
    created_at: str
    active_at: str
    title: str | None = None
    retention_days: int | None = None

    @property
    def expires_ms(self) -> int | None:
        """When its retention ends (ms since the epoch); None where it has none.

        Its last activity is written at most once every `PULSE_EVERY_MS`: so much later, and never too early.
        """
        if self.retention_days is None:
            return None
        return times.from_rfc3339(self.active_at) + PULSE_EVERY_MS + self.retention_days * _DAY_MS

    def lives_ms(self, now_ms: int) -> int | None:
        """How long it has at least, 1 ms if nothing; None where it has no end. A cache keeps it no longer."""
        return None if self.expires_ms is None else max(1, self.expires_ms - now_ms)

    def is_expired(self, now_ms: int) -> bool:
        """Whether it is to be treated as gone. Trust it with an ``active_at`` that is the pulse's alone."""
        return self.expires_ms is not None and now_ms >= self.expires_ms


class Tokens(msgspec.Struct, frozen=True, omit_defaults=True):
    """How many tokens a message takes in a model's context.

    Told by the producer's ``usage`` (``output_tokens`` or ``completion_tokens``), else estimated as a quarter of the
    parts' bytes, rounded up, and then ``estimated``.
    """

    count: int
    estimated: bool = False

    @classmethod
    def of(cls, parts: Parts, usage: JsonObject | None) -> Tokens:
        """Take what was told, else estimate."""
        for name in ("output_tokens", "completion_tokens"):
            told = (usage or {}).get(name)
            if told is not None and bytes(told).isdigit() and len(bytes(told)) <= _COUNT_DIGITS_MAX:
                return cls(int(bytes(told)))
        return cls(-(-len(encode(parts)) // _BYTES_A_TOKEN), estimated=True)


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message, immutable once stored.

    Attributes:
        parent: None for a root.
        parts: UNSET where the message does not fit a frame; then ``bytes`` says what the parts take as JSON.
        error: with ``failed`` and ``interrupted``, the producer's own code and sentence.
    """

    id: str
    conversation: str
    parent: str | None
    role: Role
    status: Status
    created_at: str
    metadata: JsonObject
    tokens: Tokens
    parts: Parts | UnsetType = UNSET
    bytes: int | UnsetType = UNSET
    usage: JsonObject | UnsetType = UNSET
    error: JsonObject | UnsetType = UNSET
    model: str | UnsetType = UNSET
    reply: str | UnsetType = UNSET

    @classmethod
    def new(
        cls,
        *,
        id: str,  # noqa: A002 -- the field's name
        conversation: str,
        parent: str | None,
        role: Role,
        status: Status,
        parts: Parts,
        metadata: JsonObject,
        usage: JsonObject | UnsetType = UNSET,
        error: JsonObject | UnsetType = UNSET,
        model: str | UnsetType = UNSET,
        reply: str | UnsetType = UNSET,
    ) -> Message:
        """A message with what follows from its content: time from its id, tokens from usage or size."""
        return cls(
            id=id,
            conversation=conversation,
            parent=parent,
            role=role,
            status=status,
            created_at=times.to_rfc3339(ids.time_ms(id)),
            metadata=metadata,
            tokens=Tokens.of(parts, None if usage is UNSET else usage),
            parts=parts,
            usage=usage,
            error=error,
            model=model,
            reply=reply,
        )

    def without_parts(self) -> Message:
        """What travels of a message that does not fit a frame; itself, if it has none."""
        if self.parts is UNSET:
            return self
        return msgspec.structs.replace(self, parts=UNSET, bytes=len(encode(self.parts)))


class StoredMessage(msgspec.Struct, frozen=True):
    """A message and the epoch its stream ended in; 0 where there was no stream."""

    message: Message
    epoch: int = 0


class LiveStream(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message being written, as a viewer is told of it.

    Attributes:
        offset: 0 where it lives in another region, which alone knows.
        endpoint: where a viewer follows it, where that is another region.
        is_due: its time has run out, or its seal is old: whoever meets it finishes it.
    """

    stream: str
    epoch: int
    offset: int
    parent: str | None
    role: Role
    region: str
    endpoint: str | UnsetType = UNSET
    is_due: bool = False
