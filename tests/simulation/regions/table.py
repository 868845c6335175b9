"""A global table: a replica in every region, late, out of order, and without a word where two writes met.

What DynamoDB says of eventual mode (developer guide, "How DynamoDB global tables work", read 2026-11-29): conditions
hold within a region; of two writes to one item the later one wins, as a whole; nobody is told.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final, NamedTuple

import msgspec

from tests.simulation.scheduler import Scheduler
from threadkeep.domain.contests import Claim, Ending, Head
from threadkeep.domain.model import ConversationKey, StoredMessage
from threadkeep.stores.erasures_memory import ErasuresMemory
from threadkeep.stores.replaced_memory import ending_of
from threadkeep.stores.warm_memory import WarmMemory

LAG_MS_MAX: Final = (50, 500, 5_000)
STUCK_MS_MAX: Final = 25_000
ARCHIVE_IDLE_MS: Final = 20_000
SLOW_MS: Final = 5_000
"""Longer than a request takes: what it was told that long ago it knew from its beginning."""
READS: Final = ("read", "has", "newest", "list", "gone")
"""How the names of calls begin that change nothing."""


class Address(NamedTuple):
    """Where an item lies."""

    key: ConversationKey
    sort_key: str

    @property
    def is_immutable(self) -> bool:
        """Whether what lies there is never written again."""
        return self.sort_key.startswith(("m#", "s#"))


class Change(msgspec.Struct, frozen=True):
    """A write of one item as a whole, in that region; ``value`` None where it was removed. The later ``stamp`` wins."""

    region: str
    address: Address
    value: Any
    stamp: tuple[int, int]


class Overwritten(msgspec.Struct, frozen=True):
    """An item that never changes has been replaced by another one, or was refused in its favour."""

    region: str
    address: Address
    standing: Any


class Replica:
    """One region's copy. ``tell`` is given every change that it takes up, its own and those of others."""

    def __init__(self, region: str, table: GlobalTable) -> None:
        self.region = region
        self.warm = WarmMemory(idle_ms=ARCHIVE_IDLE_MS)
        self.erasures = ErasuresMemory(self.warm)
        self.tell: Callable[[Change, Any], None] = lambda _change, _old: None
        self.stamps: dict[Address, tuple[int, int]] = {}
        self._table = table
        self._seen: dict[Address, Any] = {}
        self._told_ms: dict[Address, int] = {}

    def items(self) -> dict[Address, Any]:
        """Everything that lies in it."""
        warm = self.warm
        found: dict[Address, Any] = {Address(key, "gone"): value for key, value in warm.gone.items()}
        found |= {Address(key, "head"): warm.standing_head(key) for key in warm._heads}
        for key, claims in warm.claims.items():
            found |= {Address(key, f"claim#{region}"): claim for region, claim in claims.items()}
        found |= {Address(key, "pulse"): (at, warm.listed_with[key]) for key, at in warm.active_at.items()}
        found |= {Address(key, "pulse#due"): at for key, at in warm.due_at.items()}
        for key, lines in self.erasures.lines.items():
            found |= {Address(key, f"gone#{region}#{store}"): line for (region, store), line in lines.items()}
        for key, told in warm.live.items():
            found |= {Address(key, f"live#{region}"): streams for region, streams in told.items()}
        found |= {Address(key, "m!roots"): True for key in warm.several}
        for key, messages in warm.messages.items():
            found |= {Address(key, f"m#{name}"): value for name, value in messages.items()}
        for key, manifests in warm.manifests.items():
            found |= {Address(key, f"s#{name}"): value for name, value in manifests.items()}
        return found

    def written(self) -> None:
        """Something may have been written here just now: it goes on its way to the others."""
        now = self.items()
        for address in {**self._seen, **now}:
            old, new = self._seen.get(address), now.get(address)
            if old is not new and old != new:
                if address.sort_key == f"live#{self.region}":
                    self._note_opened(address.key, (new or {}).keys() - (old or {}).keys())
                self._table.send(self, Change(self.region, address, new, self._table.stamp()), old)
        self._seen = now

    def _note_opened(self, key: ConversationKey, streams: Collection[str]) -> None:
        """Our region opens them; or another one has said for a while that they live there."""
        for stream in streams:
            self._table.opened.setdefault(stream, set()).add(self.region)
            for address, told in self._seen.items():
                is_elsewhere = address.sort_key.startswith("live#") and address.sort_key != f"live#{self.region}"
                since_ms = self._told_ms.get(address, 0)
                if address.key == key and is_elsewhere and stream in told and since_ms + SLOW_MS < self._table.now_ms():
                    self._table.opened_knowingly.append((self.region, stream))

    def arrive(self, change: Change) -> None:
        """A write of another region: it counts if it is later than what was written here last."""
        address, standing = change.address, self._seen.get(change.address)
        if address.is_immutable and None not in (standing, change.value) and standing != change.value:
            self._table.overwritten.append(Overwritten(self.region, address, standing))
        if change.stamp <= self.stamps.get(address, (0, 0)):
            self._table.superseded += 1
            return
        self.stamps[address] = change.stamp
        if standing == change.value:
            return
        self._put(address, change.value)
        self._told_ms[address] = self._table.now_ms()
        if change.value is None:
            self._seen.pop(address, None)
        else:
            self._seen[address] = change.value
        self.tell(change, standing)

    def _put(self, address: Address, value: Any) -> None:
        key, sort_key = address
        kind, _, name = sort_key.partition("#")
        warm = self.warm
        by_key: dict[str, dict[Any, Any]] = {"gone": warm.gone, "pulse#due": warm.due_at}
        if sort_key in by_key:
            _set(by_key[sort_key], key, value)
            return
        match kind:
            case "gone":
                region, store = name.split("#")
                _set(self.erasures.lines.setdefault(key, {}), (region, store), value)
            case "claim":
                _set(warm.claims.setdefault(key, {}), name, value)
            case "head":
                warm.put_standing_head(key, value)
            case "pulse":
                _set(warm.active_at, key, value and value[0])
                _set(warm.listed_with, key, value and value[1])
            case "live":
                _set(warm.live.setdefault(key, {}), name, value)
            case "m!roots":
                (warm.several.add if value else warm.several.discard)(key)
            case "m":
                _set(warm.messages.setdefault(key, {}), name, value)
            case "s":
                _set(warm.manifests.setdefault(key, {}), name, value)
            case _:
                raise AssertionError(f"an item of no kind: {sort_key}")


