from __future__ import annotations

import asyncio

import pytest

from tests.unit.client.fake_server import FakeServer
from threadkeep_client import Client
from threadkeep_client.errors import NotFoundError, ThreadkeepError
from threadkeep_client.subscription import Subscription
from threadkeep_client.wire import Frame


class Subscriber:
    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.errors: list[ThreadkeepError] = []

    def receive(self, frame: Frame) -> None:
        self.frames.append(frame)

    def fail(self, error: ThreadkeepError) -> None:
        self.errors.append(error)


async def test_a_lease_is_renewed_every_four_minutes(server: FakeServer, conversation: str) -> None:
    async with Client(server.url, "t") as client:
        await client.create_conversation(conversation)
        subscriber = Subscriber()
        async with Subscription(client.connection, conversation, subscriber):
            await asyncio.sleep(3 * 240 + 5)
            assert len(server.sent("conversation.subscribe")) == 4
        await asyncio.sleep(1_000)
    assert len(server.sent("conversation.subscribe")) == 4
    assert [frame["type"] for frame in subscriber.frames] == ["conversation.subscribe.ok"] * 4
    assert len(server.sent("conversation.unsubscribe")) == 1


async def test_a_short_lease_is_renewed_at_half_its_time(server: FakeServer, conversation: str) -> None:
    server.service.lease_ms = 60_000
    async with Client(server.url, "t") as client:
        await client.create_conversation(conversation)
        async with Subscription(client.connection, conversation, Subscriber()):
            await asyncio.sleep(95)
    assert len(server.sent("conversation.subscribe")) == 4


async def test_a_lease_near_its_end_is_not_renewed_in_a_tight_loop(server: FakeServer, conversation: str) -> None:
    server.service.lease_ms = 0
    async with Client(server.url, "t") as client:
        await client.create_conversation(conversation)
        async with Subscription(client.connection, conversation, Subscriber()):
            await asyncio.sleep(10)
    assert 9 <= len(server.sent("conversation.subscribe")) <= 12


async def test_it_subscribes_again_after_every_reconnect(server: FakeServer, conversation: str) -> None:
    async with Client(server.url, "t") as client:
        await client.create_conversation(conversation)
        async with Subscription(client.connection, conversation, Subscriber()):
            for number in range(2, 5):
                server.cut()
                await asyncio.sleep(30)
                assert len(server.sent("conversation.subscribe")) == number
                assert len(server.viewers[conversation]) == 1


async def test_what_is_refused_is_raised_and_leaves_nothing_behind(server: FakeServer, conversation: str) -> None:
    async with Client(server.url, "t") as client:
        with pytest.raises(NotFoundError):
            await Subscription(client.connection, conversation, Subscriber()).__aenter__()
        assert not client.connection.is_listened(conversation)


async def test_a_refused_renewal_ends_it(server: FakeServer, conversation: str) -> None:
    async with Client(server.url, "t") as client:
        await client.create_conversation(conversation)
        subscriber = Subscriber()
        async with Subscription(client.connection, conversation, subscriber):
            server.refuse("conversation.subscribe", "not_found")
            await asyncio.sleep(300)
            assert [type(error) for error in subscriber.errors] == [NotFoundError]


async def test_renewing_outlasts_a_service_that_is_away(server: FakeServer, conversation: str) -> None:
    async with Client(server.url, "t") as client:
        await client.create_conversation(conversation)
        subscriber = Subscriber()
        async with Subscription(client.connection, conversation, subscriber):
            server.refuse("conversation.subscribe", "unavailable", retryable=True, times=100)
            await asyncio.sleep(1_000)
            assert subscriber.errors == []
            assert len(subscriber.frames) >= 3


async def test_two_subscriptions_of_a_connection_share_the_lease(server: FakeServer, conversation: str) -> None:
    async with Client(server.url, "t") as client:
        await client.create_conversation(conversation)
        one, other = Subscriber(), Subscriber()
        async with Subscription(client.connection, conversation, one):
            async with Subscription(client.connection, conversation, other):
                pass
            assert server.sent("conversation.unsubscribe") == []
            await server.tell(conversation, {"type": "conversation.updated"})
            await client.ping()
        assert len(server.sent("conversation.unsubscribe")) == 1
    assert [frame["type"] for frame in one.frames] == ["conversation.subscribe.ok", "conversation.updated"]
