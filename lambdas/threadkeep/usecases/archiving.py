"""Archiving: a conversation that rests moves from the table into segments (design: cold tier).

Every conversation that falls due comes here, pass by pass, until nothing of it is left in the table. What a pass finds
decides when the next one is; the due index is moved only from where the pass began, so that of two passes at once, or
of a pass and somebody who writes, the other's word stands.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from threadkeep import telemetry
from threadkeep.domain import times
from threadkeep.domain.archive import due_ms, entomb_ms
from threadkeep.domain.bounds import ARCHIVE_LEASE_MS, RETENTION_AGAIN_MS
from threadkeep.domain.erasure import ErasureJob
from threadkeep.domain.errors import WarmUnavailable
from threadkeep.domain.model import Conversation, ConversationKey
from threadkeep.ports import DueEntry, Gone
from threadkeep.usecases.deletion import entomb
from threadkeep.usecases.retention import as_known_everywhere
from threadkeep.usecases.segmenting import Deleted, Segmenting
from threadkeep.usecases.services import Services


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a pass came to.

    Attributes:
        state: ``cold`` (nothing is left in the table), ``settling`` (there will be another pass), ``active`` (it does
            not rest), ``ending`` (its retention has run out, as far as is known here), ``expired`` (as far as is known
            anywhere), ``deleted`` or ``absent``.
        segments, archived, removed: segments written, messages in them, messages that have left the table.
    """

    state: Literal["cold", "settling", "active", "ending", "expired", "deleted", "absent"]
    segments: int = 0
    archived: int = 0
    removed: int = 0


def archive(services: Services, entry: DueEntry) -> Outcome:
    """One pass over a conversation that has fallen due. Again, or by two at once, it does no harm.

    Raises:
        WarmUnavailable: a store or a queue could not be reached; the next pass goes on.
    """
    key = entry.key
    head = services.warm.read_head(key)
    if isinstance(head, Gone):
        # Its erasure takes the entry along. That it stands here still means that one was lost on the way.
        _erase(services, key, stage="first")
        return Outcome(state="deleted")
    active_at = services.warm.read_active_at(key)
    if head is None or active_at is None:
        services.due.refile(entry, due_ms=None)
        return Outcome(state="absent")
    head = msgspec.structs.replace(head, active_at=active_at)
    now_ms, active_ms = services.clock.now_ms(), times.from_rfc3339(active_at)
    if head.is_expired(now_ms):
        return _end(services, entry, head)
    if now_ms < active_ms + services.archive_idle_ms:
        until_ms = due_ms(active_ms, idle_ms=services.archive_idle_ms, ends_ms=head.expires_ms)
        services.due.refile(entry, due_ms=until_ms)
        return Outcome(state="active")
    return _pass(services, entry, head)


def _end(services: Services, entry: DueEntry, head: Conversation) -> Outcome:
    """Entomb a conversation whose retention has ended, once every region has been asked and knows of nothing later.

    A tombstone is for good, and our replica may lack what was said elsewhere a moment before the end. To everybody
    whose replica says so it is gone already; so to wait costs nobody anything but the room that it takes.
    """
    assert head.expires_ms is not None, "it has expired"  # noqa: S101 -- by `Conversation.is_expired`
    now_ms = services.clock.now_ms()
    if now_ms < entomb_ms(head.expires_ms):
        services.due.refile(entry, due_ms=entomb_ms(head.expires_ms))
        return Outcome(state="ending")
    try:
        known = as_known_everywhere(services, entry.key, head)
    except WarmUnavailable:
        telemetry.count("RetentionsAwaited")
        services.due.refile(entry, due_ms=now_ms + RETENTION_AGAIN_MS)
        return Outcome(state="ending")
    if known.expires_ms is not None and not known.is_expired(now_ms):
        services.due.refile(entry, due_ms=entomb_ms(known.expires_ms))
        return Outcome(state="active")
    entomb(services, entry.key, owner=head.owner, reason="retention")
    return Outcome(state="expired")


def _pass(services: Services, entry: DueEntry, head: Conversation) -> Outcome:
    segmenting = Segmenting(services, entry.key)
    try:
        segmenting.run()
    except Deleted:
        # The region's own eraser may have been here already; those of the others have their second pass before them.
        _erase(services, entry.key, stage="late")
        return Outcome(state="deleted", removed=segmenting.removed)
    is_cold = segmenting.is_whole and not segmenting.left
    if is_cold:
        # Whoever has written meanwhile has woken it up, and filed it elsewhere: there it stays.
        services.due.refile(entry, due_ms=_ends_ms(head))
    else:
        again_ms = services.clock.now_ms() + _pause_ms(services, segmenting)
        services.due.refile(entry, due_ms=min(filter(None, (again_ms, _ends_ms(head)))))
    return Outcome(
        state="cold" if is_cold else "settling",
        segments=segmenting.segments,
        archived=segmenting.archived,
        removed=segmenting.removed,
    )


def _ends_ms(head: Conversation) -> int | None:
    return None if head.expires_ms is None else entomb_ms(head.expires_ms)


def _pause_ms(services: Services, segmenting: Segmenting) -> int:
    if not segmenting.is_whole:
        return 0
    if segmenting.left == segmenting.fresh > 0:
        return segmenting.fresh_until_ms - services.clock.now_ms()
    if segmenting.left == segmenting.stuck + segmenting.fresh:
        return ARCHIVE_LEASE_MS
    return services.archive_settle_ms


def _erase(services: Services, key: ConversationKey, *, stage: Literal["first", "late"]) -> None:
    services.erase_queue.send(ErasureJob(tenant=key.tenant, conversation=key.conversation, stage=stage))
