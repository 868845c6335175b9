"""The authorizer as the gateway calls it: an allowance that vouches, or a denial that says nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from handlers import authorizer
from tests.support.house import FAR_S, LambdaContext
from threadkeep import container
from threadkeep.config import Config
from threadkeep.ports import TokenRefused

ARN = "arn:aws:execute-api:eu-central-1:000000000000:example/test/$connect"


class Verifier:
    """Vouches for one token."""

    def claims(self, token: str) -> dict[str, Any]:
        if token != "good":
            raise TokenRefused("bad signature")
        return {"tenant": "acme", "sub": "ann", "scope": "chat produce", "exp": FAR_S}


@pytest.fixture(autouse=True)
def _configured() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POWERTOOLS_SERVICE_NAME", "threadkeep-test")
        patch.setenv("POWERTOOLS_METRICS_NAMESPACE", "Threadkeep")
        patch.setattr(container, "config", lambda: Config(stage="test", region="eu-central-1"))
        patch.setattr(authorizer, "_verifier", Verifier)
        yield


def authorized(**headers: str) -> dict[str, Any]:
    """What the gateway is answered."""
    event = {
        "type": "REQUEST",
        "methodArn": ARN,
        "headers": headers,
        "requestContext": {"routeKey": "$connect", "eventType": "CONNECT", "connectionId": "c="},
    }
    return authorizer.handler(event, LambdaContext())


def effects(policy: dict[str, Any]) -> set[tuple[str, str]]:
    """Every statement's effect, with its action."""
    return {(statement["Effect"], statement["Action"]) for statement in policy["policyDocument"]["Statement"]}


def test_who_shows_a_token_that_holds_is_let_in_and_vouched_for_in_strings() -> None:
    policy = authorized(Authorization="Bearer good")
    assert effects(policy) == {("Allow", "execute-api:Invoke")}
    assert policy["principalId"] == "ann"
    assert policy["context"] == {"tenant": "acme", "sub": "ann", "scope": "chat produce", "exp": str(FAR_S)}


@pytest.mark.parametrize(
    "headers",
    [{}, {"Authorization": "Bearer bad"}, {"Authorization": "Bearer good", "Origin": "https://evil.example"}],
)
def test_whoever_does_not_is_denied_and_told_nothing(headers: dict[str, str]) -> None:
    policy = authorized(**headers)
    assert effects(policy) == {("Deny", "execute-api:Invoke")}
    assert not policy.get("context")


def test_of_a_refused_handshake_the_reason_is_logged_and_nothing_else(logged: Callable[[], str]) -> None:
    authorized(Authorization="Bearer good")
    authorized(Authorization="Bearer canary-token", Cookie="canary-cookie")
    authorized(Authorization="Bearer good", Origin="https://canary.example")
    said = logged()
    assert "bad signature" in said
    assert "origin not allowed" in said
    assert said.count('"refused"') == 2
    assert "canary" not in said
