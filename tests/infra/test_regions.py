"""Several regions: what each function is told of the others, what it may ask them, and what their changes bring."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stacks import bulkheads
from stacks.bundle import Bundle
from stacks.settings import Settings, SettingsError
from stacks.synth import SETTINGS
from tests.infra.conftest import LOCAL
from tests.infra.synthesized import ACCOUNT, Deployment
from tests.infra.test_erasing import mapping_of

REGIONS = ("eu-central-1", "us-east-1")
OTHER = dict(zip(REGIONS, reversed(REGIONS), strict=True))
TABLE = "threadkeep-prod"
KNOWING = {"connection", "herald", "history", "responder", "send", "stream", "sweeper"}
ASKING = {"history", "responder", "send", "stream", "sweeper"}


@pytest.fixture(params=REGIONS)
def region(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def alone(bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    """The same, of one region."""
    settings = one_region(Settings.from_file(SETTINGS))
    return Deployment.from_settings(settings, bundle=bundle, outdir=tmp_path_factory.mktemp("alone") / "cdk.out")


def one_region(settings: Settings) -> Settings:
    return msgspec.structs.replace(settings, regions=settings.regions[:1], availability_zones={})


def deployed() -> list[str]:
    return sorted(one.name for one in bulkheads.deployed(has_model=True, network="public"))


def far_reads(deployment: Deployment, region: str, name: str) -> list[tuple[Any, Any]]:
    """What a function may do on tables of regions other than its own."""
    return [
        (statement["Action"], statement["Resource"])
        for statement in deployment.statements(region, name)
        if "dynamodb" in json.dumps(statement["Action"]) and OTHER[region] in json.dumps(statement["Resource"])
    ]


def test_those_who_tell_or_ask_other_regions_know_them_and_the_rest_do_not(aws: Deployment, region: str) -> None:
    configs = {name: aws.config(region, name) for name in deployed()}
    assert {name for name, config in configs.items() if config.regions} == KNOWING
    for name in KNOWING:
        assert configs[name].regions == REGIONS
        assert configs[name].others == (OTHER[region],)
        assert configs[name].evacuated == ()
        assert configs[name].endpoint.startswith("wss://")
        assert region in configs[name].endpoint
        assert configs[name].endpoint.endswith("/prod")


def test_what_is_missing_and_when_one_was_active_may_be_asked_for_in_the_others_tables_and_nothing_else_may(
    aws: Deployment, region: str
) -> None:
    for name in deployed():
        reads = ["dynamodb:GetItem", "dynamodb:Query"]
        expected = [(reads, f"arn:aws:dynamodb:{OTHER[region]}:{ACCOUNT}:table/{TABLE}")]
        found = far_reads(aws, region, name)
        assert found == (expected if name in ASKING else []), name


def test_within_a_network_of_its_own_so_does_whoever_writes_for_the_responder(aws_vpc: Deployment, region: str) -> None:
    for name in (*ASKING, "produce"):
        assert len(far_reads(aws_vpc, region, name)) == 1, name


def test_the_announcer_is_given_what_others_change_in_heads_messages_and_registers(
    aws: Deployment, region: str
) -> None:
    filters = mapping_of(aws, f"Realtime-{region}", "announcer")["FilterCriteria"]["Filters"]
    patterns = [json.loads(each["Pattern"]) for each in filters]
    assert patterns == [
        {"eventName": ["INSERT"]},
        {"eventName": ["MODIFY"], "dynamodb": {"Keys": {"sk": {"S": ["head", {"prefix": "m#"}, {"prefix": "live#"}]}}}},
    ]


def test_one_region_alone_knows_asks_and_is_given_nothing_of_it(alone: Deployment) -> None:
    home = REGIONS[0]
    for name in deployed():
        config = alone.config(home, name)
        assert (config.regions, config.evacuated, config.endpoint) == ((), (), "")
        assert far_reads(alone, home, name) == []
    assert "dynamodb:PutItem" not in json.dumps(alone.statements(home, "announcer"))
    (only,) = mapping_of(alone, f"Realtime-{home}", "announcer")["FilterCriteria"]["Filters"]
    assert json.loads(only["Pattern"]) == {"eventName": ["INSERT"]}
    assert mapping_of(alone, f"Realtime-{home}", "herald")["ScalingConfig"] == {"MaximumConcurrency": 5}


# --- settings -------------------------------------------------------------------------------------------------


def test_a_domain_of_ones_own_and_an_evacuated_region_are_told(bundle: Bundle, tmp_path: Path) -> None:
    own = "ws://us.chat.example.com/local"
    values = LOCAL | {"endpoints": {"us-east-1": own}, "evacuated": ["eu-central-1"]}
    made = Deployment.from_settings(Settings.from_values(values), bundle=bundle, outdir=tmp_path / "cdk.out")
    us, eu = (made.config(region, "stream") for region in LOCAL["regions"])
    assert us.endpoint == own
    assert eu.endpoint.startswith("ws://127.0.0.1:4566/_aws/execute-api/")
    assert us.others == ()
    assert eu.others == ("us-east-1",)
    assert us.evacuated == ("eu-central-1",)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("evacuated", ["eu-west-1"]),
        ("evacuated", ["us-east-1", "eu-central-1"]),
        ("endpoints", {"eu-west-1": "wss://chat.example.com/prod"}),
        ("endpoints", {"us-east-1": "https://chat.example.com/prod"}),
        ("endpoints", {"us-east-1": "wss://chat.example.com/prod?token=x"}),
    ],
)
def test_what_names_no_region_or_no_socket_is_refused(name: str, value: object) -> None:
    with pytest.raises(SettingsError, match=f"setting `{name}`"):
        Settings.from_values(LOCAL | {name: value})


def test_on_aws_an_endpoint_is_encrypted() -> None:
    values = tomllib.loads(SETTINGS.read_text(encoding="utf-8"))
    region = values["regions"][0]
    Settings.from_values(values | {"endpoints": {region: "wss://eu.chat.example.com/prod"}})
    with pytest.raises(SettingsError, match="setting `endpoints`"):
        Settings.from_values(values | {"endpoints": {region: "ws://eu.chat.example.com/prod"}})
