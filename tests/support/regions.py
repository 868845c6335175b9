"""Two regions over one global table: what one has written the other gets when a test says so, item by item.

As DynamoDB replicates: each item as a whole, the one written last stands, and each region's own stream tells of what
was written there and of what came from the other.
"""

from __future__ import annotations

import base64
import dataclasses
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec
import pytest

from tests.support.erasing import record, sqs_record
from tests.support.hot import SetClock
from tests.support.house import REGION, START_MS, House, LambdaContext
from threadkeep import container
from threadkeep.domain.erasure import Terms
from threadkeep.domain.model import ConversationKey
from threadkeep.schema import (
    REGION_ATTRIBUTE,
    SORT_CLAIM,
    SORT_DUE,
    SORT_GONE,
    SORT_HEAD,
    SORT_KEY,
    SORT_LIVE,
    SORT_MESSAGE,
    SORT_PULSE,
    SORT_ROOTS,
)
from threadkeep.stores import contest_items, live_items, table_keys, warm_items
from threadkeep.stores.claims_memory import ClaimsMemory
from threadkeep.stores.live_memory import LiveMemory
from threadkeep.stores.other_tables_memory import OtherTablesMemory
from threadkeep.stores.packing import pack
from threadkeep.usecases.services import OtherRegions
from threadkeep.usecases.sweeping import sweep

EU: Final = REGION
US: Final = "us-east-1"
Address = tuple[ConversationKey, str]


def endpoint(region: str) -> str:
    """Where clients of a region connect to."""
    return f"wss://{region}.chat.example.com/test"


class Change(msgspec.Struct, frozen=True):
    """An item as it was written (None: removed), by whom, and when."""

    address: Address
    value: Any
    writer: str
    stamp: int


class RegionHouse(House):
    """One of the regions; it is the one that serves for as long as it is asked."""

    def __init__(self, regions: Regions, region: str) -> None:
        super().__init__(region, regions.clock)
        self._regions = regions
        self.region = region
        self.others = OtherTablesMemory({})
        self.records: list[dict[str, Any]] = []
        self.stamps: dict[Address, int] = {}
        self.outbox: list[Change] = []
        self.known: dict[Address, Any] = {}
        self.replace(
            terms=Terms(regions=(EU, US)),
            others=OtherRegions(
                endpoint=endpoint(region),
                names=tuple(name for name in (EU, US) if name != region),
                live=LiveMemory(self.warm, region),
                tables=self.others,
                claims=ClaimsMemory(self.warm, region),
            ),
        )

    def evacuate(self, *regions: str) -> None:
        """Take these for gone from here on; none: all count again."""
        others = self.services.others
        assert others is not None
        names = tuple(name for name in (EU, US) if name != self.region and name not in regions)
        self.replace(others=dataclasses.replace(others, names=names))

    def invoke(self, event: dict[str, Any]) -> dict[str, Any]:
        """See `House.invoke`."""
        with self._regions.serving_from(self):
            return super().invoke(event)

    def run(self, name: str, event: dict[str, Any]) -> Any:
        """Call one of the other handlers as Lambda does."""
        with self._regions.serving_from(self):
            return importlib.import_module(f"handlers.{name}").handler(event, LambdaContext())

    def sweep(self) -> None:
        """Sweep once: the function itself does so three times, with pauses."""
        with self._regions.serving_from(self):
            sweep(self.services)

    # --- its replica of the table -------------------------------------------------------------------------------

    def items(self) -> dict[Address, Any]:
        """All items that the table would hold, as they stand."""
        warm = self.warm
        found: dict[Address, Any] = {(key, SORT_GONE): value for key, value in warm.gone.items()}
        found |= {(key, SORT_HEAD): warm.standing_head(key) for key in warm._heads}
        for key, claims in warm.claims.items():
            found |= {(key, contest_items.claim_key(region)): claim for region, claim in claims.items()}
        found |= {(key, SORT_PULSE): (at, warm.listed_with[key]) for key, at in warm.active_at.items()}
        found |= {(key, SORT_DUE): at for key, at in warm.due_at.items()}
        found |= {(key, SORT_ROOTS): True for key in warm.several}
        for key, messages in warm.messages.items():
            found |= {(key, table_keys.message(message)): stored for message, stored in messages.items()}
        for key, regions in warm.live.items():
            found |= {(key, live_items.sort_key(region)): streams for region, streams in regions.items()}
        for key, lines in self.erasures.lines.items():
            found |= {(key, table_keys.receipt_line(*name)): line for name, line in lines.items()}
        return found

    def put(self, address: Address, value: Any) -> None:
        """Write an item as it was replicated."""
        key, sort_key = address
        warm = self.warm
        if sort_key == SORT_GONE:
            _set(warm.gone, key, value)
        elif sort_key == SORT_HEAD:
            warm.put_standing_head(key, value)
        elif sort_key.startswith(SORT_CLAIM):
            _set(warm.claims.setdefault(key, {}), contest_items.region_of(sort_key), value)
        elif sort_key == SORT_PULSE:
            _set(warm.active_at, key, value and value[0])
            _set(warm.listed_with, key, value and value[1])
        elif sort_key == SORT_DUE:
            _set(warm.due_at, key, value)
        elif sort_key == SORT_ROOTS:
            (warm.several.add if value else warm.several.discard)(key)
        elif sort_key.startswith(SORT_MESSAGE):
            _set(warm.messages.setdefault(key, {}), table_keys.message_of(sort_key), value)
        elif sort_key.startswith(SORT_LIVE):
            _set(warm.live.setdefault(key, {}), live_items.region_of(sort_key), value)
        else:
            _set(self.erasures.lines.setdefault(key, {}), table_keys.receipt_line_of(sort_key), value)

    def applied(self, change: Change) -> None:
        """Take a change in, unless a later one stands; the region's stream tells of it."""
        if change.stamp < self.stamps.get(change.address, 0):
            return
        self.stamps[change.address] = change.stamp
        old = self.known.get(change.address)
        self.put(change.address, change.value)
        _set(self.known, change.address, change.value)
        self.note(change, old)

    def note(self, change: Change, old: Any) -> None:
        """Put a record of it into the region's stream."""
        key, sort_key = change.address
        kind = "REMOVE" if change.value is None else "INSERT" if old is None else "MODIFY"
        made = record(table_keys.partition(key), sort_key, len(self.records) + 1, kind=kind)
        for name, value in (("NewImage", change.value), ("OldImage", old)):
            if value is not None:
                made["dynamodb"][name] = _image(change.address, value, change.writer)
        self.records.append(made)


