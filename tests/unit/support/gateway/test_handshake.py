"""Who is let in: the authorizer, its policy and its context, `$connect`, the subprotocol."""

from __future__ import annotations

from typing import Any

import pytest
from websockets.exceptions import InvalidStatus
from websockets.typing import Subprotocol

from tests.support.gateway import FaultGateway, Limits
from tests.unit.support.gateway.conftest import Running, dial
from tests.unit.support.gateway.functions import Answer, Lambdas, allow, message, policy


async def refusal(gateway: FaultGateway, **settings: Any) -> int:
    with pytest.raises(InvalidStatus) as caught:
        async with dial(gateway, **settings):
            pass
    return caught.value.response.status_code


def noting(seen: list[dict[str, Any]]) -> Answer:
    """Let all in, and keep what was asked."""

    def authorize(event: dict[str, Any]) -> dict[str, Any]:
        seen.append(event)
        return allow(event)

    return authorize


def fail(text: str) -> Any:
    def failing(_: dict[str, Any]) -> None:
        raise RuntimeError(text)

    return failing


async def test_a_wrong_token_is_refused_and_nothing_else_runs(gateway: FaultGateway, lambdas: Lambdas) -> None:
    def authorize(event: dict[str, Any]) -> dict[str, Any]:
        good = event["headers"].get("Authorization") == "Bearer good"
        return policy("Allow" if good else "Deny", event["methodArn"])

    lambdas.on_authorize = authorize
    assert await refusal(gateway, additional_headers={"Authorization": "Bearer bad"}) == 403
    assert await refusal(gateway) == 403
    assert (lambdas.events, gateway.connections) == ([], ())
    async with dial(gateway, additional_headers={"Authorization": "Bearer good"}):
        assert len(gateway.connections) == 1


@pytest.mark.parametrize(
    ("effect", "resources", "status"),
    [
        ("Allow", ["arn:aws:execute-api:us-east-1:000000000000:faultgate1/test/$connect"], 101),
        ("Allow", ["arn:aws:execute-api:*:*:faultgate1/*"], 101),
        ("Allow", ["arn:aws:execute-api:us-east-?:000000000000:faultgate1/test/*"], 101),
        ("Allow", ["arn:aws:execute-api:us-east-1:000000000000:faultgate1/test/POST/*"], 403),
        ("Allow", ["arn:aws:execute-api:us-east-1:000000000000:faultgate1/test/$CONNECT"], 403),
        ("Allow", [], 403),
        ("Deny", ["*"], 403),
    ],
)
async def test_the_policy_is_judged_against_connect(
    gateway: FaultGateway, lambdas: Lambdas, effect: str, resources: list[str], status: int
) -> None:
    lambdas.on_authorize = lambda _: policy(effect, *resources)
    if status == 101:
        async with dial(gateway) as socket:
            assert socket.response is not None
            assert socket.response.status_code == status
    else:
        assert await refusal(gateway) == status


async def test_a_deny_comes_before_an_allow(gateway: FaultGateway, lambdas: Lambdas) -> None:
    def authorize(event: dict[str, Any]) -> dict[str, Any]:
        both = policy("Allow", "*")
        both["policyDocument"]["Statement"] += policy("Deny", event["methodArn"])["policyDocument"]["Statement"]
        return both

    lambdas.on_authorize = authorize
    assert await refusal(gateway) == 403


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (fail("Unauthorized"), 401),
        (fail("anything else"), 500),
        (lambda _: None, 500),
        (lambda _: {"policyDocument": {}}, 500),
        (lambda event: allow(event, tenant=["acme"]), 500),
        (lambda event: allow(event, tenant={"id": "acme"}), 500),
        (lambda event: allow(event, tenant="a" * 8_192), 500),
    ],
)
async def test_an_authorizer_that_fails_lets_nobody_in(
    gateway: FaultGateway, lambdas: Lambdas, answer: Any, status: int
) -> None:
    lambdas.on_authorize = answer
    assert await refusal(gateway) == status
    assert lambdas.events == []


