"""The format of a segment: JSON Lines in Zstandard, in members that can be read apart.

A line is a message of the protocol as a page shows it, with its ``epoch`` beside and without ``created_at``, the time
that its ``id`` tells; one that no frame could carry has no ``parts``, and the key of its ``body`` instead. Each member
is a frame of its own (RFC 8878, section 3), so the object as a whole is one Zstandard file to everybody else: DuckDB
and Athena read it as it lies there (docs/runbook.md, "Reading the archive").

Client JSON comes back byte for byte. A line break between its tokens stands as a space, since a line is a line, and
``breaks`` says where one stood. (Inside a string none can stand: the decoder at the door has refused it.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from threadkeep.domain import ids, times
from threadkeep.domain.archive import Manifest, Member
from threadkeep.domain.bounds import (
    MEMBER_BYTES_MAX,
    MEMBER_MESSAGES_MAX,
    SEGMENT_BYTES_MAX,
    SEGMENT_MESSAGES_MAX,
)
from threadkeep.domain.json_values import encode
from threadkeep.domain.model import ConversationKey, Message, StoredMessage
from threadkeep.stores import object_keys
from threadkeep.stores.zstandard import compress, decompress

_LEVEL: Final = 19
"""The highest that asks for no more memory than others. A member takes 0.1 s; it is packed once, and read for years."""
_BREAK: Final = re.compile(rb"[\n\r]")
_BREAKS_FIELD: Final = b',"breaks":'
_TOLD: Final = tuple(name for name in Message.__struct_fields__ if name != "created_at")
"""What a line says of a message."""


class Line(Message, frozen=True, kw_only=True, omit_defaults=True):
    """One line of a segment.

    Attributes:
        created_at: empty, and so left out; the id tells it.
        epoch: in which the message's stream ended; 0 where there was none.
        body: where its packed body lies, if a page shows it without parts.
        breaks: places of line feeds, in bytes from the line's beginning; negative, of carriage returns.
    """

    created_at: str = ""
    epoch: int
    body: str | UnsetType = UNSET
    breaks: tuple[int, ...] | UnsetType = UNSET

    @classmethod
    def of(cls, shown: StoredMessage, body: str | UnsetType = UNSET) -> Line:
        """The line of a message in page form."""
        return cls(**_fields(shown.message), epoch=shown.epoch, body=body)

    def to_stored(self) -> StoredMessage:
        """The message again, in page form."""
        at = times.to_rfc3339(ids.time_ms(self.id))
        return StoredMessage(Message(**_fields(self), created_at=at), self.epoch)

    def to_bytes(self) -> bytes:
        """As it stands in the segment, with its line break."""
        text = encode(self)
        breaks = [found.start() if found[0] == b"\n" else -found.start() for found in _BREAK.finditer(text)]
        if breaks:
            text = _BREAK.sub(b" ", text)[:-1] + _BREAKS_FIELD + encode(breaks) + b"}"
        return text + b"\n"

    @classmethod
    def from_bytes(cls, text: bytes) -> Line:
        """Read what `to_bytes` built, without its line break."""
        line = _LINE.decode(text)
        if line.breaks is UNSET:
            return line
        restored = bytearray(text[: text.rindex(_BREAKS_FIELD)] + b"}")
        for place in line.breaks:
            restored[abs(place)] = ord("\n" if place > 0 else "\r")
        return _LINE.decode(bytes(restored))


_LINE: Final = msgspec.json.Decoder(Line)


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """A segment before anybody holds it."""

    object_key: str
    content: bytes
    members: tuple[Member, ...]

    def manifest(self, *, regions: Sequence[str], archived_ms: int) -> Manifest:
        """What its manifest says once these regions hold it."""
        return Manifest(
            first=self.members[0].first,
            last=self.members[-1].last,
            count=sum(member.count for member in self.members),
            object_key=self.object_key,
            size_bytes=len(self.content),
            digest=object_keys.sha256(self.content),
            regions=tuple(regions),
            archived_ms=archived_ms,
            members=self.members,
        )


class SegmentWriter:
    """Builds a segment from lines in id order; the same lines give the same object."""

    def __init__(self, key: ConversationKey) -> None:
        self._key = key
        self._content = bytearray()
        self._members: list[Member] = []
        self._pending: list[bytes] = []
        self._pending_ids: list[str] = []
        self._pending_bytes = 0
        self._bytes = 0
        self._count = 0
        self._last = ""

    def add(self, line: Line) -> None:
        """Append a message.

        Raises:
            ValueError: it is not of this conversation, not behind the one before, or one too many.
        """
        if line.conversation != self._key.conversation or line.id <= self._last:
            raise ValueError(f"message {line.id} has no place behind {self._last or 'nothing'} in this segment")
        text = line.to_bytes()
        # Without the places of line breaks: who gathers messages for a segment counts what they say.
        self._bytes += len(encode(line))
        self._count += 1
        if self._count > SEGMENT_MESSAGES_MAX or (self._count > 1 and self._bytes > SEGMENT_BYTES_MAX):
            raise ValueError(f"a segment takes {SEGMENT_MESSAGES_MAX} messages or {SEGMENT_BYTES_MAX} bytes at most")
        is_full = len(self._pending) == MEMBER_MESSAGES_MAX or self._pending_bytes + len(text) > MEMBER_BYTES_MAX
        if self._pending and is_full:
            self._end_member()
        self._pending.append(text)
        self._pending_ids.append(line.id)
        self._pending_bytes += len(text)
        self._last = line.id

    def finish(self) -> Segment:
        """The whole segment.

        Raises:
            ValueError: it is empty.
        """
        if self._pending:
            self._end_member()
        if not self._members:
            raise ValueError("a segment holds at least one message")
        content = bytes(self._content)
        key = object_keys.segment(self._key, self._members[0].first, object_keys.sha256(content))
        return Segment(object_key=key, content=content, members=tuple(self._members))

    def _end_member(self) -> None:
        # Nothing of when it is written is in it: else the same messages would make another object at every attempt.
        packed = compress(b"".join(self._pending), _LEVEL)
        self._members.append(
            Member(
                first=self._pending_ids[0],
                last=self._pending_ids[-1],
                count=len(self._pending),
                offset=len(self._content),
                size_bytes=len(packed),
                digest=object_keys.sha256(packed),
            )
        )
        self._content += packed
        self._pending, self._pending_ids, self._pending_bytes = [], [], 0


def read_lines(member: bytes) -> Iterator[Line]:
    """The lines of a member whose bytes were checked against its digest."""
    for text in decompress(member).split(b"\n")[:-1]:
        yield Line.from_bytes(text)


def _fields(message: Message) -> dict[str, Any]:
    return {name: getattr(message, name) for name in _TOLD}
