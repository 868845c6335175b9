from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

import pytest
import pytest_asyncio

from tests.unit.client.fake_server import FakeServer
from tests.unit.client.virtual_time import VirtualTimeLoop
from threadkeep_client import Client


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"virtual_time": VirtualTimeLoop}


@pytest_asyncio.fixture
async def server() -> AsyncIterator[FakeServer]:
    async with FakeServer() as running:
        yield running


@pytest.fixture
def conversation() -> str:
    return "01900000-0000-7000-8000-000000000001"


@pytest_asyncio.fixture
async def client(server: FakeServer, conversation: str) -> AsyncIterator[Client]:
    async with Client(server.url, "t") as connected:
        await connected.create_conversation(conversation)
        yield connected
