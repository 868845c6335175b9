"""One region's deployment: its own hot tier, gateway, announcer, queues, herald, eraser, sweeper and archive."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Final

import pytest
from greenlet import getcurrent

from handlers import announcer, archiver, eraser, herald
from tests.simulation.regions.images import endpoint
from tests.simulation.regions.queues import Queue, TableStream
from tests.simulation.regions.table import ARCHIVE_IDLE_MS, GlobalTable, Replicated
from tests.simulation.scheduler import Scheduler
from tests.simulation.service import Crashed, Push, SeenFault, Service, Stormy
from tests.simulation.weather import Weather
from tests.support.house import UNLIMITED
from threadkeep import container, telemetry
from threadkeep.domain import ids
from threadkeep.domain.contests import Claim, Head
from threadkeep.domain.erasure import Terms
from threadkeep.domain.errors import HotUnavailable, WarmUnavailable
from threadkeep.domain.model import ConversationKey, StoredMessage
from threadkeep.ports import Gone
from threadkeep.stores import object_keys
from threadkeep.stores.buckets_memory import ObjectsMemory
from threadkeep.stores.claims_memory import ClaimsMemory
from threadkeep.stores.cold_memory import ColdMemory
from threadkeep.stores.due_memory import DueMemory
from threadkeep.stores.exports_memory import ExportFilesMemory, ExportsMemory
from threadkeep.stores.hot_memory import HotMemory
from threadkeep.stores.live_memory import LiveMemory
from threadkeep.stores.manifests_memory import ManifestsMemory
from threadkeep.stores.other_tables_memory import OtherTablesMemory
from threadkeep.stores.queue_memory import QueueMemory
from threadkeep.stores.quotas_memory import QuotasMemory
from threadkeep.stores.replaced_memory import ReplacedMemory
from threadkeep.stores.uploads_memory import UploadsMemory
from threadkeep.stores.warm_items import in_page
from threadkeep.usecases.planning import plan
from threadkeep.usecases.services import OtherRegions, Services

SECOND_PASS_MS: Final = 60_000
ARCHIVE_SETTLE_MS: Final = 20_000
PLAN_EVERY_MS: Final = 15_000


class Deployment(Service):
    """One region. Requests go through `invoke`, as in a deployment of one region; the rest is by its own functions.

    Attributes:
        is_open: whether its gateway serves anybody.
        is_frozen: none of its functions runs.
        counts: what its functions counted.
        gone_since_ms: the regions that it counts as gone, and since when.
    """

    def __init__(
        self,
        name: str,
        table: GlobalTable,
        buckets: Mapping[str, ObjectsMemory],
        *,
        weather: Weather,
        push_to: Callable[[str, bytes], bool],
    ) -> None:
        self.name = name
        self.table = table
        self.replica = table.replicas[name]
        self.scheduler: Scheduler = table.scheduler
        self.weather = weather
        self.push_to = push_to
        self.warm = self.replica.warm
        self.hot = HotMemory(self.scheduler, region=name)
        self.losses = self.fell_back_ms = 0
        self.counts = Counter[str]()
        self.is_open, self.is_frozen = True, False
        self.gone_since_ms: dict[str, int] = {}
        self.stream = TableStream(self, announcer._handle)
        self.replica.tell = self.stream.put
        self._older: Any = None
        self._names = tuple(table.replicas)
        self.services = self._build(buckets)

    def _build(self, buckets: Mapping[str, ObjectsMemory]) -> Services:
        def stormy(store: Any) -> Any:
            return Stormy(self, Replicated(store, self.replica), "warm")

        cold = ColdMemory(self.name, *(name for name in self._names if name != self.name))
        for region, bucket in buckets.items():
            reached: Any = bucket if region == self.name else Reached(self.table, bucket)
            cold.buckets[region] = reached
        return Services(
            hot=Stormy(self, self.hot, "hot"),
            warm=stormy(self.warm),
            uploads=UploadsMemory(),
            manifests=stormy(ManifestsMemory(self.warm)),
            cold=cold,
            objects=OwnObjects(buckets[self.name]),
            terms=Terms(regions=self._names, second_pass_ms=SECOND_PASS_MS),
            erasures=stormy(self.replica.erasures),
            exports=ExportsMemory(),
            export_files=ExportFilesMemory(),
            erase_queue=Queue(self, eraser._handle),
            tell_queue=Queue(self, herald._handle),
            export_queue=QueueMemory(),
            archive_queue=Queue(self, archiver._handle),
            due=stormy(DueMemory(self.warm)),
            replaced=stormy(ReplacedMemory(self.warm)),
            quotas=QuotasMemory(self.scheduler, UNLIMITED),
            own_quotas=QuotasMemory(self.scheduler, UNLIMITED),
            push=Push(self),
            clock=self.scheduler,
            region=self.name,
            others=OtherRegions(
                endpoint=endpoint(self.name),
                names=tuple(name for name in self._names if name != self.name),
                live=stormy(LiveMemory(self.warm, self.name)),
                tables=Stormy(self, OtherReplicas(self.table), "warm"),
                claims=stormy(ClaimsMemory(self.warm, self.name)),
            ),
            archive_idle_ms=ARCHIVE_IDLE_MS,
            archive_settle_ms=ARCHIVE_SETTLE_MS,
            sleep=lambda seconds: self.scheduler.pause(round(seconds * 1_000)),
        )

    def evacuated(self, *regions: str) -> None:
        """A deployment that says so of these other regions."""
        self.gone_since_ms = {region: self.scheduler.now_ms() for region in regions}
        names = tuple(name for name in self._names if name != self.name and name not in regions)
        assert self.services.others is not None
        self.services = dataclasses.replace(
            self.services, others=dataclasses.replace(self.services.others, names=names)
        )

    # --- invocations ------------------------------------------------------------------------------------------

    def invoke(self, body: str, connection_id: str, user: str, scope: str) -> dict[str, Any] | None:
        """See `Service.invoke`."""
        with _at(self):
            return super().invoke(body, connection_id, user, scope)

    def run(self, handler: Callable[..., Any], event: Any) -> Any:
        """Run a function that no client asked for; None if it failed."""
        with _at(self):
            try:
                return handler(event, None)
            except (Crashed, HotUnavailable, WarmUnavailable):
                return None

    def sweep(self) -> None:
        """See `Service.sweep`."""
        if not self.is_frozen:
            super().sweep()
        else:
            self.scheduler.at(1_000, self.sweep)

    def archive(self) -> None:
        """The planner's schedule. Home's alone."""

        def once() -> None:
            with _at(self):
                try:
                    plan(self.services, days_back=1)
                except (WarmUnavailable, Crashed):
                    self.scheduler.note("planning broke off")

        if not self.is_frozen:
            self.scheduler.spawn(once)
        self.scheduler.at(PLAN_EVERY_MS, self.archive)


class Reached:
    """Another region's bucket: out of reach while the regions hear nothing of each other."""

    def __init__(self, table: GlobalTable, bucket: ObjectsMemory) -> None:
        self._table = table
        self._bucket = bucket

    def __getattr__(self, name: str) -> Any:
        if self._table.is_cut:
            raise WarmUnavailable("the other region's bucket is out of reach")
        return getattr(self._bucket, name)


