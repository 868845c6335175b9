"""Erasure: a conversation's end, everywhere. The tombstone is the job; every store of every region writes its line."""

from __future__ import annotations

from typing import Literal

import msgspec

Store = Literal["hot", "objects", "table"]
State = Literal["running", "done"]


class Tombstone(msgspec.Struct, frozen=True, kw_only=True):
    """That a conversation was deleted: by whom it was owned, when, and what the deployment then was. Immutable.

    Attributes:
        owner: who may ask after the erasure.
        reason: ``owner`` (deleted) or ``retention`` (its period had run out).
        regions: whose stores have to be cleared.
        pitr_days: how long the table's backups still hold it.
        second_pass_ms: when what was under way at the time is taken too (ms since the epoch).
    """

    owner: str
    erased_at: str
    reason: Literal["owner", "retention"]
    regions: tuple[str, ...]
    pitr_days: int
    second_pass_ms: int


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
