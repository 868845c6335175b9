"""A conversation goes cold in the deployed service, by its own planner, queue and archivers, and wakes up again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import pytest_asyncio
from valkey import Valkey

from local.deploy import aws_session
from local.state import STAGE
from tests.support.deployed_stores import Stores, until
from tests.support.services import DeployedCloud
from threadkeep.domain.model import ConversationKey
from threadkeep.stores.hot_keys import HotKeys
from threadkeep_client import Client

PATIENCE_S: Final = 240
LONG: Final = "\u754c\u9762 " * 20_000
"""No frame carries it: it goes as a body of its own."""


class Place:
    """A conversation, and where it lies."""

    def __init__(self, cloud: DeployedCloud, conversation: str) -> None:
        self.conversation = conversation
        self._cloud = cloud
        session, endpoint = aws_session(), cloud.state.endpoint
        self._functions = session.client("lambda", endpoint_url=endpoint)
        self._table = session.client("dynamodb", endpoint_url=endpoint)
        self._bucket = session.client("s3", endpoint_url=endpoint)

    def items(self, prefix: str) -> list[str]:
        """The sort keys of its items in the table that begin so."""
        answer = self._table.query(
            TableName=self._cloud.state.table,
            ConsistentRead=True,
            KeyConditionExpression="pk = :pk AND begins_with(sk, :prefix)",
            ExpressionAttributeValues={":pk": {"S": f"acme#{self.conversation}"}, ":prefix": {"S": prefix}},
        )
        return [item["sk"]["S"] for item in answer["Items"]]

    def is_due(self) -> bool:
        """Whether the archive is not through with it."""
        key = {"pk": {"S": f"acme#{self.conversation}"}, "sk": {"S": "pulse#due"}}
        return "due_at" in self._table.get_item(TableName=self._cloud.state.table, Key=key)["Item"]

    def objects(self, kind: str) -> list[str]:
        """The keys of its objects of a kind."""
        prefix = f"{kind}/acme/{self.conversation}/"
        answer = self._bucket.list_objects_v2(Bucket=self._cloud.state.bucket, Prefix=prefix)
        return [found["Key"] for found in answer.get("Contents", [])]

    def forget_hot(self) -> None:
        """Valkey loses what it has of it."""
        with Valkey(host=self._cloud.state.valkey.host, port=self._cloud.state.valkey.port) as untyped:
            server: Any = untyped
            for name in list(server.scan_iter(match=f"*{self.conversation}*", count=10_000)):
                server.delete(name)

    async def planned_until(self, done: Callable[[], bool]) -> None:
        """Run the planner, as its schedule does, until the archivers behind the queue have done that."""
        ends = time.monotonic() + PATIENCE_S
        while not await asyncio.to_thread(done):
            assert time.monotonic() < ends, (self.items("m#"), self.items("s#"), self.is_due())
            answer = await asyncio.to_thread(self._functions.invoke, FunctionName=f"threadkeep-{STAGE}-planner")
            assert "FunctionError" not in answer, answer["Payload"].read()
            await asyncio.sleep(0.5)

    async def go_cold(self) -> None:
        """Wait until the table has none of its messages, and does not have it due."""
        await self.planned_until(lambda: not self.items("m#") and not self.is_due())
        self.forget_hot()


@pytest_asyncio.fixture
async def client(local_cloud: DeployedCloud) -> AsyncIterator[Client]:
    async with Client(local_cloud.state.url, local_cloud.mint_token()) as connected:
        yield connected


async def read(client: Client, conversation: str) -> list[dict[str, Any]]:
    """All of it, each message whole."""
    return [dict(message) for message in await client.history(conversation)]


async def test_a_life_streamed_gone_cold_read_without_a_difference_woken_cold_again_and_erased(
    local_cloud: DeployedCloud, client: Client
) -> None:
    conversation = (await client.create_conversation(title="to be kept"))["id"]
    place = Place(local_cloud, conversation)
    parent: str | None = None
    for number in range(3):
        question = await client.create_message(
            conversation, f"Question {number}: 0.1 + 9007199254740993?", parent=parent
        )
        async with client.produce(conversation, parent=question["id"]) as answer:
            await answer.text(f"Answer {number}: ")
            await answer.text(LONG if number == 1 else "\u00fcn\u00ef \U0001f642")
        parent = answer.id
    said = await read(client, conversation)
    assert len(said) == 6

    await place.planned_until(lambda: bool(place.items("s#")))
    assert await read(client, conversation) == said
    await place.go_cold()
    (segment,) = place.objects("segments")
    assert segment.endswith(".jsonl.zst")
    assert len(place.objects("bodies")) == 1
    page = await client.list_messages(conversation)
    assert page.tier == "cold"
    place.forget_hot()
    assert await read(client, conversation) == said

    woken = await client.create_message(conversation, "Good morning", parent=parent)
    assert place.is_due()
    said.append(dict(await client.whole(woken)))
    assert await read(client, conversation) == said
    await place.go_cold()
    assert len(place.objects("segments")) == len(place.items("s#")) == 2
    assert await read(client, conversation) == said

    stores = Stores(local_cloud.state)
    await client.delete_conversation(conversation)

    async def is_erased() -> bool:
        return (await client.get_erasure(conversation))["state"] == "done"

    await until(is_erased, "the erasure is never done")
    assert all(item.startswith("gone") for item in stores.items(conversation))
    assert stores.objects(conversation) == []
    assert stores.hot_keys(conversation) == [HotKeys(ConversationKey("acme", conversation)).gravestone]
