"""Cold history: what a segment's manifest says of it.

A segment is one immutable object of settled messages in id order, in members that can be read apart. Segments of a
conversation may overlap, in ranges and in messages; readers merge by id, and what was archived first stands.
"""

from __future__ import annotations

from typing import Final

import msgspec

from threadkeep.domain import ids
from threadkeep.domain.bounds import ID_AHEAD_MS_MAX, PULSE_EVERY_MS, RETENTION_MARGIN_MS

_SLACK_PARTS: Final = 30
_FRESH_MS_MAX: Final = 24 * 60 * 60_000
"""A younger message counts as not archived, where the archive waits at least so long. It may be set to wait longer:
but it may have waited less long before that."""
_MARGIN_MS: Final = ID_AHEAD_MS_MAX + 2 * PULSE_EVERY_MS
"""How much younger a message may look than it is to the archive: its id may be ahead, its activity not written yet."""


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a segment that is read by itself.

    Attributes:
        first, last: ids of its first and last message.
        count: its messages.
        offset, size_bytes: where in the object it lies, compressed.
        digest: SHA-256 of those bytes, in lower-case hexadecimal digits.
    """

    first: str
    last: str
    count: int
    offset: int
    size_bytes: int
    digest: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """A segment, as its item in the table tells of it. Immutable.

    Attributes:
        first, last: ids of the segment's first and last message; no other manifest of the conversation has its first.
        count: its messages.
        object_key: where the segment lies in every region's bucket; carries the content's hash.
        size_bytes: of the whole object.
        digest: SHA-256 of the whole object, in lower-case hexadecimal digits.
        regions: whose buckets were seen to hold it.
        archived_ms: when it was written (ms since the epoch).
        members: in order.
    """

    first: str
    last: str
    count: int
    object_key: str
    size_bytes: int
    digest: str
    regions: tuple[str, ...]
    archived_ms: int
    members: tuple[Member, ...]


def due_ms(active_ms: int, *, idle_ms: int, ends_ms: int | None = None) -> int:
    """When the archive is to look at a conversation that was last active then (ms since the epoch).

    A little after it will have been idle for long enough (a thirtieth of that: a day, of thirty). Activity does not
    move an entry that stands, so one that fell due on the minute would nearly always be looked at once in vain, for
    the minutes that a conversation goes on after its first message. Where its retention ends earlier, that is when,
    or rather when that may be made final.
    """
    look_ms = active_ms + idle_ms + idle_ms // _SLACK_PARTS
    return look_ms if ends_ms is None else min(look_ms, entomb_ms(ends_ms))


def entomb_ms(ends_ms: int) -> int:
    """When a conversation whose retention ends then may be entombed: what was under way has come to its end."""
    return ends_ms + RETENTION_MARGIN_MS


def unarchived_until_ms(identifier: str, *, idle_ms: int) -> int:
    """Until when (ms since the epoch) a message, or all of a conversation, of that id is in no segment for certain.

    Readers do not look for it there before that, and the archive keeps to it, whatever it is told of the activity.
    A reader's clock may be behind the archive's: so long as it is less than a segment takes to settle, the table has
    the message still.
    """
    return ids.time_ms(identifier) + min(idle_ms, _FRESH_MS_MAX) - _MARGIN_MS


class Damaged(msgspec.Struct, frozen=True):
    """A stretch of the history that no bucket can give just now: missing, or not what its checksum says.

    On the wire as it stands: ``first`` and ``last`` are ids (inclusive), ``count`` how many messages it held.
    """

    first: str
    last: str
    count: int


class SegmentDamaged(Exception):  # noqa: N818 -- named for the state that it reports
    """No bucket has that part of a segment as it was written.

    Args:
        members: the members that cannot be read.
        why: for the log; names no content.
    """

    def __init__(self, members: tuple[Member, ...], why: str) -> None:
        super().__init__(f"{len(members)} members of a segment cannot be read: {why}")
        self.members = members
