"""A function's environment: what the stacks write is what the function reads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadkeep.config import Config, ConfigError, HotConfig, LimitsConfig, ModelConfig
from threadkeep.domain.erasure import Terms

LEAST = {"THREADKEEP_STAGE": "test", "THREADKEEP_REGION": "eu-central-1"}
FULL = Config(
    stage="test",
    region="eu-central-1",
    regions=("eu-central-1", "us-east-1", "us-east-2"),
    evacuated=("us-east-2",),
    service_accounts=("acme/importer", "um%2Fbrella/x"),
    endpoint="wss://eu.chat.example/test",
    table="threadkeep-test",
    bucket="threadkeep-test-cold",
    buckets={"eu-central-1": "threadkeep-test-cold", "us-east-1": "threadkeep-test-cold-us"},
    connections_url="https://example.execute-api.eu-central-1.amazonaws.com/test",
    hot=HotConfig(host="valkey.example", port=6_379, auth="iam", user="stream", cache="threadkeep"),
    limits=LimitsConfig(user_per_s=0.5, user_burst=3, tenant_per_s=20.0, tenant_burst=7, streams_per_user=2),
    terms=Terms(
        regions=("eu-central-1", "us-east-1"),
        pitr_days=21,
        second_pass_ms=1_800_000,
        retention_days={"*": 365, "a b=c/\u754c": 7},
    ),
    erase_queue="https://sqs.example/erase",
    tell_queue="https://sqs.example/tell",
    export_queue="https://sqs.example/export",
    archive_queue="https://sqs.example/archive",
    archive_idle_ms=8_640,
    archive_settle_ms=3_000,
    jwks_url="https://issuer.example/jwks.json",
    jwt_issuer="https://issuer.example/",
    jwt_audience="threadkeep",
    allowed_origins=("https://app.example", "http://localhost:3000"),
    query_token=True,
    ipv6_out=True,
)

names = st.from_regex(r"[!-~]{1,20}", fullmatch=True)
hots = st.builds(
    HotConfig, host=names, port=st.integers(1, 65_535), auth=st.sampled_from(["none", "iam"]), user=names, cache=names
)
configs = st.builds(
    Config,
    stage=names,
    region=names,
    regions=st.lists(names, max_size=3).map(tuple),
    evacuated=st.lists(names, max_size=2).map(tuple),
    endpoint=st.just("") | names,
    table=st.just("") | names,
    bucket=st.just("") | names,
    buckets=st.dictionaries(st.from_regex(r"[a-z0-9-]{1,20}", fullmatch=True), names, max_size=3),
    hot=st.none() | hots,
    limits=st.none()
    | st.builds(LimitsConfig, user_per_s=st.floats(0.01, 100_000), streams_per_user=st.integers(1, 10_000)),
    model=st.none() | st.builds(ModelConfig, kind=st.just("bedrock"), name=names, system=names),
    terms=st.none()
    | st.builds(
        Terms,
        regions=st.lists(names, min_size=1, max_size=3).map(tuple),
        retention_days=st.dictionaries(
            st.text(st.characters(codec="utf-8"), min_size=1, max_size=9), st.integers(1, 9)
        ),
    ),
    allowed_origins=st.lists(names, max_size=3).map(tuple),
    query_token=st.booleans(),
    ipv6_out=st.booleans(),
)


@given(configs)
def test_what_is_written_is_read(config: Config) -> None:
    assert Config.from_environment(config.to_environment()) == config


def test_the_environment_has_a_variable_a_setting() -> None:
    assert FULL.to_environment() == LEAST | {
        "THREADKEEP_REGIONS": "eu-central-1 us-east-1 us-east-2",
        "THREADKEEP_EVACUATED": "us-east-2",
        "THREADKEEP_SERVICE_ACCOUNTS": "acme/importer um%2Fbrella/x",
        "THREADKEEP_ENDPOINT": "wss://eu.chat.example/test",
        "THREADKEEP_TABLE": "threadkeep-test",
        "THREADKEEP_BUCKET": "threadkeep-test-cold",
        "THREADKEEP_BUCKETS": "eu-central-1=threadkeep-test-cold us-east-1=threadkeep-test-cold-us",
        "THREADKEEP_CONNECTIONS_URL": "https://example.execute-api.eu-central-1.amazonaws.com/test",
        "THREADKEEP_HOT_HOST": "valkey.example",
        "THREADKEEP_HOT_PORT": "6379",
        "THREADKEEP_HOT_AUTH": "iam",
        "THREADKEEP_HOT_USER": "stream",
        "THREADKEEP_HOT_CACHE": "threadkeep",
        "THREADKEEP_LIMITS_USER_PER_S": "0.5",
        "THREADKEEP_LIMITS_USER_BURST": "3",
        "THREADKEEP_LIMITS_TENANT_PER_S": "20.0",
        "THREADKEEP_LIMITS_TENANT_BURST": "7",
        "THREADKEEP_LIMITS_STREAMS_PER_USER": "2",
        "THREADKEEP_TERMS_REGIONS": "eu-central-1 us-east-1",
        "THREADKEEP_TERMS_PITR_DAYS": "21",
        "THREADKEEP_TERMS_SECOND_PASS_MS": "1800000",
        "THREADKEEP_TERMS_RETENTION_DAYS": "*=365 a%20b%3Dc%2F%E7%95%8C=7",
        "THREADKEEP_ERASE_QUEUE": "https://sqs.example/erase",
        "THREADKEEP_TELL_QUEUE": "https://sqs.example/tell",
        "THREADKEEP_EXPORT_QUEUE": "https://sqs.example/export",
        "THREADKEEP_ARCHIVE_QUEUE": "https://sqs.example/archive",
        "THREADKEEP_ARCHIVE_IDLE_MS": "8640",
        "THREADKEEP_ARCHIVE_SETTLE_MS": "3000",
        "THREADKEEP_JWKS_URL": "https://issuer.example/jwks.json",
        "THREADKEEP_JWT_ISSUER": "https://issuer.example/",
        "THREADKEEP_JWT_AUDIENCE": "threadkeep",
        "THREADKEEP_ALLOWED_ORIGINS": "https://app.example http://localhost:3000",
        "THREADKEEP_QUERY_TOKEN": "true",
        "THREADKEEP_IPV6_OUT": "true",
    }


def test_what_is_not_set_allows_nothing_and_names_nothing() -> None:
    config = Config.from_environment(LEAST | {"PATH": "/bin", "AWS_REGION": "elsewhere"})
    assert config == Config(stage="test", region="eu-central-1")
    assert (config.allowed_origins, config.query_token, config.hot) == ((), False, None)


def test_others_are_all_regions_but_ones_own_and_those_that_are_evacuated() -> None:
    assert FULL.others == ("us-east-1",)
    assert Config(stage="test", region="us-east-2", regions=FULL.regions, evacuated=FULL.evacuated).others == (
        "eu-central-1",
        "us-east-1",
    )
    assert Config(stage="test", region="eu-central-1").others == ()


@pytest.mark.parametrize(
    ("environment", "named"),
    [
        ({}, "stage"),
        ({"THREADKEEP_STAGE": "test"}, "region"),
        (LEAST | {"THREADKEEP_HOT_HOST": "valkey.example"}, "port"),
        (LEAST | {"THREADKEEP_HOT_PORT": "6379"}, "host"),
        (LEAST | {"THREADKEEP_HOT_HOST": "h", "THREADKEEP_HOT_PORT": "many"}, "hot.port"),
        (LEAST | {"THREADKEEP_HOT_HOST": "h", "THREADKEEP_HOT_PORT": "1", "THREADKEEP_HOT_AUTH": "all"}, "hot.auth"),
        (LEAST | {"THREADKEEP_QUERY_TOKEN": "perhaps"}, "query_token"),
        (LEAST | {"THREADKEEP_MODEL_KIND": "openai", "THREADKEEP_MODEL_NAME": "m"}, "base_url"),
    ],
)
def test_what_is_missing_or_malformed_is_named(environment: dict[str, str], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        Config.from_environment(environment)
