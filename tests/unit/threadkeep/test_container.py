"""The composition root: built from the environment, once, and no more than a function may use."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from threadkeep import container
from threadkeep.config import Config, ConfigError, HotConfig, LimitsConfig
from threadkeep.domain.erasure import Terms
from threadkeep.domain.errors import HotUnavailable
from threadkeep.domain.model import ConversationKey
from threadkeep.stores.bodies_s3 import BodiesS3
from threadkeep.stores.cold_s3 import ColdS3
from threadkeep.stores.erasures_dynamodb import ErasuresDynamoDB
from threadkeep.stores.export_files_s3 import ExportFilesS3
from threadkeep.stores.exports_dynamodb import ExportsDynamoDB
from threadkeep.stores.hot_valkey import HotValkey
from threadkeep.stores.live_dynamodb import LiveDynamoDB
from threadkeep.stores.manifests_dynamodb import ManifestsDynamoDB
from threadkeep.stores.other_tables_dynamodb import OtherTablesDynamoDB
from threadkeep.stores.push_gateway import GatewayPush
from threadkeep.stores.queue_sqs import QueueSQS
from threadkeep.stores.sweep_s3 import SweepS3
from threadkeep.stores.warm_dynamodb import WarmDynamoDB

LAMBDAS = Path(__file__).parents[3] / "lambdas"
NOBODY_PORT = 1
FULL = Config(
    stage="test",
    region="eu-central-1",
    table="threadkeep-test",
    bucket="threadkeep-test-cold",
    buckets={"eu-central-1": "threadkeep-test-cold"},
    connections_url="https://example.execute-api.eu-central-1.amazonaws.com/test",
    hot=HotConfig(host="127.0.0.1", port=NOBODY_PORT),
)
KEY = ConversationKey("acme", "0193e4a0-0000-7000-8000-000000000001")


@pytest.fixture(autouse=True)
def _empty(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    for cached in (container.config, container.services):
        cached.cache_clear()
    yield
    for cached in (container.config, container.services):
        cached.cache_clear()


def configure(monkeypatch: pytest.MonkeyPatch, config: Config) -> None:
    """Let that be the function's environment."""
    for name, value in config.to_environment().items():
        monkeypatch.setenv(name, value)


def test_services_are_the_real_stores_and_built_once(monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, FULL)
    services = container.services()
    assert isinstance(services.hot, HotValkey)
    assert isinstance(services.warm, WarmDynamoDB)
    assert isinstance(services.push, GatewayPush)
    assert isinstance(services.warm._bodies, BodiesS3)
    assert isinstance(services.cold, ColdS3)
    assert isinstance(services.manifests, ManifestsDynamoDB)
    assert isinstance(services.export_files, ExportFilesS3)
    assert services.region == "eu-central-1"
    assert container.services() is services


def test_one_region_alone_has_nothing_to_do_with_others_and_names_itself_nowhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    configure(monkeypatch, FULL)
    services = container.services()
    assert services.others is None
    assert isinstance(services.warm, WarmDynamoDB)
    assert services.warm._written_by == {}


def test_one_of_several_knows_the_others_its_endpoint_and_the_register(monkeypatch: pytest.MonkeyPatch) -> None:
    several = msgspec.structs.replace(
        FULL, regions=("eu-central-1", "us-east-1", "us-east-2"), evacuated=("us-east-2",), endpoint="wss://eu.example"
    )
    configure(monkeypatch, several)
    services = container.services()
    assert services.others is not None
    assert (services.others.names, services.others.endpoint) == (("us-east-1",), "wss://eu.example")
    assert isinstance(services.others.live, LiveDynamoDB)
    assert isinstance(services.others.tables, OtherTablesDynamoDB)
    assert isinstance(services.warm, WarmDynamoDB)
    assert services.warm._written_by == {"g": {"S": "eu-central-1"}}


def test_valkey_is_reached_when_it_is_used_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, FULL)
    hot = container.services().hot
    with pytest.raises(HotUnavailable):
        hot.live(KEY)