class Regions:
    """Both of them, by one clock.

    Attributes:
        eu: home.
    """

    def __init__(self) -> None:
        self.clock = SetClock(START_MS)
        self.eu, self.us = RegionHouse(self, EU), RegionHouse(self, US)
        self.eu.others.tables = {US: self.us.warm}
        self.us.others.tables = {EU: self.eu.warm}
        self.current: House = self.eu
        self._stamp = 0

    @contextmanager
    def serving_from(self, house: RegionHouse) -> Iterator[None]:
        """The handlers serve from there meanwhile; what is written is noted down, to be replicated."""
        before, self.current = self.current, house
        try:
            yield
        finally:
            self.current = before
            self._write_down(house)

    def replicate(self, only: Callable[[str], bool] = lambda _sort_key: True) -> None:
        """Have everything that was written come to the other region, or those items alone."""
        for source, target in ((self.eu, self.us), (self.us, self.eu)):
            self._write_down(source)
            coming = [change for change in source.outbox if only(change.address[1])]
            source.outbox = [change for change in source.outbox if not only(change.address[1])]
            for change in coming:
                target.applied(change)

    def announce(self, house: RegionHouse) -> None:
        """Let the region's announcer take what its stream has, and herald and eraser what that gives them."""
        records, house.records = house.records, []
        if records:
            assert house.run("announcer", {"Records": records}) == {"batchItemFailures": []}
        for name, queue in (("eraser", house.erase_queue), ("herald", house.tell_queue)):
            jobs = [sqs_record(job, number) for number, job in enumerate(queue.take())]
            if jobs:
                assert house.run(name, {"Records": jobs}) == {"batchItemFailures": []}

    def settle(self) -> None:
        """Everything written comes everywhere, and is told there."""
        self.replicate()
        for house in (self.eu, self.us):
            self.announce(house)
        self.replicate()

    def _write_down(self, house: RegionHouse) -> None:
        now = house.items()
        for address in [*now, *(gone for gone in house.known if gone not in now)]:
            value = now.get(address)
            old = house.known.get(address)
            if value == old:
                continue
            self._stamp += 1
            change = Change(address, value, house.region, self._stamp)
            house.stamps[address] = self._stamp
            house.outbox.append(change)
            _set(house.known, address, value)
            house.note(change, old)


def _set(values: dict[Any, Any], name: Any, value: Any) -> None:
    if value is None:
        values.pop(name, None)
    else:
        values[name] = value


def _image(address: Address, value: Any, writer: str) -> dict[str, Any]:
    """The item as the stream shows it, as far as anybody reads it there."""
    key, sort_key = address
    image: dict[str, Any] = warm_items.primary_key(key, sort_key)
    if sort_key.startswith(SORT_MESSAGE):
        body = base64.b64encode(pack(value.message)).decode()  # as Lambda's events have it
        item = warm_items.message_item(key.tenant, value) | {warm_items.BODY: {"B": body}}
        return item | {REGION_ATTRIBUTE: {"S": writer}}
    if sort_key == SORT_ROOTS:
        return image | {REGION_ATTRIBUTE: {"S": writer}}
    if sort_key == SORT_HEAD:
        return contest_items.claimed_head_item(key.tenant, value) | {REGION_ATTRIBUTE: {"S": writer}}
    if sort_key.startswith(SORT_LIVE):
        image |= {SORT_KEY: {"S": sort_key}, "endpoint": {"S": endpoint(live_items.region_of(sort_key))}}
        return image | {
            name: live_items.stream_value(live, until_ms=until_ms) for name, (live, until_ms) in value.items()
        }
    return image


@pytest.fixture
def regions() -> Iterator[Regions]:
    """Two new regions, served."""
    made = Regions()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(container, "services", lambda: made.current.services)
        patch.setenv("POWERTOOLS_SERVICE_NAME", "threadkeep-test")
        patch.setenv("POWERTOOLS_METRICS_NAMESPACE", "Threadkeep")
        yield made