class OwnObjects:
    """`threadkeep.ports.ObjectSweep` of a region's own bucket."""

    def __init__(self, bucket: ObjectsMemory) -> None:
        self._bucket = bucket

    def remove(self, key: ConversationKey) -> int:
        """See `ObjectSweep`."""
        names = [name for name in self._bucket.objects if name.startswith(object_keys.prefixes(key))]
        for name in names:
            del self._bucket.objects[name]
        return len(names)


class OtherReplicas:
    """`threadkeep.ports.OtherTables`: out of reach while the regions hear nothing of each other."""

    def __init__(self, table: GlobalTable) -> None:
        self._table = table

    def read_message(self, region: str, key: ConversationKey, message: str) -> StoredMessage | None:
        """See `OtherTables`."""
        if self._table.is_cut or self._table.scheduler.chance(self._table.away):
            raise WarmUnavailable("the other region's table is out of reach")
        stored = self._table.replicas[region].warm.read_message(key, message)
        return None if stored is None else in_page(stored)

    def read_head(self, region: str, key: ConversationKey) -> Head | Gone | None:
        """See `OtherTables`. Of a table that is away for good no conversation would begin, and nothing be seen."""
        return self._reached(region).read_head(region, key)

    def read_claim(self, region: str, key: ConversationKey) -> Claim | None:
        """See `OtherTables`, and above."""
        return self._reached(region).read_claim(region, key)

    def read_active_at(self, region: str, key: ConversationKey) -> str | None:
        """See `OtherTables`, and above."""
        return self._reached(region).read_active_at(region, key)

    def _reached(self, region: str) -> OtherTablesMemory:
        if self._table.is_cut:
            raise WarmUnavailable("the other region's table is out of reach")
        return OtherTablesMemory({region: self._table.replicas[region].warm})


@contextmanager
def serving(scheduler: Scheduler) -> Iterator[None]:
    """Meanwhile handlers work with the ports of the region that they were invoked in, and count nothing.

    What is random in ids goes by the seed too: their order is the order of messages.
    """

    def services() -> Services:
        region: Deployment = getcurrent().region  # type: ignore[attr-defined]
        return region.services

    def count(name: str, number: int = 1, **_: str) -> None:
        region: Deployment | None = getattr(getcurrent(), "region", None)
        if region is not None:  # a sweeper is told its services
            region.counts[name] += number

    def note(what: str, error: BaseException) -> None:
        if not isinstance(error, HotUnavailable | WarmUnavailable):
            raise SeenFault(what) from error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ids, "os", SimpleNamespace(urandom=scheduler.random.randbytes))
        patch.setattr(container, "services", services)
        patch.setattr(telemetry, "count", count)
        patch.setattr(telemetry, "note", lambda *_, **__: None)
        patch.setattr(telemetry, "note_fault", note)
        yield


@contextmanager
def _at(region: Deployment) -> Iterator[None]:
    """The present task runs in that region meanwhile."""
    task: Any = getcurrent()
    before = getattr(task, "region", None)
    task.region = region
    try:
        yield
    finally:
        task.region = before


def stored(deployment: Deployment, conversation: str) -> dict[str, StoredMessage]:
    """All messages of a conversation as the region's replica holds them, by id."""
    return {
        name: kept
        for key, messages in deployment.warm.messages.items()
        if key.conversation == conversation
        for name, kept in messages.items()
    }
