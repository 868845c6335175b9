"""How a stream's writers are judged (docs/protocol.md, section 3.1): a pure function a verb, a value a verdict.

This is the reference. Valkey runs the same rules in its scripts, where judging and writing are one step; one
contract suite holds both to the same answers.
"""

from __future__ import annotations

import msgspec

from threadkeep.domain.model import Role, Status


class Facts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a stream's message is besides its content; fixed when its log begins."""

    parent: str | None
    role: Role
    model: str | None = None
    metadata: dict[str, msgspec.Raw] = {}


class Writer(msgspec.Struct, frozen=True):
    """Who writes: the principal, and the run of its program."""

    principal: str
    producer: str


class Seal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The decided end of a stream."""

    status: Status
    usage: dict[str, msgspec.Raw] | None = None
    error: dict[str, msgspec.Raw] | None = None


class Stream(msgspec.Struct, kw_only=True):
    """A stream in the hot tier. Mutable: it is the store's own record.

    Attributes:
        log: the ops of every accepted append of this epoch, as bytes; its length is the offset.
        lease_ms: when the stream is dead unless it is heard of, by the hot tier's clock.
        sealed_by: epoch and offset of the close that sealed it.
        settled: the message is stored and the log dropped.
    """

    epoch: int
    writer: Writer
    facts: Facts
    lease_ms: int
    log: list[bytes]
    seal: Seal | None = None
    sealed_by: tuple[int, int] | None = None
    settled: bool = False


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


class Fenced(msgspec.Struct, frozen=True):
    """Another run has the stream now."""


class Closed(msgspec.Struct, frozen=True):
    """The stream has its end, by this seal (None where the seal itself is no longer known)."""

    seal: Seal | None = None


class Held(msgspec.Struct, frozen=True):
    """Another run holds the stream, and this one does not say that it takes over."""


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


class Resumed(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the log: elements from ``at`` up to ``offset``; ``more`` if the log goes on behind it."""

    epoch: int
    at: int
    log: tuple[bytes, ...]
    offset: int
    more: bool
    sealed: bool


OpenVerdict = Opened | Fenced | Closed | Held | StaleLeaf | ParentOpen | ParentMissing | Full
AppendVerdict = Accepted | Duplicate | Diverged | Gap | Fenced | Closed | Unknown
SealVerdict = Sealed | Diverged | Gap | Fenced | Closed | Unknown
ResumeVerdict = Resumed | Unknown


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


def judge_append(stream: Stream | None, *, principal: str, epoch: int, offset: int, ops: bytes) -> AppendVerdict:
    """An append; ``Accepted`` means that the ops are to be put at the end of the log."""
    if stream is None or epoch > stream.epoch or principal != stream.writer.principal:
        return Unknown()
    if epoch < stream.epoch:
        return Fenced()
    if stream.seal is not None:
        return Closed(stream.seal)
    end = len(stream.log)
    if offset > end:
        return Gap(end)
    if offset == end:
        return Accepted(end + 1)
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
