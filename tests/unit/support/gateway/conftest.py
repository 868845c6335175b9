"""A gateway before functions of the tests' own, clients, and boto3 to post with."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import boto3
import pytest
from botocore.config import Config
from websockets.asyncio.client import ClientConnection, connect

from tests.support.gateway import FaultGateway, VirtualClock
from tests.unit.support.gateway.functions import ROUTES, Lambdas

Running = Callable[..., AbstractAsyncContextManager[FaultGateway]]


class Connections:
    """boto3's client of `@connections`, off the event loop."""

    def __init__(self, url: str) -> None:
        self._client = boto3.client(
            "apigatewaymanagementapi",
            endpoint_url=url,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=Config(retries={"total_max_attempts": 1}),
        )
        self.errors = self._client.exceptions

    async def post(self, connection: str, data: str | bytes) -> None:
        data = data.encode() if isinstance(data, str) else data
        await asyncio.to_thread(self._client.post_to_connection, ConnectionId=connection, Data=data)

    async def get(self, connection: str) -> Any:
        return await asyncio.to_thread(self._client.get_connection, ConnectionId=connection)

    async def delete(self, connection: str) -> None:
        await asyncio.to_thread(self._client.delete_connection, ConnectionId=connection)

    def close(self) -> None:
        self._client.close()


@pytest.fixture
def lambdas() -> Lambdas:
    return Lambdas()


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def running(lambdas: Lambdas, clock: VirtualClock) -> Running:
    """A running gateway with these settings."""
    return lambda **settings: FaultGateway(lambdas.handlers(), routes=ROUTES, clock=clock, **settings)


@pytest.fixture
async def gateway(running: Running) -> AsyncIterator[FaultGateway]:
    """A gateway as AWS runs it, without faults."""
    async with running() as started:
        yield started


@contextlib.asynccontextmanager
async def posting(gateway: FaultGateway) -> AsyncIterator[Connections]:
    connections = Connections(gateway.connections_url)
    try:
        yield connections
    finally:
        connections.close()


def dial(gateway: FaultGateway, *, query: str = "", max_queue: int | None = None, **settings: Any) -> connect:
    """A client's connection, without pings and limits of its own."""
    settings |= {"ping_interval": None, "max_size": None, "max_queue": max_queue, "close_timeout": 1}
    return connect(gateway.url + query, **settings)


async def arrived(gateway: FaultGateway, socket: ClientConnection) -> None:
    """Wait until everything that the client sent has come to the gateway and been answered for."""
    await (await socket.ping())
    await gateway.settle()