class GlobalTable:
    """All replicas, and what is under way between them.

    Attributes:
        stuck: how often a write of one item takes very long, while others overtake it.
        away: how often a region that asks another one's table reaches nobody.
        is_cut: while set, nothing passes between them.
        overwritten: where two regions gave one immutable item different contents.
        opened: in which regions each stream was opened.
        opened_knowingly: where a region opened a stream although it had been told that it lives in another one.
        ranks: by what each head and message stands, of all that was ever written of it, wherever.
        superseded: writes that came too late to count.
        held_up: changes that a cut held up.
        under_way: changes that have not arrived.
    """

    def __init__(self, scheduler: Scheduler, regions: Collection[str], *, lag_ms_max: int) -> None:
        self.scheduler = scheduler
        self.lag_ms_max = lag_ms_max
        self.stuck = self.away = 0.0
        self.is_cut = False
        self.overwritten: list[Overwritten] = []
        self.opened: dict[str, set[str]] = {}
        self.opened_knowingly: list[tuple[str, str]] = []
        self.ranks: dict[Address, set[Any]] = {}
        self.superseded = 0
        self.held_up = self.under_way = 0
        self.replicas = {region: Replica(region, self) for region in regions}
        self._held: list[tuple[Replica, Change]] = []
        self._writes = 0

    def now_ms(self) -> int:
        """The time."""
        return self.scheduler.now_ms()

    def stamp(self) -> tuple[int, int]:
        """When a write is made; no two are made at once."""
        self._writes += 1
        return self.scheduler.now_ms(), self._writes

    def send(self, origin: Replica, change: Change, old: Any) -> None:
        """A change made in one region: its own stream tells of it, and the others get it some time."""
        if (rank := rank_of(change.value)) is not None:
            self.ranks.setdefault(change.address, set()).add(rank)
        origin.stamps[change.address] = change.stamp
        origin.tell(change, old)
        for replica in self.replicas.values():
            if replica is not origin:
                self.under_way += 1
                self._post(replica, change)

    def cut(self) -> None:
        """The regions hear nothing of each other any more."""
        self.is_cut = True

    def heal(self) -> None:
        """They do again; what had piled up comes in any order."""
        self.is_cut = False
        held, self._held = self._held, []
        for replica, change in held:
            self._post(replica, change)

    def _post(self, replica: Replica, change: Change) -> None:
        lag_ms = STUCK_MS_MAX if self.scheduler.chance(self.stuck) else self.lag_ms_max
        self.scheduler.at(self.scheduler.random.randint(1, lag_ms), lambda: self._arrive(replica, change))

    def _arrive(self, replica: Replica, change: Change) -> None:
        if self.is_cut:
            self.held_up += 1
            self._held.append((replica, change))
        else:
            self.under_way -= 1
            replica.arrive(change)


def rank_of(value: Any) -> Claim | Ending | None:
    """By what it stands where another one contends with it; None for what nothing contends with."""
    match value:
        case Head():
            return value.claim
        case StoredMessage():
            return ending_of(value)
    return None


class Replicated:
    """A store of one region whose writes go out to the others."""

    def __init__(self, store: Any, replica: Replica) -> None:
        self._store = store
        self._replica = replica

    def __getattr__(self, name: str) -> Any:
        called = getattr(self._store, name)
        if name.startswith(READS):
            return called

        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return called(*args, **kwargs)
            finally:
                self._replica.written()

        return call


def _set(held: dict[Any, Any], name: Any, value: Any) -> None:
    if value is None:
        held.pop(name, None)
    else:
        held[name] = value
