"""How a stream's writers are judged (docs/protocol.md, section 3.1): a pure function a verb, a value a verdict.

This is the reference. Valkey runs the same rules in its scripts, where judging and writing are one step; one
contract suite holds both to the same answers.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from threadkeep.domain.bounds import (
    CLAIM_VOID_MS,
    LEASE_MS,
    SEAL_OLD_MS,
    SILENT_MS,
    STREAM_BYTES_MAX,
    STREAM_MS_MAX,
)
from threadkeep.domain.model import ConversationKey, Role, Status


class Facts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a stream's message is besides its content; fixed when its log begins.

    Attributes:
        owner: the conversation's, in whose name the stream is leased until it settles.
        ends_ms: before that the conversation's retention certainly has not ended (ms since the epoch); None: it never
            does.
    """

    parent: str | None
    role: Role
    model: str | None = None
    metadata: dict[str, msgspec.Raw] = {}
    owner: str | None = None
    ends_ms: int | None = None


class Writer(msgspec.Struct, frozen=True):
    """Who writes: the principal, and the run of its program."""

    principal: str
    producer: str


class Seal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The decided end of a stream."""

    status: Status
    usage: dict[str, msgspec.Raw] | None = None
    error: dict[str, msgspec.Raw] | None = None


DEAD: Final = Seal(status="interrupted")
"""The end of a stream that nobody writes any more."""
SILENT: Final = Seal(
    status="failed",
    error={"code": Raw(b'"silent"'), "message": Raw(b'"Nothing was said for too long."'), "retryable": Raw(b"true")},
)
TOO_LONG: Final = Seal(
    status="failed",
    error={
        "code": Raw(b'"too_long"'),
        "message": Raw(b'"The answer took longer than it may."'),
        "retryable": Raw(b"true"),
    },
)
TOO_LARGE: Final = Seal(
    status="failed",
    error={
        "code": Raw(b'"too_large"'),
        "message": Raw(b'"The answer has grown as large as it may."'),
        "retryable": Raw(b"false"),
    },
)
STOPPED: Final = Seal(status="stopped")
"""The end that the owner of a conversation sets."""
BEAT: Final = b"[]"
"""Ops that say nothing but that the writer lives."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How long and how large things may become in the hot tier; see `threadkeep.domain.bounds`."""

    lease_ms: int = LEASE_MS
    silent_ms: int = SILENT_MS
    stream_ms_max: int = STREAM_MS_MAX
    stream_bytes_max: int = STREAM_BYTES_MAX
    seal_old_ms: int = SEAL_OLD_MS
    claim_void_ms: int = CLAIM_VOID_MS


class Stream(msgspec.Struct, kw_only=True):
    """A stream in the hot tier. Mutable: it is the store's own record. Moments are by the hot tier's clock.

    Attributes:
        log: the ops of every accepted append of this epoch, as bytes; its length is the offset.
        log_bytes: of all of these.
        lease_ms: when it is dead, unless it is heard of.
        silent_ms: when it has failed, unless it says something.
        long_ms: when it has taken too long.
        sealed_by: epoch and offset of the close that sealed it; None where a stop or its time's end did.
        old_ms: when its seal is old.
        settled: the message is stored and the log dropped.
        ends_ms: before that the conversation's retention certainly has not ended, as was last heard; None: it never
            does.
    """

    epoch: int
    writer: Writer
    facts: Facts
    lease_ms: int
    silent_ms: int
    long_ms: int
    log: list[bytes]
    log_bytes: int = 0
    seal: Seal | None = None
    sealed_by: tuple[int, int] | None = None
    old_ms: int = 0
    settled: bool = False
    ends_ms: int | None = None

    def due_ms(self) -> int:
        """When somebody has to finish it, unless it goes on."""
        return min(self.lease_ms, self.silent_ms, self.long_ms) if self.seal is None else self.old_ms


class Due(msgspec.Struct, frozen=True):
    """An entry of the deadline index: a stream to be looked at, and since when (ms, the hot tier's clock)."""

    key: ConversationKey
    stream: str
    at_ms: int


# --- verdicts -------------------------------------------------------------------------------------------------


class Opened(msgspec.Struct, frozen=True):
    """The stream is the writer's, at this place. ``fresh``: its log has just begun anew, viewers are to be told."""

    epoch: int
    offset: int
    fresh: bool = False
    viewers: tuple[str, ...] = ()


class Accepted(msgspec.Struct, frozen=True):
    """The ops stand in the log; ``next`` is the place after them."""

    next: int
    viewers: tuple[str, ...] = ()


class Duplicate(msgspec.Struct, frozen=True):
    """The very same ops stand there already. Fanned out all the same: the first run may have died before it did."""

    next: int
    viewers: tuple[str, ...] = ()


class Diverged(msgspec.Struct, frozen=True):
    """Something else stands there."""


class Gap(msgspec.Struct, frozen=True):
    """The log ends before that place."""

    expected: int


class TooLarge(msgspec.Struct, frozen=True):
    """With these ops the stream would be larger than it may become."""


class PastEnd(msgspec.Struct, frozen=True):
    """The conversation's retention may have ended: whoever writes on has to say how it stands."""


class Fenced(msgspec.Struct, frozen=True):
    """Another run has the stream now."""


class Closed(msgspec.Struct, frozen=True):
    """The stream has its end, by this seal (None where the seal itself is no longer known)."""

    seal: Seal | None = None


class Held(msgspec.Struct, frozen=True):
    """Another run holds the stream, and this one does not say that it takes over."""


