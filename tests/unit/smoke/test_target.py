"""Which deployment is meant, from its URL and the environment."""

from __future__ import annotations

import pytest

from local.keys import SigningKey
from smoke.target import Target, TargetError

KEY = SigningKey.generate()
TOKENS = {
    "TOKEN": KEY.mint_token(sub="ada", tenant="acme", scope=["chat"]),
    "OTHER_TOKEN": KEY.mint_token(sub="bob", tenant="other", scope=["chat"]),
    "PRODUCE_TOKEN": KEY.mint_token(sub="worker", tenant="acme", scope=["produce"]),
}
AWS = "wss://a1b2.execute-api.eu-central-1.amazonaws.com/prod"


def read(**environment: str) -> Target:
    return Target.from_environment(TOKENS | environment)


def test_an_api_of_aws_says_region_stage_and_id_itself() -> None:
    found = read(URL=AWS, AWS_REGION="us-east-1")
    assert (found.region, found.stage, found.api_id, found.regions) == (
        "eu-central-1",
        "prod",
        "a1b2",
        ("eu-central-1",),
    )
    assert not found.is_local
    assert found.tenant == "acme"


def test_the_local_cloud_is_known_by_its_url_and_leads_to_no_account() -> None:
    found = read(URL="ws://127.0.0.1:4566/_aws/execute-api/abc/local", AWS_REGION="us-east-1")
    assert found.is_local
    assert (found.endpoint, found.stage, found.api_id) == ("http://127.0.0.1:4566", "local", "abc")


def test_a_domain_of_ones_own_needs_stage_and_regions() -> None:
    found = read(URL="wss://chat.example.com", STAGE="prod", REGIONS="eu-central-1, us-east-1")
    assert (found.region, found.regions, found.api_id) == ("eu-central-1", ("eu-central-1", "us-east-1"), "")
    with pytest.raises(TargetError, match="STAGE"):
        read(URL="wss://chat.example.com")


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"URL": ""}, "URL not given"),
        ({"URL": AWS, "OTHER_TOKEN": ""}, "OTHER_TOKEN not given"),
        ({"URL": "https://example.com"}, "no ws://"),
        ({"URL": AWS, "TOKEN": "not.a-token.at-all"}, "TOKEN is no JWT"),
        ({"URL": AWS, "PRODUCE_TOKEN": TOKENS["OTHER_TOKEN"]}, "same tenant"),
        ({"URL": AWS, "REGIONS": "2"}, "REGIONS"),
    ],
)
def test_what_is_missing_or_wrong_is_named_and_no_token_is(changed: dict[str, str], named: str) -> None:
    with pytest.raises(TargetError, match=named) as refused:
        read(**changed)
    assert not any(token and token in str(refused.value) for token in (TOKENS | changed).values() if "." in token)
