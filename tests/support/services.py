"""Real services for tests, each started once a run on a port of its own and stopped exactly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from rich.console import Console

from local.cloud import Cloud
from local.interrupts import interruptible
from local.keys import SigningKey
from local.progress import Steps
from local.state import Address, CloudState
from local.valkey import running_valkey
from tests.support.dynalite import running_dynalite
from tests.support.emulator import running_emulator
from tests.support.leftovers import keys_left_for_ever, keys_of_nobody

SHORT: Final[Mapping[str, Any]] = {
    "archive_idle_days": 0.0001,  # 8.6 s
    "archive_settle_minutes": 0.05,
    "erasure_second_pass_minutes": 0.05,
    "network": "vpc",  # so that the responder writes by the longer of its two ways
}


class DeployedCloud(msgspec.Struct, frozen=True, kw_only=True):
    """A deployed local cloud as a test sees it."""

    state: CloudState
    folder: Path

    def mint_token(self, *, sub: str = "ada", tenant: str = "acme", scope: str = "chat produce") -> str:
        """A token that its authorizer takes."""
        return self.key.mint_token(sub=sub, tenant=tenant, scope=scope.split())

    @property
    def key(self) -> SigningKey:
        """The key whose tokens it takes."""
        return self.state.signing_key(self.folder)


@pytest.fixture(scope="session")
def valkey_single(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """A real Valkey, a single server."""
    with interruptible(), running_valkey(tmp_path_factory.mktemp("valkey"), is_cluster=False) as address:
        yield address


@pytest.fixture(scope="session")
def valkey_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """A real Valkey in cluster mode, one node with all slots; it refuses scripts across slots."""
    with interruptible(), running_valkey(tmp_path_factory.mktemp("valkey"), is_cluster=True) as address:
        yield address


@pytest.fixture(scope="session")
def dynalite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The endpoint of a DynamoDB that meters reads, and writes to the table, as the real one does."""
    with interruptible(), running_dynalite(tmp_path_factory.mktemp("dynalite")) as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def ministack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The endpoint of an AWS emulator with nothing in it; it meters writes to indexes as DynamoDB does."""
    folder = tmp_path_factory.mktemp("ministack")
    with interruptible(), running_emulator(folder) as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def local_cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeployedCloud]:
    """The app, deployed into a local cloud of this test run's own (about 20 s), with periods that a test can wait for.

    When all tests are through, no key may be left in its Valkey that should not be, or that names no tenant.
    """
    folder = tmp_path_factory.mktemp("cloud")
    with interruptible(), Cloud(folder, Steps(Console(quiet=True)), settings=SHORT) as state:
        yield DeployedCloud(state=state, folder=folder)
        assert keys_left_for_ever(state.valkey) == []
        assert keys_of_nobody(state.valkey) == []
