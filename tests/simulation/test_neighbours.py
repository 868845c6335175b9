"""Noisy neighbours: who is at a limit, or floods what is slow, is alone with it. Each fault would be seen, too."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

import msgspec
import pytest

from stacks import bulkheads
from tests.simulation.neighbours import WRITE_UNITS_A_S, Arrival, Meter, MeteredTable, Served, serve
from tests.support.house import BULKHEADS, PHONE, UNLIMITED, WORKER, Device, Frame, House, house, text_part
from tests.support.tiers import Calls, Tale
from threadkeep.domain.bounds import PAGE_ITEMS_DEFAULT
from threadkeep.domain.model import Conversation
from threadkeep.domain.rates import Rates
from threadkeep.stores.quotas_memory import QuotasMemory

__all__ = ["house"]

SEEDS: Final = (1, 2, 3)
NOISY: Final = "noisy"
QUIET: Final = ("acme", "umbrella", "initech")
LIMITS: Final = Rates()


def draw_of(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 -- a seed must give the same history again


# --- tenants at their limit -------------------------------------------------------------------------------------


class OneBucketForAll(QuotasMemory):
    """The fault that the test would see: all tenants share a limit."""

    def take(self, tenant: str, user: str | None) -> int:
        assert tenant
        return super().take("all", None if user is None else f"{tenant}/{user}")


class Town:
    """Tenants with users, each with a conversation; one tenant asks far beyond its limit."""

    def __init__(self, house: House, seed: int, *, quotas: type[QuotasMemory]) -> None:
        self.house = house
        self.meter = Meter(house.clock)
        self.answers: dict[str, Counter[str]] = {}
        self._draw = draw_of(seed)
        house.replace(warm=MeteredTable(self.meter))
        self._places = {
            tenant: [self._settle(tenant, user) for user in range(users)]
            for tenant, users in ((NOISY, 60), *((tenant, 3) for tenant in QUIET))
        }
        house.replace(quotas=quotas(house.clock, LIMITS))

    def _settle(self, tenant: str, user: int) -> tuple[Device, str]:
        device = Device(connection=f"{tenant}-{user}=", tenant=tenant, user=f"user-{user}")
        return device, self.house.conversation(device)

    def live(self, seconds: int, rates: dict[str, int]) -> None:
        """So many sends a second of each tenant, evenly but for chance."""
        sends = sorted(
            (self._draw.uniform(0, seconds * 1_000), tenant)
            for tenant, rate in rates.items()
            for _ in range(rate * seconds)
        )
        start_ms = self.house.clock.ms
        for at_ms, tenant in sends:
            self.house.clock.ms = max(self.house.clock.ms, start_ms + int(at_ms))
            device, conversation = self._draw.choice(self._places[tenant])
            said: Frame = {"parent": None, "role": "user", "parts": [text_part("x")], "fork": True}
            reply = self.house.say(device, "message.create", conversation=conversation, **said)
            self.answers.setdefault(tenant, Counter())[reply.get("code", "ok")] += 1


@pytest.mark.parametrize("seed", SEEDS)
def test_a_tenant_at_its_limit_leaves_the_others_untouched(house: House, seed: int) -> None:
    town = Town(house, seed, quotas=QuotasMemory)
    town.live(3, {NOISY: 800} | dict.fromkeys(QUIET, 5))
    noisy = town.answers.pop(NOISY)
    assert noisy["rate_limited"] > 0
    assert noisy["ok"] <= LIMITS.tenant.burst + 3 * LIMITS.tenant.per_s
    assert noisy["ok"] >= LIMITS.tenant.burst, "which still has what is its own"
    assert town.answers == {tenant: Counter(ok=15) for tenant in QUIET}
    assert not town.meter.throttled


def test_it_would_be_seen_if_all_shared_a_limit(house: House) -> None:
    town = Town(house, SEEDS[0], quotas=OneBucketForAll)
    town.live(3, {NOISY: 800} | dict.fromkeys(QUIET, 5))
    assert sum(town.answers[tenant]["rate_limited"] for tenant in QUIET) > 0


# --- a partition at its limit -----------------------------------------------------------------------------------


def hammer(house: House, meter: Meter) -> dict[str, Counter[str]]:
    """A worker writes far more into one conversation than a partition takes, and others write into theirs."""
    house.replace(quotas=QuotasMemory(house.clock, UNLIMITED))
    beside = Device(connection="beside=", tenant="acme", user="bob")
    afar = Device(connection="afar=", tenant="umbrella")
    places = {"hot": (PHONE, house.conversation()), "beside": (beside, house.conversation(beside))}
    places["afar"] = (afar, house.conversation(afar))
    workers = {device: msgspec.structs.replace(WORKER, tenant=device.tenant) for device, _ in places.values()}
    table = MeteredTable(meter)
    house.replace(warm=table)
    for device, conversation in places.values():
        head = house.warm.read_head(house.key(conversation, device.tenant))
        assert isinstance(head, Conversation)
        table.create_conversation(device.tenant, head)
    answers: dict[str, Counter[str]] = {name: Counter() for name in places}
    text = "x" * 4_000
    for number, name in enumerate(itertools.islice(itertools.cycle(["hot"] * 20 + ["beside", "afar"]), 880)):
        house.clock.ms += number % 2
        device, conversation = places[name]
        said: Frame = {"parent": None, "role": "tool", "parts": [text_part(text)], "fork": True}
        reply = house.say(workers[device], "message.create", conversation=conversation, **said)
        answers[name][reply.get("code", "ok")] += 1
    return answers


def test_a_partition_beyond_what_it_takes_leaves_its_neighbours_untouched(house: House) -> None:
    meter = Meter(house.clock)
    answers = hammer(house, meter)
    assert answers["hot"]["unavailable"] > 0, "and whoever hammers is told to come again"
    assert answers["hot"]["ok"] > 0
    assert set(answers["beside"]) == set(answers["afar"]) == {"ok"}
    assert len(meter.throttled) == 1
    assert max(meter.peak.values()) <= WRITE_UNITS_A_S


@pytest.mark.parametrize(
    ("shared", "hit"), [(lambda key: key.tenant, {"beside"}), (lambda _: "all", {"beside", "afar"})]
)
def test_it_would_be_seen_if_conversations_shared_a_partition(
    house: House, shared: Callable[[object], object], hit: set[str]
) -> None:
    answers = hammer(house, Meter(house.clock, shared))
    assert {name for name in ("beside", "afar") if answers[name]["unavailable"]} == hit


# --- a flood of what is slow --------------------------------------------------------------------------------------

EXECUTIONS: Final = 1_000
"""What an account may run at once, to begin with."""
COSTS_MS: Final = {"hot": 1, "warm": 5, "manifests": 5, "cold": 250}
"""How long a call of a store takes, assumed: a bucket on a bad day."""
FLOOD_A_S: Final = 8_000
"""Cold reads; with the appends almost the 10,000 requests a second that the gateway lets in."""
APPENDS_A_S: Final = 1_000
SECONDS: Final = 2


def cost_ms(calls: Calls, ask: Callable[[], object]) -> int:
    """How long the handler is at a request, by what it really asks of its stores."""
    calls.forget()
    ask()
    return sum(COSTS_MS[store] for store, _, _ in calls.made)


def arrivals(draw: random.Random, takes_ms: dict[str, int]) -> Iterator[Arrival]:
    for action, rate in (("message.list", FLOOD_A_S), ("stream.append", APPENDS_A_S)):
        for _ in range(rate * SECONDS):
            yield Arrival(draw.uniform(0, SECONDS * 1_000), action, takes_ms[action])


@pytest.fixture
def takes_ms(house: House) -> dict[str, int]:
    """What an append and a page of a cold conversation cost, on the real handlers."""
    tale = Tale(house)
    tale.archive(tale.chain(2 * PAGE_ITEMS_DEFAULT))
    tale.rest()
    conversation = house.conversation()
    place = house.stream(conversation, house.message(conversation))
    calls = Calls(house)
    return {
        "message.list": cost_ms(
            calls, lambda: house.ok(PHONE, "message.list", conversation=tale.conversation, leaf="all")
        ),
        "stream.append": cost_ms(calls, lambda: house.ok(WORKER, "stream.append", **place, ops=[["text", 0, "x"]])),
    }


def flooded(seed: int, takes_ms: dict[str, int], *, pool_of: Callable[[str], str], sizes: dict[str, int]) -> Served:
    """What becomes of the appends."""
    draw = draw_of(seed)
    served = serve(arrivals(draw, takes_ms), pool_of=pool_of, sizes=sizes, draw=draw, pause_ms=100)
    assert len(served["stream.append"].latencies_ms) == APPENDS_A_S * SECONDS
    assert served["message.list"].throttled > 0, "more cold reads come than can be served at once"
    return served["stream.append"]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_flood_of_cold_reads_delays_no_append(takes_ms: dict[str, int], seed: int) -> None:
    sizes = {
        bulkhead.name: bulkheads.reserved_concurrency(bulkhead, EXECUTIONS) for bulkhead in bulkheads.ROUTE_BULKHEADS
    }
    appends = flooded(seed, takes_ms, pool_of=BULKHEADS.__getitem__, sizes=sizes)
    assert appends.throttled == 0
    assert {round(latency_ms) for latency_ms in appends.latencies_ms} == {takes_ms["stream.append"]}


@pytest.mark.parametrize("seed", SEEDS)
def test_it_would_be_seen_if_all_routes_were_one_function(takes_ms: dict[str, int], seed: int) -> None:
    appends = flooded(seed, takes_ms, pool_of=lambda _: "all", sizes={"all": EXECUTIONS})
    assert appends.throttled > 0
    assert max(appends.latencies_ms) > 100 * takes_ms["stream.append"]
