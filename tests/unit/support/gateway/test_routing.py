"""Which function gets a message, what it is given, and what becomes of its answer."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from tests.support.gateway import FaultGateway, Manners
from tests.unit.support.gateway.conftest import Running, arrived, dial, posting
from tests.unit.support.gateway.functions import Lambdas, message


@pytest.mark.parametrize(
    ("body", "route", "function"),
    [
        (message("say"), "say", "send"),
        (message("ping"), "ping", "connection"),
        (message("nothing like it"), "$default", "connection"),
        ('{"action": 5}', "$default", "connection"),
        ('{"action": null}', "$default", "connection"),
        ("{}", "$default", "connection"),
        ("[]", "$default", "connection"),
        ("not json", "$default", "connection"),
        ("", "$default", "connection"),
        ("[" * 10_000, "$default", "connection"),
    ],
)
async def test_messages_go_by_their_action(
    gateway: FaultGateway, lambdas: Lambdas, body: str, route: str, function: str
) -> None:
    lambdas.on_message = lambda _: {"statusCode": 200, "body": "seen"}
    async with dial(gateway) as socket:
        await socket.send(body)
        assert await socket.recv() == "seen"
        [event] = lambdas.of_kind("MESSAGE")
        assert event["requestContext"]["routeKey"] == route
        assert event["function"] == function
        assert event["body"] == body
        assert event["requestContext"]["connectionId"] == gateway.connections[0]


@pytest.mark.parametrize("named", ["$connect", "$disconnect"])
@pytest.mark.parametrize("runs", [True, False])
async def test_an_action_may_name_a_route_of_the_gateways_own(
    running: Running, lambdas: Lambdas, named: str, *, runs: bool
) -> None:
    async with running(manners=Manners(names_reserved_routes=runs)) as gateway, dial(gateway) as socket:
        await socket.send(message(named))
        assert await socket.recv() == message(named)
        [event] = lambdas.of_kind("MESSAGE")
        assert event["requestContext"]["routeKey"] == (named if runs else "$default")
        assert len(gateway.connections) == 1


@pytest.mark.parametrize(
    "answer",
    [
        lambda _: {"statusCode": 200},
        lambda _: {"statusCode": 200, "body": None},
        lambda _: {"statusCode": 200, "body": ""},
    ],
)
async def test_no_body_is_no_frame(gateway: FaultGateway, lambdas: Lambdas, answer: Any) -> None:
    lambdas.on_message = answer
    async with dial(gateway) as socket:
        await socket.send(message())
        await arrived(gateway, socket)
        assert (gateway.counts["messages"], gateway.counts["replies"]) == (1, 0)


async def test_the_status_of_an_answer_changes_nothing(gateway: FaultGateway, lambdas: Lambdas) -> None:
    lambdas.on_message = lambda _: {"statusCode": 500, "body": "all the same"}
    async with dial(gateway) as socket:
        await socket.send(message())
        assert await socket.recv() == "all the same"


def fail(_: dict[str, Any]) -> None:
    raise RuntimeError("a secret of the function's")


@pytest.mark.parametrize(
    "answer",
    [fail, lambda _: None, lambda _: "text", lambda _: {"body": "x"}, lambda _: {"statusCode": 200, "body": 1}],
)
async def test_an_answer_that_is_none_gets_the_gateways_own_frame(
    gateway: FaultGateway, lambdas: Lambdas, answer: Any
) -> None:
    lambdas.on_message = answer
    async with dial(gateway) as socket:
        await socket.send(message(ref="7"))
        frame = json.loads(await socket.recv())
    [event] = lambdas.of_kind("MESSAGE")
    assert frame == {
        "message": "Internal server error",
        "connectionId": event["requestContext"]["connectionId"],
        "requestId": event["requestContext"]["requestId"],
    }


async def test_messages_of_one_connection_run_in_parallel(gateway: FaultGateway, lambdas: Lambdas) -> None:
    both = threading.Barrier(2, timeout=5)

    def meet(event: dict[str, Any]) -> dict[str, Any]:
        both.wait()
        return {"statusCode": 200, "body": event["body"]}

    lambdas.on_message = meet
    async with dial(gateway) as socket:
        await socket.send(message(n=1))
        await socket.send(message(n=2))
        assert {await socket.recv(), await socket.recv()} == {message(n=1), message(n=2)}


async def test_events_may_come_before_the_reply_that_starts_them(gateway: FaultGateway, lambdas: Lambdas) -> None:
    loop = asyncio.get_running_loop()
    async with posting(gateway) as connections, dial(gateway) as socket:

        def push(event: dict[str, Any]) -> dict[str, Any]:
            post = connections.post(event["requestContext"]["connectionId"], "event")
            asyncio.run_coroutine_threadsafe(post, loop).result()
            return {"statusCode": 200, "body": "reply"}

        lambdas.on_message = push
        await socket.send(message())
        assert [await socket.recv(), await socket.recv()] == ["event", "reply"]


async def test_a_client_that_says_goodbye_is_told_of(gateway: FaultGateway, lambdas: Lambdas) -> None:
    async with dial(gateway) as socket:
        [connection] = gateway.connections
        await socket.close(1000, "done")
    await gateway.until(lambda: gateway.counts["disconnects"] == 1)
    [event] = lambdas.of_kind("DISCONNECT")
    assert event["requestContext"]["connectionId"] == connection
    assert event["requestContext"]["disconnectStatusCode"] == 1000
    assert event["requestContext"]["disconnectReason"] == "done"


async def test_a_socket_that_breaks_is_told_of_as_1006(gateway: FaultGateway, lambdas: Lambdas) -> None:
    socket = await dial(gateway)
    socket.transport.abort()
    await gateway.until(lambda: gateway.counts["disconnects"] == 1)
    [event] = lambdas.of_kind("DISCONNECT")
    assert event["requestContext"]["disconnectStatusCode"] == 1006
