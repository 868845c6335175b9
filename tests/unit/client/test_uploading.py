"""What does not fit a frame goes by upload, of itself, and is the same to whoever reads it."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from tests.unit.client.fake_server import FakeServer
from tests.unit.client.fake_store import FakeStore, running_store
from threadkeep_client import Client, text_of
from threadkeep_client.errors import ConflictError, TooLargeError, UnavailableError
from threadkeep_client.frames import FRAME_BYTES_MAX, json_bytes

LONG = "\u754c \U0001f600 " * 4_000


@pytest.fixture
def store() -> Iterator[FakeStore]:
    with running_store() as running:
        yield running


@pytest_asyncio.fixture
async def client(server: FakeServer, store: FakeStore, conversation: str) -> AsyncIterator[Client]:
    server.service.store = store
    async with Client(server.url, "t") as connected:
        await connected.create_conversation(conversation)
        yield connected


# --- bytes -----------------------------------------------------------------------------------------------------------


async def test_bytes_are_uploaded_as_they_are(client: Client, store: FakeStore, conversation: str) -> None:
    content = bytes(range(256)) * 100
    ref = await client.upload(conversation, content, media_type="image/png")
    assert store.objects == {ref: content}
    assert store.media_types == {ref: "image/png"}


async def test_the_service_is_told_what_they_are(server: FakeServer, client: Client, conversation: str) -> None:
    await client.upload(conversation, b"content")
    (asked,) = server.sent("blob.create")
    said = {"bytes": 7, "sha256": hashlib.sha256(b"content").hexdigest(), "conversation": conversation}
    assert {name: value for name, value in asked.items() if name not in {"action", "ref"}} == said


@pytest.mark.parametrize("fault", [500, 503, 403, 400, 0])
async def test_what_the_store_does_not_take_at_first_is_tried_again_with_a_new_url(
    server: FakeServer, client: Client, store: FakeStore, conversation: str, fault: int
) -> None:
    store.faults = [fault, fault]
    ref = await client.upload(conversation, b"content")
    assert store.objects == {ref: b"content"}
    assert len(server.sent("blob.create")) == store.puts == 3


async def test_a_store_that_takes_nothing_is_told(client: Client, store: FakeStore, conversation: str) -> None:
    store.faults = [503] * 3
    with pytest.raises(UnavailableError, match="7 bytes") as told:
        await client.upload(conversation, b"content")
    assert (told.value.reason, told.value.retryable) == ("upload", True)
    assert store.objects == {}


async def test_a_url_that_is_none_of_http_is_refused(client: Client, store: FakeStore, conversation: str) -> None:
    store.url = "file:///tmp"
    with pytest.raises(ValueError, match="by HTTP"):
        await client.upload(conversation, b"content")


async def test_more_than_the_service_takes_is_too_large(client: Client, store: FakeStore, conversation: str) -> None:
    with pytest.raises(TooLargeError):
        await client.upload(conversation, bytes(8 * 1024 * 1024 + 1))
    assert store.puts == 0


# --- messages --------------------------------------------------------------------------------------------------------


async def test_a_message_larger_than_a_frame_is_uploaded_and_read_again(
    server: FakeServer, client: Client, store: FakeStore, conversation: str
) -> None:
    message = await client.create_message(conversation, LONG, parent=None)
    assert "parts" not in message
    (sent,) = server.sent("message.create")
    assert list(sent["parts"]) == ["ref"]
    assert json.loads(store.objects[sent["parts"]["ref"]]) == [{"type": "text", "text": LONG}]
    assert store.media_types == {sent["parts"]["ref"]: "application/json"}
    assert [text_of(found["parts"]) for found in await client.history(conversation)] == [LONG]


async def test_half_surrogates_are_replaced_before_they_are_uploaded(
    client: Client, store: FakeStore, conversation: str
) -> None:
    await client.create_message(conversation, "\ud83d" + "x" * 30_000 + "\ud83d\ude00", parent=None)
    (content,) = store.objects.values()
    assert json.loads(content)[0]["text"] == "\ufffd" + "x" * 30_000 + "\U0001f600"


async def test_what_fits_a_frame_is_not_uploaded_and_what_is_nears_it_does_not_burst_it(
    server: FakeServer, client: Client, store: FakeStore, conversation: str
) -> None:
    for length in range(FRAME_BYTES_MAX - 900, FRAME_BYTES_MAX + 1, 50):
        await client.create_message(conversation, "x" * length, parent=None, fork=True)
    sent = server.sent("message.create")
    assert {isinstance(request["parts"], dict) for request in sent} == {True, False}
    assert max(json_bytes(request) for request in sent) <= FRAME_BYTES_MAX
    assert len(store.objects) == sum(isinstance(request["parts"], dict) for request in sent)


async def test_a_message_whose_upload_is_gone_is_told(
    server: FakeServer, client: Client, store: FakeStore, conversation: str
) -> None:
    server.on_request = lambda request: store.objects.clear() if request["action"] == "message.create" else None
    with pytest.raises(ConflictError) as told:
        await client.create_message(conversation, LONG, parent=None)
    assert told.value.reason == "upload_missing"


async def test_a_value_larger_than_an_op_is_read_in_pieces(client: Client, conversation: str) -> None:
    parts = [{"type": "data", "x": "\u754c" * 30_000, "y": [{"z": [1, 1.0, '\\"\n' * 20_000]}], "n": 10**30}]
    message = await client.create_message(conversation, parts, parent=None)
    assert (await client.whole(message))["parts"] == parts


# --- answers ---------------------------------------------------------------------------------------------------------


async def test_without_the_hot_tier_a_large_answer_is_closed_by_its_upload(
    server: FakeServer, client: Client, store: FakeStore, conversation: str
) -> None:
    async with client.produce(conversation, parent=None, model="m") as answer:
        await answer.text(LONG)
        server.service.hot_away = True
        await answer.text("the end")
    assert answer.outcome is not None
    assert answer.outcome.kind == "settled"
    assert text_of(server.service.messages[answer.id].message["parts"]) == LONG + "the end"
    assert server.service.messages[answer.id].message["model"] == "m"
    assert (store.puts, len(store.objects)) == (1, 1)


async def test_a_body_is_uploaded_once_however_often_the_close_is_repeated(
    server: FakeServer, client: Client, store: FakeStore, conversation: str
) -> None:
    async with client.produce(conversation, parent=None) as answer:
        await answer.text(LONG)
        server.service.hot_away = True
        server.refuse("stream.close", "unavailable", retryable=True, times=30)
    assert text_of(server.service.messages[answer.id].message["parts"]) == LONG
    assert store.puts == 1


async def test_with_hot_tier_and_store_away_a_large_answer_waits_for_either(
    server: FakeServer, client: Client, store: FakeStore, conversation: str
) -> None:
    store.faults = [503] * 1_000
    async with client.produce(conversation, parent=None) as answer:
        await answer.text(LONG)
        server.refuse("stream.append", "unavailable", retryable=True, times=30)
    assert store.puts >= 3
    assert not any("body" in close for close in server.sent("stream.close"))
    assert text_of(server.service.messages[answer.id].message["parts"]) == LONG


async def test_giving_up_during_an_upload_leaves_nothing_running(
    server: FakeServer, client: Client, store: FakeStore, conversation: str
) -> None:
    store.faults = [503] * 1_000
    answer = await client.produce(conversation, parent=None).open()
    await answer.text(LONG)
    server.refuse("stream.append", "unavailable", retryable=True, times=1_000)
    closing = asyncio.create_task(answer.close())
    while not store.puts:  # noqa: ASYNC110 -- a thread counts them, which sets no event of the loop
        await asyncio.sleep(0.1)
    await answer.abandon()
    with pytest.raises(asyncio.CancelledError):
        await closing
    puts = store.puts
    await asyncio.sleep(60)
    assert store.puts <= puts + 1, "no more than the one that was under way"
