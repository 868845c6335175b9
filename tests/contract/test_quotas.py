"""Rates and concurrent streams, in memory and in Valkey, one node and cluster mode."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.hot import SetClock, client_of
from threadkeep.domain.rates import Rate, Rates
from threadkeep.ports import Quotas
from threadkeep.stores.quotas_memory import QuotasMemory
from threadkeep.stores.quotas_valkey import QuotasValkey

HOUR = 3_600.0
LIMITS = Rates(user=Rate(per_s=1 / HOUR, burst=3), tenant=Rate(per_s=1 / HOUR, burst=7), streams_max=2)
"""So slow that nothing comes back while a test runs."""


@pytest.fixture(params=["memory", "single", "cluster"])
def quotas(request: pytest.FixtureRequest) -> Iterator[Quotas]:
    if request.param == "memory":
        yield QuotasMemory(SetClock(1_800_000_000_000), LIMITS)
        return
    address = request.getfixturevalue(f"valkey_{request.param}")
    yield QuotasValkey(client_of(address, is_cluster=request.param == "cluster"), LIMITS)


def test_a_user_has_a_burst_and_is_then_told_when_to_ask_again(quotas: Quotas) -> None:
    assert [quotas.take("burst", "ann") for _ in range(3)] == [0, 0, 0]
    assert 0 < quotas.take("burst", "ann") <= HOUR * 1_000
    assert quotas.take("burst", "bob") == 0


def test_a_tenant_at_its_limit_leaves_the_others_untouched(quotas: Quotas) -> None:
    assert [quotas.take("full", None) for _ in range(7)] == [0] * 7
    assert quotas.take("full", None) > 0
    assert quotas.take("full", "ann") > 0
    assert quotas.take("other", "ann") == 0


def test_what_is_refused_is_taken_from_neither_bucket(quotas: Quotas) -> None:
    assert [quotas.take("both", "ann") for _ in range(3)] == [0, 0, 0]
    for _ in range(20):
        assert quotas.take("both", "ann") > 0
    # four of seven are left to the rest of the tenant
    assert [quotas.take("both", None) > 0 for _ in range(5)] == [False, False, False, False, True]


def test_names_that_hold_our_separators_share_no_bucket(quotas: Quotas) -> None:
    assert [quotas.take("sep", "a:r:b") for _ in range(3)] == [0, 0, 0]
    assert quotas.take("sep:r:a", "b") == 0
    assert quotas.take("{sep}", "a") == 0


def test_a_user_has_so_many_live_streams(quotas: Quotas) -> None:
    assert quotas.lease_stream("live", "ann", "one")
    assert quotas.lease_stream("live", "ann", "two")
    assert quotas.lease_stream("live", "ann", "two")
    assert not quotas.lease_stream("live", "ann", "three")
    assert quotas.lease_stream("live", "bob", "three")
    quotas.release_stream("live", "ann", "one")
    assert quotas.lease_stream("live", "ann", "three")
