"""The gateway's limits fire: frames, messages, idle, lifetime, rate, buffers, timeouts."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket as sockets
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from tests.support.gateway import FaultGateway, Limits, Manners, VirtualClock
from tests.unit.support.gateway.conftest import Running, arrived, dial, posting
from tests.unit.support.gateway.functions import Lambdas, message

KIB = 1024


async def closed(socket: ClientConnection) -> int | None:
    """The code of the close that comes; 1006 where the socket was cut."""
    with contextlib.suppress(ConnectionClosed):
        async for _ in socket:
            pass
    return socket.close_code


def of_size(size: int) -> str:
    """A message of so many bytes."""
    return message(text="x" * (size - len(message(text=""))))


async def pieces(text: str, size: int) -> AsyncIterator[str]:
    for begin in range(0, len(text), size):
        yield text[begin : begin + size]


# --- sizes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "code"), [(32 * KIB, None), (32 * KIB + 1, 1009)])
async def test_a_frame_over_32_kib_closes_with_1009(gateway: FaultGateway, size: int, code: int | None) -> None:
    async with dial(gateway) as socket:
        await socket.send(of_size(size))
        if code is None:
            assert len(await socket.recv()) == size
        else:
            assert await closed(socket) == code
            assert gateway.counts["messages"] == 0


@pytest.mark.parametrize(("size", "code"), [(128 * KIB, None), (128 * KIB + 1, 1009)])
async def test_a_message_over_128_kib_closes_with_1009(gateway: FaultGateway, size: int, code: int | None) -> None:
    async with dial(gateway) as socket:
        await socket.send(pieces(of_size(size), 32 * KIB))
        if code is None:
            assert len(await socket.recv()) == size
        else:
            assert await closed(socket) == code


async def test_sizes_are_bytes_of_utf_8(gateway: FaultGateway) -> None:
    text = "\u20ac" * (32 * KIB // 3)  # 3 bytes each: one short of the limit in bytes, a third of it in letters
    async with dial(gateway) as socket:
        await socket.send(text)
        assert await socket.recv() == text
        await socket.send(text + "\u20ac")
        assert await closed(socket) == 1009


async def test_what_goes_out_is_cut_into_frames_and_arrives_whole(gateway: FaultGateway) -> None:
    text = "\u20ac" * (100 * KIB // 3)
    async with dial(gateway) as socket, posting(gateway) as connections:
        await connections.post(gateway.connections[0], text)
        received = [piece async for piece in socket.recv_streaming() if isinstance(piece, str)]
    assert "".join(received) == text
    assert len(received) == 4
    assert max(len(piece.encode()) for piece in received) <= 32 * KIB + 3  # the client holds back half a letter


async def test_a_post_over_128_kib_is_refused_with_413(gateway: FaultGateway) -> None:
    async with dial(gateway) as socket, posting(gateway) as connections:
        [connection] = gateway.connections
        with pytest.raises(connections.errors.PayloadTooLargeException) as caught:
            await connections.post(connection, "x" * (128 * KIB + 1))
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 413
        await connections.post(connection, "x" * 128 * KIB)
        assert len(await socket.recv()) == 128 * KIB


async def test_a_reply_over_128_kib_becomes_the_gateways_error(gateway: FaultGateway, lambdas: Lambdas) -> None:
    lambdas.on_message = lambda _: {"statusCode": 200, "body": "x" * (128 * KIB + 1)}
    async with dial(gateway) as socket:
        await socket.send(message())
        assert json.loads(await socket.recv())["message"] == "Internal server error"


async def test_a_binary_frame_closes_with_1003(gateway: FaultGateway) -> None:
    async with dial(gateway) as socket:
        await socket.send(b"{}")
        assert await closed(socket) == 1003


async def test_what_is_no_utf_8_closes_with_1007(gateway: FaultGateway) -> None:
    async with dial(gateway) as socket:
        await socket.send(b"\xff", text=True)
        assert await closed(socket) == 1007


# --- time --------------------------------------------------------------------------------------------------------


async def test_an_idle_connection_is_closed_with_1001(
    gateway: FaultGateway, clock: VirtualClock, lambdas: Lambdas
) -> None:
    async with dial(gateway) as socket:
        clock.advance(599.9)
        await socket.send(message())
        assert await socket.recv() == message()
        clock.advance(599.9)
        await socket.send(message())
        assert await socket.recv() == message()
        clock.advance(600.0)
        assert await closed(socket) == 1001
    await gateway.until(lambda: gateway.counts["disconnects"] == 1)
    [event] = lambdas.of_kind("DISCONNECT")
    assert event["requestContext"]["disconnectStatusCode"] == 1001


async def test_a_push_keeps_a_connection_from_being_idle(gateway: FaultGateway, clock: VirtualClock) -> None:
    async with dial(gateway) as socket, posting(gateway) as connections:
        clock.advance(599.0)
        await connections.post(gateway.connections[0], "still here")
        clock.advance(599.0)
        assert await socket.recv() == "still here"
        await arrived(gateway, socket)
        assert len(gateway.connections) == 1
        clock.advance(1.0)
        assert await closed(socket) == 1001


@pytest.mark.parametrize("keeps", [False, True])
async def test_a_ping_counts_as_the_manners_say(running: Running, clock: VirtualClock, *, keeps: bool) -> None:
    async with running(manners=Manners(pings_keep_alive=keeps)) as gateway, dial(gateway) as socket:
        clock.advance(300.0)
        await (await socket.ping())
        clock.advance(300.0)
        if keeps:
            await arrived(gateway, socket)
            assert len(gateway.connections) == 1
        else:
            assert await closed(socket) == 1001


async def test_a_busy_connection_ends_after_two_hours(gateway: FaultGateway, clock: VirtualClock) -> None:
    async with dial(gateway) as socket:
        for _ in range(24):
            await socket.send(message())
            await socket.recv()
            clock.advance(300.0)
        assert await closed(socket) == 1001


async def test_a_function_that_hangs_is_answered_for(
    gateway: FaultGateway, clock: VirtualClock, lambdas: Lambdas
) -> None:
    begun, release = threading.Event(), threading.Event()

    def hang(_: dict[str, Any]) -> dict[str, Any]:
        begun.set()
        release.wait()
        return {"statusCode": 200, "body": "too late"}

    lambdas.on_message = hang
    try:
        async with dial(gateway) as socket:
            await socket.send(message())
            await (await socket.ping())
            while not begun.is_set():
                await (await socket.ping())
            clock.advance(29.0)
            frame = json.loads(await socket.recv())
            assert frame.keys() == {"message", "connectionId", "requestId"}
            assert frame["message"] == "Endpoint request timed out"
            release.set()
            await arrived(gateway, socket)
            assert gateway.counts["replies"] == 1
    finally:
        release.set()


# --- rate --------------------------------------------------------------------------------------------------------


async def test_messages_over_the_rate_get_the_gateways_frame(running: Running, clock: VirtualClock) -> None:
    async with running(limits=Limits(requests_per_s=2, requests_burst=3)) as gateway, dial(gateway) as socket:
        for _ in range(3):  # the handshake was the first request
            await socket.send(message())
        frames = [await socket.recv() for _ in range(3)]
        [refused] = [json.loads(frame) for frame in frames if frame != message()]
        assert refused["message"] == "Too Many Requests"
        assert "type" not in refused
        clock.advance(0.5)
        await socket.send(message())
        assert await socket.recv() == message()


async def test_or_are_closed_with_1008(running: Running) -> None:
    limits, manners = Limits(requests_per_s=1, requests_burst=1), Manners(throttled="close")
    async with running(limits=limits, manners=manners) as gateway, dial(gateway) as socket:
        await socket.send(message())
        assert await closed(socket) == 1008


async def test_posts_over_the_rate_are_refused_with_429(running: Running) -> None:
    async with running(limits=Limits(requests_per_s=1, requests_burst=2)) as gateway, dial(gateway) as socket:
        async with posting(gateway) as connections:
            await connections.post(gateway.connections[0], "one")
            with pytest.raises(connections.errors.LimitExceededException):
                await connections.post(gateway.connections[0], "two")
        assert await socket.recv() == "one"


# --- slow readers ------------------------------------------------------------------------------------------------


def dial_unread(gateway: FaultGateway) -> Any:
    """A client whose kernel takes little, and which reads nothing unless asked."""
    host, port = gateway.url.removeprefix("ws://").split("/")[0].split(":")
    plain = sockets.socket()
    plain.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4 * KIB)
    plain.connect((host, int(port)))
    return dial(gateway, sock=plain, max_queue=1)


async def fill(gateway: FaultGateway, connections: Any) -> int:
    """Post until a post is refused; how many were taken."""
    [connection] = gateway.connections
    for taken in range(100):
        try:
            await connections.post(connection, f"{taken:02}" + "x" * 20 * KIB)
        except connections.errors.LimitExceededException:
            return taken
    pytest.fail("the buffer has no end")


async def test_a_full_buffer_refuses_posts_until_the_client_reads(gateway: FaultGateway) -> None:
    async with dial_unread(gateway) as socket, posting(gateway) as connections:
        taken = await fill(gateway, connections)
        assert [(await socket.recv())[:2] for _ in range(taken)] == [f"{number:02}" for number in range(taken)]
        await connections.post(gateway.connections[0], "again")
        assert await socket.recv() == "again"


async def test_or_cuts_the_connection(running: Running, lambdas: Lambdas) -> None:
    async with running(manners=Manners(full_buffer="drop")) as gateway:
        async with dial_unread(gateway) as socket, posting(gateway) as connections:
            [connection] = gateway.connections
            await fill(gateway, connections)
            assert await closed(socket) == 1006
            with pytest.raises(connections.errors.GoneException):
                await connections.post(connection, "gone")
        await gateway.until(lambda: gateway.counts["disconnects"] == 1)
        [event] = lambdas.of_kind("DISCONNECT")
        assert event["requestContext"]["disconnectStatusCode"] == 1006


async def test_a_reply_to_a_full_buffer_cuts_the_connection(gateway: FaultGateway) -> None:
    async with dial_unread(gateway) as socket, posting(gateway) as connections:
        await fill(gateway, connections)
        await socket.send(message())
        await gateway.until(lambda: gateway.counts["dropped"] == 1)
        assert await closed(socket) == 1006


async def test_or_holds_the_post_until_the_client_reads(running: Running) -> None:
    manners = Manners(full_buffer="wait")
    async with running(manners=manners) as gateway, dial_unread(gateway) as socket, posting(gateway) as connections:
        [connection] = gateway.connections
        held: list[asyncio.Task[None]] = []
        while gateway.counts["buffers_full"] == 0:
            held.append(asyncio.create_task(connections.post(connection, "x" * 20 * KIB)))
            await asyncio.wait(held[-1:], timeout=0.1)
        assert not held[-1].done()
        async with dial(gateway) as other:
            await connections.post(gateway.connections[1], "nobody else waits")
            assert await other.recv() == "nobody else waits"
        for _ in held:
            await socket.recv()
        await asyncio.gather(*held)