def test_limits_are_those_that_the_function_was_told_in_the_region_and_in_the_sandbox(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    configure(monkeypatch, msgspec.structs.replace(FULL, limits=LimitsConfig(user_burst=1, streams_per_user=1)))
    services = container.services()
    assert services.quotas._limits == services.own_quotas._limits  # type: ignore[attr-defined]
    assert services.own_quotas.take("acme", "ann") == 0
    assert services.own_quotas.take("acme", "ann") > 0
    assert services.own_quotas.lease_stream("acme", "ann", "one")
    assert not services.own_quotas.lease_stream("acme", "ann", "two")


def test_a_function_without_a_hot_tier_is_told_so_where_it_would_use_one(monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, Config(stage="test", region="eu-central-1"))
    with pytest.raises(ConfigError, match=r"`live`.*THREADKEEP_HOT_HOST"):
        container.services().hot.live(KEY)


def test_an_eraser_has_its_queue_its_bucket_and_the_receipts(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "https://sqs.eu-central-1.amazonaws.com/123456789012/erase"
    configure(monkeypatch, msgspec.structs.replace(FULL, hot=None, erase_queue=url))
    services = container.services()
    assert isinstance(services.erasures, ErasuresDynamoDB)
    assert isinstance(services.objects, SweepS3)
    assert isinstance(services.erase_queue, QueueSQS)
    assert services.erase_queue._url == url
    with pytest.raises(ConfigError, match="THREADKEEP_TELL_QUEUE"):
        services.tell_queue.send(Config(stage="test", region="eu-central-1"))


def test_only_who_is_told_the_deployments_terms_may_go_by_them(monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, FULL)
    with pytest.raises(ConfigError, match="THREADKEEP_TERMS"):
        container.services().terms.retention_of("acme", None)
    container.config.cache_clear()
    container.services.cache_clear()
    terms = Terms(regions=("eu-central-1",), pitr_days=7, second_pass_ms=60_000, retention_days={"acme": 30})
    configure(monkeypatch, msgspec.structs.replace(FULL, terms=terms))
    assert container.services().terms == terms


def test_what_a_function_has_no_use_of_says_so_when_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, Config(stage="test", region="eu-central-1", table="t", hot=FULL.hot))
    services = container.services()
    with pytest.raises(ConfigError, match=r"`send`.*THREADKEEP_CONNECTIONS_URL"):
        services.push.send(["c="], b"{}")
    assert isinstance(services.warm, WarmDynamoDB)
    with pytest.raises(ConfigError, match=r"`get`.*THREADKEEP_BUCKETS"):
        services.warm._bodies.get("x")


def test_the_clock_shows_the_systems_time() -> None:
    before = time.time_ns() // 1_000_000
    assert before <= container.SystemClock().now_ms() <= before + 60_000


@pytest.mark.parametrize("module", sorted(path.stem for path in (LAMBDAS / "handlers").glob("[!_]*.py")))
def test_importing_a_handler_needs_no_environment_and_loads_no_client(module: str) -> None:
    """In an interpreter of its own: whatever it would do at import it does there."""
    program = f"import sys, handlers.{module}; print(sorted({{'boto3', 'valkey', 'jwt', 'httpx'}} & set(sys.modules)))"
    environment = {"PYTHONPATH": str(LAMBDAS), "PATH": os.environ["PATH"]}
    done = subprocess.run(  # noqa: S603 -- this very interpreter
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment
    )
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_who_makes_exports_has_their_queue_and_their_store_and_no_hot_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "https://sqs.eu-central-1.amazonaws.com/123456789012/export"
    configure(monkeypatch, msgspec.structs.replace(FULL, hot=None, export_queue=url))
    services = container.services()
    assert isinstance(services.exports, ExportsDynamoDB)
    assert isinstance(services.export_queue, QueueSQS)
    assert services.export_queue._url == url
