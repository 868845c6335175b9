"""What every use case works with, and who may touch what."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from threadkeep.domain.bounds import ARCHIVE_IDLE_MS, ARCHIVE_SETTLE_MS, HEAD_CACHE_MS
from threadkeep.domain.erasure import Terms
from threadkeep.domain.errors import not_found
from threadkeep.domain.model import Caller, Conversation, ConversationKey
from threadkeep.ports import (
    Clock,
    ColdStore,
    DueList,
    ErasureStore,
    ExportFiles,
    ExportStore,
    HotStore,
    IdClaims,
    JobQueue,
    LiveRegister,
    ManifestStore,
    ObjectSweep,
    OtherTables,
    Push,
    Quotas,
    ReplacedItems,
    Responder,
    UploadStore,
    WarmStore,
)
from threadkeep.usecases.settled_log import LastLog

Reply = dict[str, Any]
"""The fields of a reply, beside ``type`` and ``ref``."""


class Owners:
    """Who owns a conversation: read once per sandbox and a while; it changes only where heads of two regions contend.

    What is absent or deleted is never remembered: another tab may be creating it just now.
    """

    ENTRIES_MAX: Final = 1_000

    def __init__(self) -> None:
        self._known: OrderedDict[ConversationKey, tuple[str, int, int | None]] = OrderedDict()

    def get(self, key: ConversationKey, now_ms: int) -> str | None:
        """The owner, while it is trusted."""
        owner, until_ms, _ = self._known.get(key, ("", 0, None))
        return owner if now_ms < until_ms else None

    def ends_ms(self, key: ConversationKey) -> int | None:
        """When the conversation's retention ends at the earliest (ms), as when its owner was read; None: never."""
        return self._known.get(key, ("", 0, None))[2]

    def note(self, key: ConversationKey, owner: str, now_ms: int, *, ends_ms: int | None = None) -> None:
        """Remember it for `HEAD_CACHE_MS`, never past the retention's end; the longest known goes first."""
        until_ms = now_ms + HEAD_CACHE_MS
        self._known[key] = (owner, until_ms if ends_ms is None else min(until_ms, ends_ms), ends_ms)
        self._known.move_to_end(key)
        if len(self._known) > self.ENTRIES_MAX:
            self._known.popitem(last=False)

    def forget(self, key: ConversationKey) -> None:
        """It is gone, as far as this sandbox knows."""
        self._known.pop(key, None)


@dataclass(frozen=True, kw_only=True)
class OtherRegions:
    """What a region has to do with the others of its deployment, where there are any.

    Attributes:
        endpoint: this region's own, where clients connect to.
        names: the others, but not those that are evacuated: these count as gone, whatever they may still say.
        live: what streams where.
        tables: the others' replicas.
        claims: who claims a conversation's id here.
    """

    endpoint: str
    names: tuple[str, ...]
    live: LiveRegister
    tables: OtherTables
    claims: IdClaims


@dataclass(frozen=True, kw_only=True)
class Services:
    """The ports that a use case works with, as the container builds them once per sandbox.

    Attributes:
        quotas: for the whole region.
        own_quotas: this sandbox's own, for while the region's are away.
        replaced: items that another region's write has taken the place of.
        archive_idle_ms: how long a conversation is idle before it is archived.
        archive_settle_ms: how long a manifest has to have stood before what it covers is deleted from the table.
        others: None where the deployment has one region, which then pays nothing for there being others elsewhere.
        sleep: pauses for so many seconds; tests own it.
    """

    hot: HotStore
    warm: WarmStore
    uploads: UploadStore
    push: Push
    clock: Clock
    region: str
    manifests: ManifestStore
    cold: ColdStore
    erasures: ErasureStore
    exports: ExportStore
    export_files: ExportFiles
    objects: ObjectSweep
    terms: Terms
    erase_queue: JobQueue
    tell_queue: JobQueue
    export_queue: JobQueue
    archive_queue: JobQueue
    due: DueList
    replaced: ReplacedItems
    quotas: Quotas
    own_quotas: Quotas
    responder: Responder | None = None
    others: OtherRegions | None = None
    archive_idle_ms: int = ARCHIVE_IDLE_MS
    archive_settle_ms: int = ARCHIVE_SETTLE_MS
    sleep: Callable[[float], None] = time.sleep
    owners: Owners = field(default_factory=Owners)
    last_log: LastLog = field(default_factory=LastLog)


def authorize(services: Services, caller: Caller, conversation: str, *, fresh: bool = False) -> ConversationKey:
    """The conversation's key, if the caller may see it: its owner, or who produces for the tenant.

    Args:
        services: the ports.
        caller: who asks.
        conversation: its id.
        fresh: ask the table (one query) whatever this sandbox remembers. Reads do, and writes that go past the hot
            tier; the others are told by its gravestone that the conversation was deleted meanwhile. Where there are
            other regions whoever is shown what another one wrote, or ends it, asks too (docs/decisions/0045).

    Raises:
        Refused: ``not_found``, whether it is foreign, deleted, expired or never existed.
    """
    return authorize_of(services, caller, conversation, fresh=fresh)[0]


def authorize_of(
    services: Services, caller: Caller, conversation: str, *, fresh: bool = False
) -> tuple[ConversationKey, str]:
    """As `authorize`; the conversation's key and its owner, who need not be the caller."""
    key = ConversationKey(caller.tenant, conversation)
    owner = None if fresh else services.owners.get(key, services.clock.now_ms())
    is_foreign = owner != caller.user and not caller.produces
    if owner is None or (is_foreign and services.others is not None):  # contested, it may be the caller's again
        owner = read_own(services, caller, conversation).owner
    if owner != caller.user and not caller.produces:
        raise not_found()
    return key, owner


def check_standing(services: Services, key: ConversationKey) -> None:
    """See in the table that a conversation is neither deleted nor expired.

    Raises:
        Refused: ``not_found``.
    """
    head = services.warm.read_head(key)
    if not isinstance(head, Conversation) or head.is_expired(services.clock.now_ms()):
        services.owners.forget(key)
        raise not_found()


def read_own(services: Services, caller: Caller, conversation: str) -> Conversation:
    """The conversation as it now stands in the table, if the caller may see it.

    Raises:
        Refused: as `authorize`.
    """
    key = ConversationKey(caller.tenant, conversation)
    now_ms = services.clock.now_ms()
    head = services.warm.read_head(key)
    if not isinstance(head, Conversation) or head.is_expired(now_ms):
        services.owners.forget(key)
        raise not_found()
    services.owners.note(key, head.owner, now_ms, ends_ms=head.expires_ms)
    if head.owner != caller.user and not caller.produces:
        raise not_found()
    return head
