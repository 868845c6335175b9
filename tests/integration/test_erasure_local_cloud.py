"""A deletion in the deployed service: stream, queues and functions; afterwards every store is searched."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import closing
from typing import Final

import pytest
import pytest_asyncio

from tests.support.deployed_stores import Stores, until
from tests.support.hot import client_of, hot_valkey
from tests.support.services import DeployedCloud
from threadkeep.domain.model import ConversationKey
from threadkeep.domain.streams import Unknown
from threadkeep.stores import table_keys
from threadkeep.stores.hot_keys import HotKeys
from threadkeep_client import Client, NotFoundError, new_id

LARGE: Final = random.Random(7).randbytes(600_000).hex()  # noqa: S311 -- noise, so that its body goes to the bucket


@pytest_asyncio.fixture
async def client(local_cloud: DeployedCloud) -> AsyncIterator[Client]:
    async with Client(local_cloud.state.url, local_cloud.mint_token()) as connected:
        yield connected


@pytest_asyncio.fixture
async def viewer(local_cloud: DeployedCloud) -> AsyncIterator[Client]:
    async with Client(local_cloud.state.url, local_cloud.mint_token()) as connected:
        yield connected


@pytest.fixture
def stores(local_cloud: DeployedCloud) -> Stores:
    return Stores(local_cloud.state)


async def test_after_a_deletion_nothing_is_left_anywhere_but_tombstone_and_receipt(
    client: Client, viewer: Client, stores: Stores
) -> None:
    conversation = (await client.create_conversation(title="to be erased"))["id"]
    key = ConversationKey("acme", conversation)
    await viewer.connection.request("conversation.subscribe", conversation=conversation)
    file = await client.upload(conversation, b"\x89PNG of a cat", media_type="image/png")
    question = await client.create_message(
        conversation, [{"type": "text", "text": "look"}, {"type": "blob", "ref": file}], parent=None
    )
    async with client.produce(conversation, parent=question["id"]) as answer:
        await answer.text("A cat. ")
    large = await client.create_message(conversation, LARGE, parent=(await client.history(conversation))[-1]["id"])
    live = await client.produce(conversation, parent=large["id"]).open()
    await live.text("going on")
    assert {name.split("/")[0] for name in stores.objects(conversation)} == {"blobs", "bodies", "uploads"}
    assert len(stores.items(conversation)) == 6
    assert stores.hot_keys(conversation)

    erasure = await client.delete_conversation(conversation)
    assert erasure["state"] == "running"
    with pytest.raises(NotFoundError):
        await client.history(conversation)
    await live.text(" and on")
    with pytest.raises(NotFoundError):
        await live.close()

    async def is_done() -> bool:
        return (await client.get_erasure(conversation))["state"] == "done"

    await until(is_done, "the erasure is never done")
    region = client_region(stores)
    receipt = ["gone", f"gone#{region}#hot", f"gone#{region}#objects", f"gone#{region}#table"]
    assert stores.items(conversation) == receipt
    assert stores.objects(conversation) == []
    assert stores.hot_keys(conversation) == [HotKeys(key).gravestone]
    with closing(client_of(stores.address, is_cluster=True)) as valkey:
        for stream in stores.deadlines(key):  # names that the next sweep takes, since nothing stands behind them
            assert hot_valkey(valkey).expire(key, stream) == Unknown()
    lines = {line["store"]: line for line in (await client.get_erasure(conversation))["lines"]}
    assert lines["table"]["found"] == lines["table"]["removed"] == 6
    assert lines["objects"]["found"] == lines["objects"]["removed"] >= 4
    assert lines["hot"]["found"] == lines["hot"]["removed"] > 0
    assert {line["state"] for line in lines.values()} == {"done"}

    assert (await client.delete_conversation(conversation))["requested_at"] == erasure["requested_at"]
    with pytest.raises(NotFoundError):
        await client.create_conversation(conversation)


@pytest.mark.usefixtures("keys_of_no_tenant")  # the test itself writes what is late, past the service
async def test_what_lands_beside_the_tombstone_afterwards_is_taken_too(client: Client, stores: Stores) -> None:
    conversation = (await client.create_conversation())["id"]
    key = ConversationKey("acme", conversation)
    await client.delete_conversation(conversation)

    async def is_done() -> bool:
        return (await client.get_erasure(conversation))["state"] == "done"

    await until(is_done, "the erasure is never done")
    late = {"pk": {"S": table_keys.partition(key)}, "sk": {"S": table_keys.message(new_id())}, "b": {"B": b"late"}}
    stores.s3.put_object(Bucket=stores.bucket, Key=f"bodies/acme/{conversation}/late", Body=b"late")
    stores.table.put_item(TableName=stores.table_name, Item=late)

    async def is_gone() -> bool:
        return not stores.objects(conversation) and not any(
            name.startswith("m#") for name in stores.items(conversation)
        )

    await until(is_gone, "what landed late stays")
    lines = {line["store"]: line for line in (await client.get_erasure(conversation))["lines"]}
    assert {line["state"] for line in lines.values()} == {"done"}


async def test_another_user_may_neither_delete_nor_ask(local_cloud: DeployedCloud, client: Client) -> None:
    conversation = (await client.create_conversation())["id"]
    async with Client(local_cloud.state.url, local_cloud.mint_token(sub="bob", scope="chat")) as bob:
        with pytest.raises(NotFoundError):
            await bob.delete_conversation(conversation)
        await client.create_message(conversation, "still here", parent=None)
        await client.delete_conversation(conversation)
        with pytest.raises(NotFoundError):
            await bob.get_erasure(conversation)


def client_region(stores: Stores) -> str:
    """The one region of the local cloud."""
    return str(stores.table.meta.region_name)
