"""How often somebody may ask, through the real handlers."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.house import LAPTOP, PHONE, WORKER, Device, House
from threadkeep.domain.commands import COMMANDS
from threadkeep.domain.errors import HotUnavailable
from threadkeep.domain.rates import Rate, Rates
from threadkeep.stores.quotas_memory import QuotasMemory

LIMITS = Rates(user=Rate(per_s=1.0, burst=3), tenant=Rate(per_s=10.0, burst=6), streams_max=20)
UMBRELLA = Device(connection="umbrella=", tenant="umbrella")


class NoQuotas(QuotasMemory):
    """Valkey is away."""

    def take(self, tenant: str, user: str | None) -> int:  # noqa: ARG002 -- whoever asks
        raise HotUnavailable("away")


@pytest.fixture
def strict(house: House) -> House:
    house.replace(quotas=QuotasMemory(house.clock, LIMITS), own_quotas=QuotasMemory(house.clock, LIMITS))
    return house


def codes(house: House, device: Device, times: int) -> list[str]:
    """Create conversations, one after the other."""
    return [house.say(device, "conversation.create").get("code", "ok") for _ in range(times)]


def test_beyond_the_burst_a_user_is_told_when_to_ask_again_and_is_then_served(strict: House) -> None:
    assert codes(strict, PHONE, 3) == ["ok"] * 3
    refused = strict.say(LAPTOP, "conversation.create")
    assert (refused["code"], refused["retryable"], refused["retry_after_ms"]) == ("rate_limited", True, 1_000)
    strict.clock.ms += 999
    assert codes(strict, PHONE, 1) == ["rate_limited"]
    strict.clock.ms += 1
    assert codes(strict, PHONE, 1) == ["ok"]


def test_a_tenant_at_its_limit_leaves_the_others_untouched(strict: House) -> None:
    for user in ("ann", "bob", "cy", "di"):
        codes(strict, msgspec.structs.replace(PHONE, user=user), 3)
    assert codes(strict, msgspec.structs.replace(PHONE, user="eve"), 1) == ["rate_limited"]
    assert codes(strict, UMBRELLA, 3) == ["ok"] * 3


def test_a_worker_is_bounded_by_its_tenant_alone(strict: House) -> None:
    assert codes(strict, WORKER, 7) == ["ok"] * 6 + ["rate_limited"]


def test_a_flood_of_random_ids_reads_no_table(strict: House) -> None:
    codes(strict, PHONE, 3)
    strict.warm.unavailable = True
    reply = strict.say(PHONE, "message.create", conversation=strict.new_id(), parent=None, role="user", parts=[])
    assert reply["code"] == "rate_limited"


def test_while_valkey_is_away_each_sandbox_counts_for_itself(strict: House) -> None:
    strict.replace(quotas=NoQuotas(strict.clock))
    assert codes(strict, PHONE, 4) == ["ok"] * 3 + ["rate_limited"]
    assert codes(strict, UMBRELLA, 1) == ["ok"]


def test_what_writes_or_costs_is_metered_and_appends_and_reads_are_not() -> None:
    metered = {str(command.__struct_config__.tag) for command in COMMANDS if command.metered}
    assert metered == {
        "blob.create",
        "conversation.create",
        "conversation.delete",
        "conversation.update",
        "export.create",
        "message.create",
        "message.respond",
        "stream.open",
    }
