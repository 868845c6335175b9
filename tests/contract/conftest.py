"""The hot tiers that their suites are run on: the reference in memory, and real Valkey, alone and in cluster mode."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.hot import Lab, Talk, ValkeyLab
from threadkeep.ports import HotStore


@pytest.fixture(params=["memory", "single", "cluster"])
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """Each hot tier in turn."""
    if request.param == "memory":
        lab = Lab()
    else:
        address = request.getfixturevalue(f"valkey_{request.param}")
        lab = ValkeyLab(address, is_cluster=request.param == "cluster")
    yield lab
    lab.close()


@pytest.fixture
def hot(lab: Lab) -> HotStore:
    return lab.hot


@pytest.fixture
def talk(hot: HotStore) -> Talk:
    return Talk(hot)
