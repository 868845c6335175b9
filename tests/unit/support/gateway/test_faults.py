"""Each fault happens when it is asked for, is counted, and is drawn alike from the same seed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from dataclasses import replace
from typing import get_args

import pytest
from botocore.exceptions import ClientError
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from tests.support.gateway import FaultGateway, Faults
from tests.support.gateway.faults import Chance
from tests.unit.support.gateway.conftest import Running, arrived, dial, posting
from tests.unit.support.gateway.functions import Lambdas, message


async def received(socket: ClientConnection) -> list[str]:
    """Everything that has come, up to now or to the socket's end."""
    await (await socket.ping()) if socket.close_code is None else None
    texts = []
    while True:
        try:
            async with asyncio.timeout(0.02):
                texts.append(str(await socket.recv()))
        except TimeoutError:
            return texts


# --- the plan ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", get_args(Chance))
def test_a_fault_is_drawn_as_often_as_its_chance_says(fault: Chance) -> None:
    faults = replace(Faults(seed=1), **{fault: 0.3})  # type: ignore[arg-type]  # not every field is a chance
    happened = sum(faults.happens(fault, connection, frame) for connection in range(20) for frame in range(100))
    assert 500 < happened < 700
    other = next(name for name in get_args(Chance) if name != fault)
    assert not any(faults.happens(other, connection, 0) for connection in range(100))


def test_the_same_seed_draws_the_same_in_any_order() -> None:
    places = [(connection, frame) for connection in range(10) for frame in range(10)]
    faults = Faults(seed=4, cut=0.5)
    drawn = {place: faults.happens("cut", *place) for place in places}
    random.Random(0).shuffle(places)  # noqa: S311 -- repeatable, not secret
    assert {place: Faults(seed=4, cut=0.5).happens("cut", *place) for place in places} == drawn
    assert {place: Faults(seed=5, cut=0.5).happens("cut", *place) for place in places} != drawn


def test_a_delay_is_bounded_and_none_where_the_fault_is_not() -> None:
    delays = [Faults(delay_reply=0.5, delay_ms_max=40).delay_s("delay_reply", frame) for frame in range(200)]
    assert 0.0 in delays
    assert 0.03 < max(delays) <= 0.04
    assert len(set(delays)) > 50


# --- requests and replies ----------------------------------------------------------------------------------------


async def test_a_lost_request_never_runs(running: Running, lambdas: Lambdas) -> None:
    async with running(faults=Faults(lose_request=1.0)) as gateway, dial(gateway) as socket:
        await socket.send(message())
        await arrived(gateway, socket)
        assert await received(socket) == []
        assert lambdas.of_kind("MESSAGE") == []
        assert gateway.counts["requests_lost"] == 1


async def test_a_lost_reply_ran(running: Running, lambdas: Lambdas) -> None:
    async with running(faults=Faults(lose_reply=1.0)) as gateway, dial(gateway) as socket:
        await socket.send(message())
        await arrived(gateway, socket)
        assert await received(socket) == []
        assert len(lambdas.of_kind("MESSAGE")) == gateway.counts["replies_lost"] == 1


async def test_a_doubled_request_is_the_same_event_twice(running: Running, lambdas: Lambdas) -> None:
    async with running(faults=Faults(double_request=1.0)) as gateway, dial(gateway) as socket:
        await socket.send(message())
        await arrived(gateway, socket)
        assert await received(socket) == [message()] * 2
        first, second = lambdas.of_kind("MESSAGE")
        assert first == second


async def test_an_integration_fails_before_or_after_it_ran(running: Running, lambdas: Lambdas) -> None:
    async with running(faults=Faults(fail_integration=1.0)) as gateway, dial(gateway) as socket:
        for _ in range(20):
            await socket.send(message())
        await arrived(gateway, socket)
        frames = [json.loads(frame) for frame in await received(socket)]
        assert len(frames) == gateway.counts["integrations_failed"] == 20
        assert {frame["message"] for frame in frames} == {"Internal server error"}
        assert 0 < len(lambdas.of_kind("MESSAGE")) < 20


async def test_delayed_requests_run_in_another_order(running: Running, lambdas: Lambdas) -> None:
    async with running(faults=Faults(delay_request=1.0)) as gateway, dial(gateway) as socket:
        for number in range(10):
            await socket.send(message(n=number))
        await arrived(gateway, socket)
        ran = [json.loads(event["body"])["n"] for event in lambdas.of_kind("MESSAGE")]
        assert sorted(ran) == list(range(10))
        assert ran != list(range(10))
        assert gateway.counts["requests_delayed"] == 10


async def test_delayed_replies_come_in_another_order(running: Running) -> None:
    async with running(faults=Faults(delay_reply=1.0)) as gateway, dial(gateway) as socket:
        for number in range(10):
            await socket.send(message(n=number))
        await arrived(gateway, socket)
        replied = [json.loads(reply)["n"] for reply in await received(socket)]
        assert sorted(replied) == list(range(10))
        assert replied != list(range(10))


