"""A conversation that goes cold, in two regions' buckets in memory, and what may happen in between."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Final

import msgspec

from tests.support.conversations import message, text_parts
from tests.support.house import PHONE, REGION, House
from threadkeep.domain import ids, times
from threadkeep.domain.archive import Manifest
from threadkeep.domain.erasure import Terms
from threadkeep.domain.model import StoredMessage
from threadkeep.ports import DueEntry
from threadkeep.stores.cold_memory import ColdMemory
from threadkeep.stores.warm_items import in_page
from threadkeep.usecases.archiving import Outcome, archive
from threadkeep.usecases.planning import plan
from threadkeep.usecases.services import Services
from threadkeep.usecases.tiers import History, Tiers

REGIONS: Final = (REGION, "us-east-1")
DAY_MS: Final = 24 * 60 * 60 * 1_000
PASSES_MAX: Final = 40
ARCHIVING: Final = ("warm", "manifests", "due", "erasures", "erase_queue", "archive_queue")
"""The ports that the archive calls, beside the buckets under its cold store."""


class Crashed(BaseException):
    """The function is gone: nothing catches it."""


class Watched:
    """A store before each and behind each of whose calls something happens."""

    def __init__(self, store: Any, before: Callable[[str], None], after: Callable[[str], None]) -> None:
        self._store = store
        self._before = before
        self._after = after

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not callable(found):
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            self._before(name)
            answer = found(*args, **kwargs)
            self._after(name)
            return answer

        return call


def nothing(_call: str) -> None:
    """What happens ordinarily."""


class Resting:
    """A conversation of this house, and all that was ever said in it."""

    def __init__(self, house: House, **fields: Any) -> None:
        self.house = house
        self.cold = ColdMemory(*REGIONS)
        house.replace(cold=self.cold, objects=self.cold, terms=Terms(regions=REGIONS))
        self.conversation = house.conversation(**fields)
        self.key = house.key(self.conversation)
        self.said: dict[str, StoredMessage] = {}
        self.outcomes: list[Outcome] = []

    # --- what is said -------------------------------------------------------------------------------------------

    def say(self, text: str = "hello", *, at_ms: int | None = None, **fields: Any) -> str:
        """A message, as a request keeps it: activity first; of that time, else of now. Its id."""
        now_ms = self.house.clock.now_ms()
        self.house.clock.ms += 1
        stored = StoredMessage(
            message(self.key, text_parts(text), id=ids.mint(now_ms if at_ms is None else at_ms), **fields)
        )
        self.house.warm.touch(self.key, now_ms=now_ms)
        assert self.house.warm.put_message(self.key.tenant, stored) is None
        self.said[stored.message.id] = stored
        return stored.message.id

    def delete(self) -> None:
        """Its owner deletes it."""
        self.house.ok(PHONE, "conversation.delete", conversation=self.conversation)

    # --- what is archived -----------------------------------------------------------------------------------------

    @property
    def due_at(self) -> str | None:
        """When it falls due; None where it does not."""
        return self.house.warm.due_at.get(self.key)

    @property
    def warm(self) -> set[str]:
        """What the table still holds."""
        return set(self.house.warm.messages.get(self.key, {}))

    @property
    def manifests(self) -> tuple[Manifest, ...]:
        """Of its segments."""
        return self.house.manifests.read(self.key)

    def objects(self, region: str = REGION) -> dict[str, bytes]:
        """What a region's bucket holds, to be damaged."""
        return self.cold.buckets[region].objects

    def rest(self) -> None:
        """Time goes by until it falls due."""
        assert self.due_at is not None
        self.house.clock.ms = max(self.house.clock.ms, times.from_rfc3339(self.due_at))

    def pass_(self, services: Services | None = None) -> Outcome | None:
        """What falls due is planned and archived once; None where it was not this conversation."""
        services = services or self.house.services
        self.rest()
        plan(services, days_back=1)
        outcome = None
        for job in self.house.archive_queue.take():
            outcome = archive(services, msgspec.convert(job, DueEntry))
            self.outcomes.append(outcome)
        return outcome

    def go_cold(self, services: Services | None = None) -> None:
        """Pass by pass, until it does not fall due any more."""
        for _ in range(PASSES_MAX):
            if self.due_at is None:
                return
            self.pass_(services)
        raise AssertionError(f"after {PASSES_MAX} passes it is still due at {self.due_at}")

    def watched(self, before: Callable[[str], None] = nothing, after: Callable[[str], None] = nothing) -> Services:
        """The services of an archiver at each of whose calls something happens, to the table and to every bucket."""
        cold = ColdMemory(*REGIONS)
        for region, bucket in self.cold.buckets.items():
            watched: Any = Watched(bucket, before, after)
            cold.buckets[region] = watched
        services = self.house.services
        stores: dict[str, Any] = {name: Watched(getattr(services, name), before, after) for name in ARCHIVING}
        return dataclasses.replace(services, cold=cold, **stores)

    # --- what is read ---------------------------------------------------------------------------------------------

    def check_readable(self) -> None:
        """Each message is read, once, in order, as it was said."""
        tiers = Tiers.of(self.house.services)
        history = History(tiers, self.key, batch=50)
        found: list[StoredMessage] = []
        before: str | None = None
        while True:
            page = history.page(before=before, limit=50)
            found += page.messages
            if not page.more:
                break
            before = page.messages[-1].message.id
        assert found == [in_page(stored) for _, stored in sorted(self.said.items(), reverse=True)]

    def check_cold(self) -> None:
        """All of it is in the segments, each message whole and in one alone; nothing else lies anywhere."""
        self.check_readable()
        assert self.warm == set()
        assert sum(manifest.count for manifest in self.manifests) == len(self.said)
        tiers = Tiers.of(self.house.services)
        assert {name: tiers.read_message(self.key, name) for name in self.said} == self.said
        segments = {manifest.object_key for manifest in self.manifests}
        for region in REGIONS:
            held = {name for name in self.objects(region) if name.startswith("segments/")}
            assert held == segments
            large = [stored for stored in self.said.values() if in_page(stored) is not stored]
            assert len(self.objects(region)) == len(segments) + len(large)
