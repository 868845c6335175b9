"""Which way each client of a function goes, seen by the names that it looks up, and for addresses of which family."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from tests.unit.threadkeep.test_container import FULL, KEY
from threadkeep import container
from threadkeep.domain.errors import TierUnavailable
from threadkeep.ports import AnswerRequest
from threadkeep.stores.warm_dynamodb import WarmDynamoDB
from threadkeep.usecases.services import Services

HOME, AFAR = "eu-central-1", "us-east-1"
EVERYTHING = msgspec.structs.replace(
    FULL,
    buckets={HOME: "cold-home", AFAR: "cold-afar"},
    erase_queue=f"https://sqs.{HOME}.amazonaws.com/123456789012/erase",
    responder_function="responder",
    regions=(HOME, AFAR),
)
QUESTION = AnswerRequest(tenant="acme", user="ann", conversation="c", parent="p", reply="r")
EITHER, SIX = socket.AF_UNSPEC, socket.AF_INET6

Names = set[tuple[str, int]]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[Names]:
    """What is looked up, and never found."""
    asked: Names = set()

    def look_up(host: str | bytes, _port: object, family: int = 0, *_: Any, **__: Any) -> list[Any]:
        asked.add((host.decode() if isinstance(host, bytes) else host, family))
        raise socket.gaierror(socket.EAI_NONAME, "nobody")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    container.services.cache_clear()
    yield asked
    container.services.cache_clear()


def read_a_body(services: Services) -> None:
    """From its own region's bucket, which does not answer, and then from the other's."""
    assert isinstance(services.warm, WarmDynamoDB)
    services.warm._bodies.get("bodies/acme/c/m/0")


def ask_another_region(services: Services) -> None:
    assert services.others is not None
    services.others.tables.read_message(AFAR, KEY, "0193e4a0-0000-7000-8000-000000000002")


def start(services: Services) -> None:
    assert services.responder is not None
    services.responder.start(QUESTION)


USES: dict[str, tuple[Callable[[Services], object], Names, Names]] = {
    "table": (
        lambda services: services.warm.read_head(KEY),
        {(f"dynamodb.{HOME}.amazonaws.com", EITHER)},
        {(f"dynamodb.{HOME}.amazonaws.com", EITHER)},
    ),
    "another region's table": (
        ask_another_region,
        {(f"dynamodb.{AFAR}.amazonaws.com", EITHER)},
        {(f"dynamodb.{AFAR}.api.aws", SIX)},
    ),
    "buckets": (
        read_a_body,
        {(f"cold-home.s3.{HOME}.amazonaws.com", EITHER), (f"cold-afar.s3.{AFAR}.amazonaws.com", EITHER)},
        {(f"cold-home.s3.{HOME}.amazonaws.com", EITHER), (f"cold-afar.s3.dualstack.{AFAR}.amazonaws.com", SIX)},
    ),
    "connections": (
        lambda services: services.push.send(["c="], b"{}"),
        {(f"example.execute-api.{HOME}.amazonaws.com", EITHER)},
        {(f"example.execute-api.{HOME}.amazonaws.com", SIX)},
    ),
    "queue": (
        lambda services: services.erase_queue.send(QUESTION),
        {(f"sqs.{HOME}.amazonaws.com", EITHER)},
        {(f"sqs.{HOME}.api.aws", SIX)},
    ),
    "responder": (
        start,
        {(f"lambda.{HOME}.amazonaws.com", EITHER)},
        {(f"lambda.{HOME}.api.aws", SIX)},
    ),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("ipv6_out", [False, True])
def test_only_what_no_gateway_endpoint_leads_to_is_reached_over_ipv6(
    names: Names, monkeypatch: pytest.MonkeyPatch, use: str, *, ipv6_out: bool
) -> None:
    config = msgspec.structs.replace(EVERYTHING, ipv6_out=ipv6_out)
    monkeypatch.setattr(container, "config", lambda: config)
    act, outside, inside = USES[use]
    with suppress(TierUnavailable):
        act(container.services())
    assert names == (inside if ipv6_out else outside)