async def test_an_identity_source_that_is_absent_is_refused_unseen(running: Running, lambdas: Lambdas) -> None:
    asked: list[Any] = []
    lambdas.on_authorize = noting(asked)
    async with running(identity_sources=["Authorization"]) as gateway:
        assert await refusal(gateway) == 401
        assert asked == []
        async with dial(gateway, additional_headers={"authorization": "x"}):
            assert len(asked) == 1


async def test_the_context_reaches_every_later_route_as_strings(gateway: FaultGateway, lambdas: Lambdas) -> None:
    lambdas.on_authorize = lambda event: allow(event, tenant="acme", exp=2_000_000_000, trusted=True, share=0.5)
    async with dial(gateway) as socket:
        for action in ("say", "ping", "unknown"):
            await socket.send(message(action))
            await socket.recv()
    await gateway.settle()
    assert [event["requestContext"]["routeKey"] for event in lambdas.events] == [
        "$connect",
        "say",
        "ping",
        "$default",
        "$disconnect",
    ]
    for event in lambdas.events:
        vouched = event["requestContext"]["authorizer"]
        del vouched["integrationLatency"]
        expected = {"tenant": "acme", "exp": "2000000000", "trusted": "true", "share": "0.5", "principalId": "ann"}
        assert vouched == expected


async def test_the_authorizer_sees_headers_query_and_arn(gateway: FaultGateway, lambdas: Lambdas) -> None:
    seen: list[dict[str, Any]] = []
    lambdas.on_authorize = noting(seen)
    headers = [("X-One", "1"), ("X-One", "2")]
    async with dial(gateway, query="?token=a%20b&token=c", additional_headers=headers):
        pass
    [event] = seen
    assert event["type"] == "REQUEST"
    assert event["methodArn"].endswith("/test/$connect")
    assert event["headers"]["X-One"] == "2"
    assert event["multiValueHeaders"]["X-One"] == ["1", "2"]
    assert event["queryStringParameters"] == {"token": "c"}
    assert event["multiValueQueryStringParameters"] == {"token": ["a b", "c"]}
    assert event["requestContext"]["eventType"] == "CONNECT"


@pytest.mark.parametrize("status", [400, 403, 500])
async def test_connect_may_refuse_with_a_status_of_its_own(
    gateway: FaultGateway, lambdas: Lambdas, status: int
) -> None:
    lambdas.on_connect = lambda _: {"statusCode": status}
    assert await refusal(gateway) == status
    assert gateway.connections == ()


@pytest.mark.parametrize("answer", [fail("broken"), lambda _: None, lambda _: {}, lambda _: {"statusCode": "x"}])
async def test_a_connect_that_fails_is_a_502(gateway: FaultGateway, lambdas: Lambdas, answer: Any) -> None:
    lambdas.on_connect = answer
    assert await refusal(gateway) == 502


async def test_the_subprotocol_is_echoed_exactly_when_connect_says_so(gateway: FaultGateway, lambdas: Lambdas) -> None:
    offered = [Subprotocol("threadkeep.v1"), Subprotocol("bearer.token")]
    async with dial(gateway, subprotocols=offered) as socket:
        assert socket.subprotocol is None
    headers = {"Sec-WebSocket-Protocol": "threadkeep.v1", "X-Other": "never passed on"}
    lambdas.on_connect = lambda _: {"statusCode": 200, "headers": headers}
    async with dial(gateway, subprotocols=offered) as socket:
        assert socket.subprotocol == "threadkeep.v1"
        assert socket.response is not None
        assert "X-Other" not in socket.response.headers
    assert lambdas.events[0]["headers"]["Sec-WebSocket-Protocol"] == "threadkeep.v1, bearer.token"


async def test_a_url_over_the_limit_is_refused(gateway: FaultGateway) -> None:
    assert await refusal(gateway, query="?token=" + "x" * 4_096) == 414


async def test_handshakes_count_against_the_rate(running: Running) -> None:
    async with running(limits=Limits(requests_per_s=1, requests_burst=1)) as gateway:
        async with dial(gateway):
            assert await refusal(gateway) == 429
        gateway.clock.advance(1.0)
        async with dial(gateway):
            pass
