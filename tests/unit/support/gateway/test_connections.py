"""`@connections`, as boto3 sees it: posts, dead ids, descriptions, deletion."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.gateway import FaultGateway, Faults, Manners, VirtualClock
from tests.support.gateway.events import new_id
from tests.unit.support.gateway.conftest import Running, dial, posting
from tests.unit.support.gateway.functions import Lambdas, message


async def test_a_post_reaches_its_client_alone(gateway: FaultGateway) -> None:
    async with dial(gateway) as first, dial(gateway) as second, posting(gateway) as connections:
        for connection, text in zip(gateway.connections, ("one", "zw\u00f6lf"), strict=True):
            await connections.post(connection, text)
        assert await first.recv() == "one"
        assert await second.recv() == "zw\u00f6lf"


async def test_a_dead_id_is_gone_and_the_others_are_served(gateway: FaultGateway) -> None:
    async with posting(gateway) as connections, dial(gateway) as one, dial(gateway) as two, dial(gateway) as three:
        async with dial(gateway), dial(gateway):
            viewers = gateway.connections
        await gateway.until(lambda: len(gateway.connections) == 3)
        posts = (connections.post(viewer, "to all") for viewer in viewers)
        met = await asyncio.gather(*posts, return_exceptions=True)
        assert met[:3] == [None] * 3
        for error in met[3:]:
            assert isinstance(error, connections.errors.GoneException)
            assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 410
        assert [await socket.recv() for socket in (one, two, three)] == ["to all"] * 3


async def test_an_id_that_never_was_is_gone_too(gateway: FaultGateway) -> None:
    async with posting(gateway) as connections:
        for ask in (connections.get, connections.delete):
            with pytest.raises(connections.errors.GoneException):
                await ask(new_id())
        with pytest.raises(connections.errors.GoneException):
            await connections.post(new_id(), "x")


async def test_a_post_during_connect_is_gone(gateway: FaultGateway, lambdas: Lambdas) -> None:
    met: list[str] = []
    loop = asyncio.get_running_loop()
    async with posting(gateway) as connections:

        def connect(event: dict[str, Any]) -> dict[str, Any]:
            post = connections.post(event["requestContext"]["connectionId"], "welcome")
            try:
                asyncio.run_coroutine_threadsafe(post, loop).result()
            except ClientError as error:
                met.append(error.response["Error"]["Code"])
            return {"statusCode": 200}

        lambdas.on_connect = connect
        async with dial(gateway) as socket:
            await connections.post(gateway.connections[0], "now")
            assert await socket.recv() == "now"
    assert met == ["GoneException"]


async def test_a_connection_describes_itself(gateway: FaultGateway, clock: VirtualClock) -> None:
    async with dial(gateway, user_agent_header="browser/1") as socket, posting(gateway) as connections:
        clock.advance(5.0)
        await socket.send(message())
        await socket.recv()
        told = await connections.get(gateway.connections[0])
    assert told["Identity"] == {"SourceIp": "127.0.0.1", "UserAgent": "browser/1"}
    assert (told["LastActiveAt"] - told["ConnectedAt"]).total_seconds() == pytest.approx(5.0, abs=0.002)


async def test_a_deleted_connection_closes_with_1000(gateway: FaultGateway, lambdas: Lambdas) -> None:
    async with dial(gateway) as socket, posting(gateway) as connections:
        [connection] = gateway.connections
        await connections.delete(connection)
        await socket.wait_closed()
        assert socket.close_code == 1000
        await gateway.until(lambda: gateway.counts["disconnects"] == 1)
        with pytest.raises(connections.errors.GoneException):
            await connections.post(connection, "x")
    [event] = lambdas.of_kind("DISCONNECT")
    assert event["requestContext"]["disconnectStatusCode"] == 1000


def ask(url: str, data: bytes | None) -> int:
    request = urllib.request.Request(url, data)  # noqa: S310 -- the gateway's own address
    try:
        with urllib.request.urlopen(request, timeout=5) as response:  # noqa: S310
            return int(response.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


@pytest.mark.parametrize(("checks", "status"), [(True, 403), (False, 410)])
async def test_a_post_without_signature_is_refused(running: Running, *, checks: bool, status: int) -> None:
    async with running(manners=Manners(checks_signatures=checks)) as gateway:
        url = f"{gateway.connections_url}/@connections/abc%3D"
        assert await asyncio.to_thread(ask, url, b"x") == status


async def test_another_stage_is_not_found(running: Running) -> None:
    async with running() as gateway:
        url = gateway.connections_url.replace("/test", "/prod")
        assert await asyncio.to_thread(ask, f"{url}/@connections/abc", b"x") == 404


async def test_a_client_that_vanished_takes_posts_until_the_idle_limit(
    running: Running, clock: VirtualClock, lambdas: Lambdas
) -> None:
    async with running(faults=Faults(vanish=1.0)) as gateway, posting(gateway) as connections:
        sockets = [await dial(gateway) for _ in range(20)]
        for socket in sockets:
            socket.transport.abort()
        await gateway.until(lambda: gateway.counts["vanished"] == 20)
        viewers = gateway.connections
        assert len(viewers) == 20
        for viewer in viewers:
            await connections.post(viewer, "into the void")
        assert lambdas.of_kind("DISCONNECT") == []
        clock.advance(599.9)
        assert len(gateway.connections) == 20
        clock.advance(0.1)
        await gateway.until(lambda: gateway.counts["disconnects"] == 20)
        assert gateway.connections == ()
        with pytest.raises(connections.errors.GoneException):
            await connections.post(viewers[0], "x")


async def test_a_client_that_left_politely_does_not_vanish(running: Running) -> None:
    async with running(faults=Faults(vanish=1.0)) as gateway:
        async with dial(gateway):
            pass
        await gateway.until(lambda: gateway.counts["disconnects"] == 1)
        assert gateway.connections == ()
