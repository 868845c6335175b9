"""Erasure: a conversation's end, everywhere. The tombstone is the job; every store of every region writes its line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from threadkeep.domain import times
from threadkeep.domain.bounds import ERASURE_SECOND_PASS_MS
from threadkeep.domain.ids import ID_PATTERN
from threadkeep.domain.model import ConversationKey

Store = Literal["hot", "objects", "table"]
State = Literal["running", "done"]
Reason = Literal["owner", "produce", "retention"]

ANY_TENANT: Final = "*"
_DAY_MS: Final = 24 * 60 * 60 * 1_000
_EXPORT_FILE_DAYS: Final = 2
"""A bucket's rule of one day rounds up to the next midnight (S3 user guide, "Setting a lifecycle configuration")."""


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What a deployment says of the end of what it keeps.

    Attributes:
        regions: all of it, the home region first.
        pitr_days: how long the table can be taken back.
        second_pass_ms: how long after a deletion the second pass begins.
        retention_days: by tenant, how long its conversations stay after their last activity; ``*`` is for every
            tenant that is not named. Absent, they stay.
    """

    regions: tuple[str, ...]
    pitr_days: int = 35
    second_pass_ms: int = ERASURE_SECOND_PASS_MS
    retention_days: dict[str, int] = {}  # msgspec copies it

    def retention_of(self, tenant: str, wanted: int | None) -> int | None:
        """The retention of a tenant's new conversation: its own or the tenant's, the smaller; None: none."""
        given = self.retention_days.get(tenant, self.retention_days.get(ANY_TENANT))
        return min((days for days in (wanted, given) if days is not None), default=None)


class Tombstone(msgspec.Struct, frozen=True, kw_only=True):
    """That a conversation was deleted: by whom it was owned, when, and what the deployment then was. Immutable.

    Attributes:
        owner: who may ask after the erasure.
        reason: ``owner`` (who deleted it), ``produce`` (a server did, for its owner) or ``retention`` (its period had
            run out).
        regions: whose stores have to be cleared; the first is home, where the table is cleared.
        pitr_days: how long the table's backups still hold it.
        second_pass_ms: when what was under way at the time is taken too (ms since the epoch).
    """

    owner: str
    erased_at: str
    reason: Reason
    regions: tuple[str, ...]
    pitr_days: int
    second_pass_ms: int

    @property
    def stores(self) -> tuple[tuple[str, Store], ...]:
        """Every store that has to be cleared, each with its region."""
        found: list[tuple[str, Store]] = []
        for region in self.regions:
            found += [(region, "hot"), (region, "objects")]
            if region == self.regions[0]:  # one region's deletion reaches every replica
                found.append((region, "table"))
        return tuple(found)


class ReceiptLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one store of one region had of a conversation; on the wire as it stands.

    Attributes:
        found, removed: keys, objects or items, over all passes.
        passes: how many have been made.
        state: ``done`` after the second.
    """

    region: str
    store: Store
    found: int
    removed: int
    passes: int
    state: State
    updated_at: str


class Stays(msgspec.Struct, frozen=True, kw_only=True):
    """What is left of a conversation by nature, and until when: backups of the table, files of exports."""

    what: Literal["backups", "exports"]
    until: str


class Erasure(msgspec.Struct, frozen=True, kw_only=True):
    """An erasure as its owner sees it; goes by the conversation's id.

    Attributes:
        lines: one for every store of every region, also where it has not begun.
        state: ``done`` when every line is.
    """

    id: str
    conversation: str
    reason: Reason
    state: State
    requested_at: str
    lines: tuple[ReceiptLine, ...]
    stays: tuple[Stays, ...]

    @classmethod
    def of(cls, conversation: str, tombstone: Tombstone, written: Iterable[ReceiptLine]) -> Erasure:
        """Put the receipt together from the tombstone and the lines that are written."""
        known = {(line.region, line.store): line for line in written}
        lines = tuple(
            known.get((region, store), _not_begun(region, store, tombstone)) for region, store in tombstone.stores
        )
        return cls(
            id=conversation,
            conversation=conversation,
            reason=tombstone.reason,
            state="done" if all(line.state == "done" for line in lines) else "running",
            requested_at=tombstone.erased_at,
            lines=lines,
            stays=_stays(tombstone),
        )


class Landed(msgspec.Struct, frozen=True):
    """A new item of a conversation, wherever it was written."""

    key: ConversationKey
    is_tombstone: bool


class ErasureJob(msgspec.Struct, frozen=True, kw_only=True, tag_field="job", tag="erase"):
    """Clear a conversation out of a region's stores; the tombstone says the rest.

    Attributes:
        stage: ``first`` has a second pass follow; ``second`` waits until it is time; ``late`` takes what has landed
            beside the tombstone since.
    """

    tenant: Annotated[str, Meta(min_length=1)]
    conversation: Annotated[str, Meta(pattern=ID_PATTERN)]
    stage: Literal["first", "second", "late"] = "first"


def _not_begun(region: str, store: Store, tombstone: Tombstone) -> ReceiptLine:
    return ReceiptLine(
        region=region, store=store, found=0, removed=0, passes=0, state="running", updated_at=tombstone.erased_at
    )


def _stays(tombstone: Tombstone) -> tuple[Stays, ...]:
    erased_ms = times.from_rfc3339(tombstone.erased_at)
    # The table can be taken back to before the second pass, for so long after it.
    backups_ms = tombstone.second_pass_ms + tombstone.pitr_days * _DAY_MS
    exports_ms = erased_ms + _EXPORT_FILE_DAYS * _DAY_MS
    return (
        Stays(what="backups", until=times.to_rfc3339(backups_ms)),
        Stays(what="exports", until=times.to_rfc3339(exports_ms)),
    )