class PlaceDiffers(msgspec.Struct, frozen=True):
    """The stream was opened under another parent, or as another role."""


class Unknown(msgspec.Struct, frozen=True):
    """The hot tier knows no such stream, or none of this writer's, or only of an older epoch."""


class StaleLeaf(msgspec.Struct, frozen=True):
    """The conversation's present leaf is another than the parent named."""

    leaf: str | None


class ParentOpen(msgspec.Struct, frozen=True):
    """The parent is itself still being written."""


class ParentMissing(msgspec.Struct, frozen=True):
    """The parent is neither settled nor live here."""


class Full(msgspec.Struct, frozen=True):
    """As many live streams (or viewers) as a conversation may have."""


class Sealed(msgspec.Struct, frozen=True, kw_only=True):
    """The stream is sealed, by this request or an earlier run of it; with all that settling needs.

    ``settled``: nothing is left to do, and the log is gone.
    """

    epoch: int
    seal: Seal
    facts: Facts
    log: tuple[bytes, ...]
    settled: bool = False


class SealedUnopened(msgspec.Struct, frozen=True):
    """There is no such stream; should it be opened within the next 10 min, it is closed."""


class Alive(msgspec.Struct, frozen=True):
    """The stream goes on, or is being settled by whoever sealed it; look again then."""

    until_ms: int


class Resumed(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the log: elements from ``at`` up to ``offset``; ``more`` if the log goes on behind it.

    ``is_due``: its time has run out, or its seal is old: whoever meets it finishes it.
    """

    epoch: int
    at: int
    log: tuple[bytes, ...]
    offset: int
    more: bool
    sealed: bool
    is_due: bool = False


OpenVerdict = Opened | Fenced | Closed | Held | PlaceDiffers | StaleLeaf | ParentOpen | ParentMissing | Full
AppendVerdict = Accepted | Duplicate | Diverged | Gap | Fenced | Closed | PastEnd | TooLarge | Unknown
SealVerdict = Sealed | Diverged | Gap | Fenced | Closed | Unknown
ResumeVerdict = Resumed | Unknown
ExpireVerdict = Alive | Sealed | Unknown


# --- judging --------------------------------------------------------------------------------------------------


def next_epoch(*, known: int, held: int, now_ms: int) -> int:
    """Never repeats and never falls, even where the hot tier has lost it: its clock is one of the three."""
    return max(known + 1, held + 1, now_ms)


class Reopen(msgspec.Struct, frozen=True):
    """What an accepted open does: a new epoch or the present one, the log kept or emptied."""

    epoch: int
    keep_log: bool


def judge_open(
    stream: Stream, *, writer: Writer, held: int | None, takeover: bool, now_ms: int
) -> Reopen | Fenced | Closed | Held:
    """An open of a stream that is known."""
    if stream.seal is not None:
        return Closed(stream.seal)
    anew = next_epoch(known=stream.epoch, held=held or 0, now_ms=now_ms)
    if writer == stream.writer:
        return Reopen(stream.epoch, keep_log=True) if held is None else Reopen(anew, keep_log=False)
    if held is not None:
        return Fenced() if stream.epoch > held else Reopen(anew, keep_log=False)
    return Reopen(anew, keep_log=True) if takeover else Held()


def judge_move(stream: Stream, facts: Facts) -> PlaceDiffers | None:
    """Of an open that is let in: its place was judged when the stream began, so it stays that one."""
    is_same = (stream.facts.parent, stream.facts.role) == (facts.parent, facts.role)
    return None if is_same else PlaceDiffers()


def judge_append(
    stream: Stream | None,
    *,
    principal: str,
    epoch: int,
    offset: int,
    ops: bytes,
    now_ms: int,
    bytes_max: int = STREAM_BYTES_MAX,
) -> AppendVerdict:
    """An append; ``Accepted`` means that the ops are to be put at the end of the log."""
    if stream is None or epoch > stream.epoch or principal != stream.writer.principal:
        return Unknown()
    if epoch < stream.epoch:
        return Fenced()
    if stream.seal is not None:
        return Closed(stream.seal)
    if stream.ends_ms is not None and now_ms >= stream.ends_ms:
        return PastEnd()
    return _judge_place(stream, offset, ops, bytes_max)


def _judge_place(stream: Stream, offset: int, ops: bytes, bytes_max: int) -> AppendVerdict:
    end = len(stream.log)
    if offset > end:
        return Gap(end)
    if offset == end:
        return Accepted(end + 1) if stream.log_bytes + len(ops) <= bytes_max else TooLarge()
    return Duplicate(offset + 1) if stream.log[offset] == ops else Diverged()


def judge_close(
    stream: Stream | None, *, principal: str, epoch: int, offset: int, seal: Seal
) -> Seal | Diverged | Gap | Fenced | Closed | Unknown:
    """A close; a seal means that the stream ends with it: the new one, or the one that this close set before."""
    if stream is None or epoch > stream.epoch or principal != stream.writer.principal:
        return Unknown()
    if epoch < stream.epoch:
        return Fenced()
    if stream.seal is not None:
        return stream.seal if stream.sealed_by == (epoch, offset) else Closed(stream.seal)
    end = len(stream.log)
    if offset > end:
        return Gap(end)
    return seal if offset == end else Diverged()


def judge_time(stream: Stream, *, now_ms: int) -> Seal | None:
    """The end that is due for a stream that has none yet. Dead first: the silent and the long ones still beat."""
    for at_ms, end in ((stream.lease_ms, DEAD), (stream.silent_ms, SILENT), (stream.long_ms, TOO_LONG)):
        if at_ms <= now_ms:
            return end
    return None