# --- pushes ------------------------------------------------------------------------------------------------------


async def push(gateway: FaultGateway, *texts: str) -> None:
    async with posting(gateway) as connections:
        for text in texts:
            await connections.post(gateway.connections[0], text)
    await gateway.settle()


async def test_a_lost_push_was_taken(running: Running) -> None:
    async with running(faults=Faults(lose_push=1.0)) as gateway, dial(gateway) as socket:
        await push(gateway, "x")
        assert await received(socket) == []
        assert gateway.counts["pushes_lost"] == 1


async def test_a_doubled_push_comes_twice(running: Running) -> None:
    async with running(faults=Faults(double_push=1.0)) as gateway, dial(gateway) as socket:
        await push(gateway, "x")
        assert await received(socket) == ["x", "x"]


async def test_delayed_pushes_come_in_another_order(running: Running) -> None:
    texts = [str(number) for number in range(10)]
    async with running(faults=Faults(delay_push=1.0, delay_ms_max=100)) as gateway, dial(gateway) as socket:
        await push(gateway, *texts)
        came = await received(socket)
        assert sorted(came) == texts
        assert came != texts


async def test_pushes_of_a_kind_are_dropped_and_no_others(running: Running) -> None:
    delta, end = message(type="stream.delta"), message(type="message.created")
    async with running(faults=Faults(drop_pushes=("message.created",))) as gateway, dial(gateway) as socket:
        await push(gateway, delta, end, "no json", delta)
        assert await received(socket) == [delta, "no json", delta]
        assert gateway.counts["pushes_lost"] == 1


async def test_a_failed_post_is_429_or_500_and_sends_nothing(running: Running) -> None:
    async with running(faults=Faults(fail_post=1.0)) as gateway, dial(gateway) as socket:
        statuses = set()
        async with posting(gateway) as connections:
            for _ in range(20):
                with pytest.raises(ClientError) as caught:
                    await connections.post(gateway.connections[0], "x")
                statuses.add(caught.value.response["ResponseMetadata"]["HTTPStatusCode"])
        assert statuses == {429, 500}
        assert await received(socket) == []


async def test_a_slow_post_holds_its_caller(running: Running) -> None:
    async with running(faults=Faults(slow_post=1.0, slow_ms=150)) as gateway, dial(gateway) as socket:
        clock = asyncio.get_running_loop().time
        begun = clock()
        await push(gateway, "x")
        assert clock() - begun >= 0.15
        assert await received(socket) == ["x"]


# --- sockets -----------------------------------------------------------------------------------------------------


async def exchange(gateway: FaultGateway, times: int) -> int:
    """Send and receive in turn; how many replies came before the socket ended."""
    replies = 0
    async with dial(gateway) as socket:
        with contextlib.suppress(ConnectionClosed):
            for _ in range(times):
                await socket.send(message())
                assert await socket.recv() == message()
                replies += 1
    return replies


async def test_sockets_are_cut_after_the_frames_that_the_plan_names(running: Running, lambdas: Lambdas) -> None:
    async with running(faults=Faults(cut_after=(4, 5))) as gateway:
        assert await exchange(gateway, 10) == 2  # the fourth frame is the second reply
        assert await exchange(gateway, 10) == 2  # the fifth is the third request: it runs, its reply is lost
        assert await exchange(gateway, 10) == 10
        await gateway.until(lambda: gateway.counts["disconnects"] == 3)
        assert gateway.counts["cut"] == 2
        assert len(lambdas.of_kind("MESSAGE")) == 2 + 3 + 10


async def test_sockets_are_cut_by_chance_before_and_after_frames(running: Running) -> None:
    async with running(faults=Faults(cut=0.2, seed=1)) as gateway:
        lengths = [await exchange(gateway, 50) for _ in range(10)]
        assert gateway.counts["cut"] == 10
        assert len(set(lengths)) > 3
        assert max(lengths) < 50


async def test_a_test_may_cut_by_hand(gateway: FaultGateway) -> None:
    async with dial(gateway) as first, dial(gateway) as second:
        gateway.cut(gateway.connections[0])
        await first.wait_closed()
        assert first.close_code == 1006
        await gateway.until(lambda: len(gateway.connections) == 1)
        gateway.cut()
        await second.wait_closed()
        assert second.close_code == 1006


async def test_a_lost_disconnect_is_not_run(running: Running, lambdas: Lambdas) -> None:
    async with running(faults=Faults(lose_disconnect=1.0)) as gateway:
        async with dial(gateway):
            pass
        await gateway.until(lambda: gateway.counts["disconnects_lost"] == 1)
        assert gateway.connections == ()
        assert lambdas.of_kind("DISCONNECT") == []


async def test_faults_may_begin_and_end_while_it_runs(gateway: FaultGateway) -> None:
    async with dial(gateway) as socket:
        gateway.faults = Faults(lose_reply=1.0)
        await socket.send(message())
        await arrived(gateway, socket)
        gateway.faults = Faults()
        await socket.send(message(n=2))
        assert await socket.recv() == message(n=2)
