"""The handshake: which tokens and origins are let in, and where a token may stand."""

from __future__ import annotations

from typing import Any

import pytest

from threadkeep.config import Config
from threadkeep.gateway.authorization import authorize
from threadkeep.ports import TokenRefused

CLAIMS = {"tenant": "acme", "sub": "ann", "scope": "chat", "exp": 2_000_000_000}
CONFIG = Config(stage="test", region="eu-central-1", allowed_origins=("https://app.example",))


class Tokens:
    """Vouches for one token."""

    def __init__(self, **claims: Any) -> None:
        self._claims = CLAIMS | claims

    def claims(self, token: str) -> dict[str, Any]:
        if token != "good":
            raise TokenRefused("bad signature")
        return {name: value for name, value in self._claims.items() if value is not None}


def event(*, query: dict[str, str] | None = None, **headers: str) -> dict[str, Any]:
    return {"headers": {k.replace("_", "-"): v for k, v in headers.items()}, "queryStringParameters": query}


@pytest.mark.parametrize(
    "handshake",
    [
        event(Authorization="Bearer good"),
        event(authorization="bearer good"),
        event(Sec_WebSocket_Protocol="threadkeep.v1, bearer.good"),
        event(Sec_WebSocket_Protocol="threadkeep.v1,bearer.good"),
        event(Authorization="Bearer good", Origin="https://app.example"),
    ],
)
def test_a_good_token_is_vouched_for_in_strings(handshake: dict[str, Any]) -> None:
    vouched = {"tenant": "acme", "sub": "ann", "scope": "chat", "exp": "2000000000"}
    assert authorize(handshake, CONFIG, Tokens()) == vouched


@pytest.mark.parametrize(
    "handshake",
    [
        event(),
        event(Authorization="Bearer bad"),
        event(Authorization="Basic good"),
        event(Authorization="Bearer "),
        event(Sec_WebSocket_Protocol="threadkeep.v1"),
        event(query={"token": "good"}),
        event(Authorization="Bearer good", Origin="https://evil.app.example"),
        event(Authorization="Bearer good", Origin="https://app.example.evil"),
        event(Authorization="Bearer good", Origin="null"),
        event(Authorization="Bearer " + "x" * 4_097),
        {},
    ],
)
def test_everything_else_is_refused(handshake: dict[str, Any]) -> None:
    with pytest.raises(TokenRefused):
        authorize(handshake, CONFIG, Tokens())


@pytest.mark.parametrize("name", ["tenant", "sub", "scope", "exp"])
@pytest.mark.parametrize("value", [None, [], {}, ["acme"], True, 1.5])
def test_a_claim_that_is_missing_or_odd_is_refused(name: str, value: object) -> None:
    with pytest.raises(TokenRefused):
        authorize(event(Authorization="Bearer good"), CONFIG, Tokens(**{name: value}))


@pytest.mark.parametrize("name", ["tenant", "sub"])
@pytest.mark.parametrize("value", ["", "\ud800"])
def test_an_empty_name_or_one_that_no_key_can_hold_is_nobody(name: str, value: str) -> None:
    with pytest.raises(TokenRefused):
        authorize(event(Authorization="Bearer good"), CONFIG, Tokens(**{name: value}))


def test_the_query_holds_a_token_only_where_the_setting_says_so() -> None:
    config = Config(stage="test", region="eu-central-1", query_token=True)
    assert authorize(event(query={"token": "good"}), config, Tokens())["sub"] == "ann"


def test_a_refusal_says_nothing_of_the_token() -> None:
    with pytest.raises(TokenRefused) as caught:
        authorize(event(Authorization="Bearer canary-token"), CONFIG, Tokens())
    assert "canary" not in str(caught.value)
