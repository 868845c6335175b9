"""A wrong or missing setting is one line that names it and says what it may be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stacks.app import ROOT
from stacks.settings import Settings, SettingsError, find
from tests.infra.conftest import LOCAL
from threadkeep.config import Config, Terms
from threadkeep.domain.rates import Rate, Rates

AWS: dict[str, Any] = {
    "target": "aws",
    "stage": "prod",
    "regions": ["eu-central-1", "us-east-1"],
    "jwks_url": "https://id.example.com/jwks.json",
    "jwt_issuer": "https://id.example.com/",
    "jwt_audience": "threadkeep",
}


@pytest.mark.parametrize("name", ["target", "stage", "regions", "jwks_url", "jwt_issuer", "jwt_audience"])
def test_a_missing_setting_is_named(name: str) -> None:
    message = refusal({key: value for key, value in AWS.items() if key != name})
    assert message.startswith(f"setting `{name}` is missing; it is ")


@pytest.mark.parametrize(
    ("name", "value", "may_be"),
    [
        ("target", "azure", '"aws" (a real account) or "local"'),
        ("stage", "Prod", "lower-case letters"),
        ("stage", "a" * 17, "up to 16"),
        ("stage", "a--b", "single hyphens"),
        ("stage", "a-", "single hyphens"),
        ("stage", 7, "lower-case letters"),
        ("regions", [], "home region first"),
        ("regions", ["Frankfurt"], "a list of AWS regions"),
        ("regions", "eu-central-1", "a list of AWS regions"),
        ("regions", ["eu-central-1", "eu-central-1"], "each once"),
        ("jwks_url", "id.example.com", "URL"),
        ("jwks_url", "http://id.example.com/jwks.json", "https on aws"),
        ("jwt_issuer", "", "`iss`"),
        ("jwt_audience", ["threadkeep"], "`aud`"),
        ("account", 123456789012, "12 digits, in quotes"),
        ("account", "1234", "12 digits"),
        ("network", "nat", '"vpc" (Valkey and the functions'),
        ("allowed_origins", ["https://chat.example.com/"], "without a path"),
        ("allowed_origins", ["https://a.example https://b.example"], "whole origins"),
        ("allowed_origins", ["*"], "whole origins"),
        ("query_token", True, "on the local target only"),
        ("query_token", "yes", "true or false"),
        ("lambda_concurrency", 50, "200 or more"),
        ("lambda_concurrency", True, "200 or more"),
        ("manage_gateway_log_role", 1, "true or false"),
        ("pitr_days", 0, "from 1 to 35"),
        ("pitr_days", 36, "from 1 to 35"),
        ("pitr_days", 3.5, "whole days"),
        ("archive_idle_days", 0, "from 1 to 3650"),
        ("archive_idle_days", 0.5, "on the local target only"),
        ("archive_idle_days", 3_651, "from 1 to 3650"),
        ("archive_idle_days", "30", "from 1 to 3650"),
        ("archive_settle_minutes", 0, "from 20 to 10080"),
        ("archive_settle_minutes", 19.9, "on the local target only"),
        ("retention_days", {"acme": 0}, "whole days, at most 36500"),
        ("retention_days", {"acme": 36_501}, "whole days, at most 36500"),
        ("retention_days", {"": 7}, "a table of tenant"),
        ("retention_days", 7, "a table of tenant"),
        ("retention_days", {f"tenant-{number:05}": 7 for number in range(120)}, "2,048 letters"),
        ("retention_days", {"\u754c" * 250: 7}, "2,048 letters"),
        ("service_accounts", {"acme": "importer"}, "a table of tenant to a list of its users"),
        ("service_accounts", {"acme": [""]}, "a table of tenant to a list of its users"),
        ("service_accounts", {"acme": [f"worker-{number:05}" for number in range(70)]}, "1,024 letters"),
        ("erasure_second_pass_minutes", 19, "on the local target only"),
        ("erasure_second_pass_minutes", 0, "from 20 to 180"),
        ("erasure_second_pass_minutes", 181, "from 20 to 180"),
        ("limits", {"user_per_s": 0}, "from 0.01 to 100000"),
        ("limits", {"user_per_s": float("inf")}, "from 0.01 to 100000"),
        ("limits", {"tenant_burst": 0}, "from 1 to 1000000"),
        ("limits", {"streams_per_user": 0}, "from 1 to 10000"),
        ("limits", {"streams": 4}, "streams_per_user"),
        ("availability_zones", {"eu-central-1": ["eu-central-1a"]}, "two or three different"),
        ("availability_zones", {"eu-central-1": ["a", "b", "c", "d"]}, "two or three different"),
        ("availability_zones", {"eu-central-1": ["eu-central-1a", "eu-central-1a"]}, "two or three different"),
        ("availability_zones", {"sa-east-1": ["sa-east-1a", "sa-east-1b"]}, "a table of region"),
        ("local_endpoint", "http://127.0.0.1:4566", "only there"),
        ("hot_endpoint", "valkey.example.com", "HOST:PORT"),
        ("hot_endpoint", "valkey.example.com:70000", "HOST:PORT"),
        ("hot_endpoint", "valkey.example.com:6379", "with several regions one for each"),
        ("hot_endpoint", {"eu-central-1": "a:1"}, "with several regions one for each"),
        ("hot_endpoint", {"eu-central-1": "a:1", "us-east-1": "a:1"}, "with several regions one for each"),
        ("hot_endpoint", {"eu-central-1": "a:1", "us-east-1": "b:70000"}, "HOST:PORT"),
        ("hot_endpoint", {"eu-central-1": "a:1", "us-east-1": "b:2", "sa-east-1": "c:3"}, "HOST:PORT"),
    ],
)
def test_a_wrong_setting_is_named_with_what_it_may_be(name: str, value: object, may_be: str) -> None:
    message = refusal(AWS | {name: value})
    assert message.startswith(f"setting `{name}` is {value!r}; it may be ")
    assert may_be in message


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("eu-centrl-1", "eu-central-1"), ("us-esat-1", "us-east-1"), ("ap-southeast-9", "ap-southeast-")],
)
def test_a_region_that_aws_does_not_have_is_refused_with_the_nearest_name(typed: str, meant: str) -> None:
    message = refusal(AWS | {"regions": ["us-west-2", typed]})
    assert message.startswith(f"setting `regions` names {typed!r}")
    assert f"did you mean `{meant}" in message


def test_days_and_minutes_may_be_fractions_and_on_the_local_target_short_ones() -> None:
    aws = Settings.from_values(AWS | {"archive_idle_days": 1.5, "archive_settle_minutes": 20.5})
    assert (aws.archive_idle_ms, aws.archive_settle_ms) == (129_600_000, 1_230_000)
    local = Settings.from_values(LOCAL | {"archive_idle_days": 0.0001, "archive_settle_minutes": 0.05})
    assert (local.archive_idle_ms, local.archive_settle_ms) == (8_640, 3_000)


def test_limits_are_each_optional_and_functions_go_by_them() -> None:
    assert Settings.from_values(AWS).limits.rates == Rates()
    values = {"limits": {"user_per_s": 0.5, "tenant_burst": 7, "streams_per_user": 3}}
    usual = Rates()
    assert Settings.from_values(AWS | values).limits.rates == Rates(
        user=Rate(0.5, usual.user.burst), tenant=Rate(usual.tenant.per_s, 7), streams_max=3
    )


def test_service_accounts_are_told_as_pairs_that_no_name_can_blur() -> None:
    assert Settings.from_values(AWS).service_account_names == ()
    values = {"service_accounts": {"acme": ["importer", "a b/c"], "um/brella": ["x"]}}
    named = Settings.from_values(AWS | values).service_account_names
    assert named == ("acme/importer", "acme/a%20b%2Fc", "um%2Fbrella/x")
    config = Config(stage="prod", region="eu-central-1", service_accounts=named)
    assert Config.from_environment(config.to_environment()).service_account_names == (
        ("acme", "importer"),
        ("acme", "a b/c"),
        ("um/brella", "x"),
    )


def test_functions_are_told_the_terms_and_by_default_nothing_expires() -> None:
    assert Settings.from_values(AWS).terms == Terms(
        regions=("eu-central-1", "us-east-1"), pitr_days=35, second_pass_ms=1_800_000, retention_days={}
    )
    retention = {"*": 365, "acme": 30}
    values = {"retention_days": retention, "erasure_second_pass_minutes": 20.5, "pitr_days": 7}
    assert Settings.from_values(AWS | values).terms == Terms(
        regions=("eu-central-1", "us-east-1"), pitr_days=7, second_pass_ms=1_230_000, retention_days=retention
    )
    assert Settings.from_values(LOCAL | {"erasure_second_pass_minutes": 0.1}).terms.second_pass_ms == 6_000


OPENAI = {"kind": "openai", "name": "example-1", "base_url": "https://llm.example.com/v1"}


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("openai", "Expected `object | null`, got `str`"),
        ({"kind": "oracle"}, "Invalid enum value 'oracle' - at `$.kind`"),
        ({"kind": "bedrock"}, "a model of kind bedrock needs a name"),
        ({"kind": "bedrock", "name": "anthropic.*"}, "at `$.name`"),
        ({"kind": "bedrock", "name": "arn:aws:bedrock:eu-central-1::foundation-model/x"}, "by its id, not by an ARN"),
        ({"kind": "bedrock", "name": "a.b", "api_key_secret": "llm-key"}, "neither base_url nor api_key_secret"),
        ({"kind": "openai", "name": "example-1"}, "needs a base_url"),
        (OPENAI | {"base_url": "llm.example.com"}, "at `$.base_url`"),
        (OPENAI | {"base_url": "http://llm.example.com/v1"}, "https on aws"),
        (OPENAI | {"api_key_secret": "*"}, "at `$.api_key_secret`"),
        (OPENAI | {"api_key_secret": "arn:aws:secretsmanager:…"}, "at `$.api_key_secret`"),
        (OPENAI | {"context_messages_max": 0}, "at `$.context_messages_max`"),
    ],
)
def test_a_wrong_model_is_refused_with_the_reason(model: object, reason: str) -> None:
    message = refusal(AWS | {"model": model})
    assert message.startswith("setting `model` is refused (")
    assert '; it may be a table that says which model answers: {kind = "openai", name, ' in message
    assert reason in message
    assert "\n" not in message


def test_a_key_in_place_of_its_secret_is_refused_and_not_repeated() -> None:
    message = refusal(AWS | {"model": OPENAI | {"api_key": "sk-0123456789"}})
    assert "Object contains unknown field `api_key`" in message
    assert "sk-0123456789" not in message


def test_a_model_of_each_kind_is_taken() -> None:
    for model in (OPENAI, OPENAI | {"api_key_secret": "llm/key"}, {"kind": "bedrock", "name": "a.b"}, {}):
        settings = Settings.from_values(AWS | {"model": model})
        assert settings.model is not None
        assert settings.model.kind == model.get("kind", "recorded")
    assert Settings.from_values(LOCAL | {"model": OPENAI | {"base_url": "http://127.0.0.1:8000/v1"}}).model


@pytest.mark.parametrize("name", ["local_endpoint", "hot_endpoint"])
def test_the_local_target_needs_its_endpoints(name: str) -> None:
    message = refusal({key: value for key, value in LOCAL.items() if key != name})
    assert message.startswith(f"setting `{name}` is missing; it is ")


def test_nothing_leads_to_valkey_on_aws_unless_somebody_says_so() -> None:
    assert Settings.from_values(AWS).network == "vpc"
    assert Settings.from_values(AWS | {"network": "public"}).network == "public"
    assert Settings.from_values(LOCAL).network == "public"
    assert Settings.from_values(LOCAL | {"network": "vpc"}).network == "vpc"


def test_the_local_target_has_one_account() -> None:
    assert "setting `account` is '123456789012'" in refusal(LOCAL | {"account": "123456789012"})
    assert Settings.from_values(LOCAL | {"account": "000000000000"}).account == "000000000000"


def test_an_unknown_setting_is_named_with_the_nearest_known_one() -> None:
    assert refusal(AWS | {"region": ["eu-central-1"]}) == "setting `region` is unknown; did you mean `regions`?"
    assert refusal(AWS | {"colour": "blue"}).startswith("setting `colour` is unknown; there are: target, stage, ")


def test_a_file_that_is_no_toml_is_named(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text('target = "aws\n', encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        Settings.from_file(path)
    assert str(caught.value).startswith(f"{path}: cannot be read as settings (Illegal character")
    assert "\n" not in str(caught.value)


def test_a_value_with_line_breaks_still_makes_one_line() -> None:
    assert "\n" not in refusal(AWS | {"stage": "a\nb"})
    assert "\n" not in refusal(AWS | {"hot_endpoint": "a\nb"})


def test_the_example_is_valid() -> None:
    settings = Settings.from_file(ROOT / "settings.example.toml")
    assert settings.target == "aws"


def test_the_file_comes_from_the_context_then_the_environment_then_the_root(tmp_path: Path) -> None:
    environment = {"THREADKEEP_SETTINGS": "b.toml"}
    assert find("a.toml", environment, tmp_path) == Path("a.toml")
    assert find(None, environment, tmp_path) == Path("b.toml")
    assert find(None, {}, tmp_path) == tmp_path / "settings.toml"


def test_the_app_stops_with_that_line_alone(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text('target = "aws"\nstage = "prod"\n', encoding="utf-8")
    result = subprocess.run(
        [sys.executable, "app.py"],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "THREADKEEP_SETTINGS": str(path), "CDK_OUTDIR": str(tmp_path / "out")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr.startswith(f"{path}: setting `regions` is missing; it is a list of AWS regions")
    assert result.stderr.count("\n") == 1


def refusal(values: dict[str, Any]) -> str:
    with pytest.raises(SettingsError) as caught:
        Settings.from_values(values)
    return str(caught.value)
