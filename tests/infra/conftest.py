"""Each target is synthesized once a session, with a bundle of one line in place of the real one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stacks.bundle import Bundle
from stacks.settings import Settings
from stacks.synth import SETTINGS, with_network
from tests.infra.networks import Net
from tests.infra.synthesized import Deployment

LOCAL: dict[str, Any] = {
    "target": "local",
    "stage": "local",
    "regions": ["us-east-1", "eu-central-1"],
    "jwks_url": "http://127.0.0.1:4566/keys/jwks.json",
    "jwt_issuer": "https://local.threadkeep.invalid/",
    "jwt_audience": "threadkeep",
    "query_token": True,
    "local_endpoint": "http://127.0.0.1:4566",
    "hot_endpoint": {"us-east-1": "127.0.0.1:6379", "eu-central-1": "127.0.0.1:6380"},
    "model": {"kind": "recorded"},
}


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    folder = tmp_path_factory.mktemp("bundle")
    (folder / "code.py").write_text("", encoding="utf-8")
    return Bundle(folder=folder, digest="0" * 64)


@pytest.fixture(scope="session")
def aws(bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    settings = Settings.from_file(SETTINGS)
    return Deployment.from_settings(settings, bundle=bundle, outdir=_outdir(tmp_path_factory, "aws"))


@pytest.fixture(scope="session")
def aws_vpc(bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    settings = with_network(Settings.from_file(SETTINGS), "vpc")
    return Deployment.from_settings(settings, bundle=bundle, outdir=_outdir(tmp_path_factory, "aws_vpc"))


@pytest.fixture(scope="session")
def local(bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    settings = Settings.from_values(LOCAL)
    return Deployment.from_settings(settings, bundle=bundle, outdir=_outdir(tmp_path_factory, "local"))


@pytest.fixture(scope="session")
def local_vpc(bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    settings = Settings.from_values(LOCAL | {"network": "vpc"})
    return Deployment.from_settings(settings, bundle=bundle, outdir=_outdir(tmp_path_factory, "local_vpc"))


@pytest.fixture
def net(aws_vpc: Deployment, region: str) -> Net:
    """That of the region which the test is about."""
    return Net(aws_vpc.templates[f"Network-{region}"])


def _outdir(factory: pytest.TempPathFactory, name: str) -> Path:
    return factory.mktemp(name) / "cdk.out"
