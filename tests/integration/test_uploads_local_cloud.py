"""Megabytes through the deployed service: real presigned PUTs, the functions' own roles, frames on a real socket."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

from local.deploy import aws_session
from tests.support.services import DeployedCloud
from threadkeep_client import Client, ConflictError, NotFoundError, Part, TooLargeError, new_id, text_of
from threadkeep_client.frames import to_json

FIVE_MB = 5_000_000
LETTERS = "\u754c\u9762\u3042"
LONG = LETTERS * (FIVE_MB // 9)


@pytest_asyncio.fixture
async def client(local_cloud: DeployedCloud) -> AsyncIterator[Client]:
    async with Client(local_cloud.state.url, local_cloud.mint_token()) as connected:
        yield connected


@pytest_asyncio.fixture
async def conversation(client: Client) -> str:
    return (await client.create_conversation())["id"]


def as_json(parts: list[Part]) -> bytes:
    return to_json(parts).encode()


async def ask(client: Client, conversation: str, content: bytes, **more: Any) -> dict[str, Any]:
    said: dict[str, Any] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()} | more
    upload: dict[str, Any] = (await client.connection.request("blob.create", conversation=conversation, **said))[
        "upload"
    ]
    return upload


async def put(upload: dict[str, Any], content: bytes, **headers: str) -> int:
    """Put a content there, as a client that knows nothing of us; the status of the answer."""
    said = {name: value for name, value in upload["headers"].items() if name != "content-length"} | headers
    async with httpx.AsyncClient(timeout=60) as http:
        return (await http.request(upload["method"], upload["url"], content=content, headers=said)).status_code


async def send(client: Client, conversation: str, ref: str, **more: Any) -> Any:
    said = {"message": new_id(), "parent": None, "role": "user", "fork": True, "parts": {"ref": ref}} | more
    return (await client.connection.request("message.create", conversation=conversation, **said))["message"]


async def test_a_question_of_5_mb_comes_back_exact(client: Client, conversation: str) -> None:
    message = await client.create_message(conversation, LONG, parent=None)
    assert "parts" not in message
    assert message["bytes"] == len(as_json([{"type": "text", "text": LONG}]))
    assert (await client.whole(message))["parts"] == [{"type": "text", "text": LONG}]


async def test_an_answer_of_5_mb_is_streamed_and_comes_back_exact(client: Client, conversation: str) -> None:
    async with client.produce(conversation, parent=None) as answer:
        for start in range(0, len(LONG), 50_000):
            await answer.text(LONG[start : start + 50_000])
    assert answer.outcome is not None
    assert answer.outcome.kind == "settled"
    (message,) = await client.history(conversation)
    assert text_of(message["parts"]) == LONG


async def test_an_answer_of_5_mb_that_only_its_producer_still_holds_is_closed_by_its_upload(
    client: Client, conversation: str
) -> None:
    content = as_json([{"type": "text", "text": LONG}])
    ref = await client.upload(conversation, content)
    said: dict[str, Any] = {
        "stream": new_id(),
        "epoch": 7,
        "offset": 3,
        "status": "complete",
        "parent": None,
        "role": "assistant",
    }
    for _ in range(2):
        await client.connection.request("stream.close", conversation=conversation, body={"ref": ref}, **said)
    (message,) = await client.history(conversation)
    assert (message["id"], message["role"], text_of(message["parts"])) == (said["stream"], "assistant", LONG)


async def test_a_value_of_100_kb_comes_back_exact(client: Client, conversation: str) -> None:
    parts: list[Part] = [{"type": "data", "x": LETTERS * 12_000, "y": [{"z": [1, 1.0, '\\"\n' * 30_000]}]}]
    message = await client.create_message(conversation, parts, parent=None)
    assert (await client.whole(message))["parts"] == parts


async def test_the_store_takes_only_what_was_spoken_of(client: Client, conversation: str) -> None:
    content = as_json([{"type": "text", "text": "x" * 2_000_000}])
    upload = await ask(client, conversation, content, media_type="application/json")
    other = content.replace(b"x", b"y")
    digest = upload["headers"]["x-amz-checksum-sha256"]
    assert upload["headers"]["content-length"] == str(len(content))
    assert await put(upload, other) in {400, 403}
    assert await put(upload, content[:-1]) in {400, 403}
    assert await put(upload, content + b" ") in {400, 403}
    assert await put(upload, other, **{"x-amz-checksum-sha256": digest[::-1]}) in {400, 403}
    assert await put(upload, content, **{"content-type": "text/html"}) == 403
    assert await put(upload | {"url": upload["url"].replace(conversation, new_id())}, content) == 403
    with pytest.raises(ConflictError) as missing:
        await send(client, conversation, upload["ref"])
    assert missing.value.reason == "upload_missing"
    assert await put(upload, content) == 200
    message = await send(client, conversation, upload["ref"])
    assert (await client.whole(message))["parts"] == [{"type": "text", "text": "x" * 2_000_000}]


async def test_an_upload_is_of_its_conversation_and_tenant_alone(
    local_cloud: DeployedCloud, client: Client, conversation: str
) -> None:
    ref = await client.upload(conversation, as_json([{"type": "text", "text": "secret"}]))
    other = (await client.create_conversation())["id"]
    with pytest.raises(ConflictError, match="upload_missing"):
        await send(client, other, ref)
    async with Client(local_cloud.state.url, local_cloud.mint_token(tenant="globex")) as foreign:
        with pytest.raises(NotFoundError):
            await foreign.upload(conversation, b"x")
        with pytest.raises(NotFoundError):
            await send(foreign, conversation, ref)
        await foreign.create_conversation(conversation)
        with pytest.raises(ConflictError, match="upload_missing"):
            await send(foreign, conversation, ref)


async def test_the_same_upload_named_twice_is_one_message(client: Client, conversation: str) -> None:
    ref = await client.upload(conversation, as_json([{"type": "text", "text": LETTERS * 100_000}]))
    identifier = new_id()
    first = await send(client, conversation, ref, message=identifier)
    assert await send(client, conversation, ref, message=identifier) == first
    assert len(await client.history(conversation, leaf="all")) == 1


async def test_a_file_that_a_part_names_is_kept(local_cloud: DeployedCloud, client: Client, conversation: str) -> None:
    pixels = bytes(range(256)) * 12_000
    ref = await client.upload(conversation, pixels, media_type="image/png")
    digest = hashlib.sha256(pixels).hexdigest()
    part: Part = {"type": "blob", "media_type": "image/png", "bytes": len(pixels), "sha256": digest, "ref": ref}
    question = await client.create_message(conversation, [part], parent=None)
    async with client.produce(conversation, parent=question["id"]) as answer:
        await answer.begin(part)
    assert [message["parts"] for message in await client.history(conversation)] == [[part], [part]]
    bucket = aws_session().client("s3", endpoint_url=local_cloud.state.endpoint)
    kept = bucket.get_object(Bucket=local_cloud.state.bucket, Key=f"blobs/acme/{conversation}/{digest}")
    assert (kept["Body"].read(), kept["ContentType"]) == (pixels, "image/png")


async def test_a_file_that_is_not_there_is_missing_also_while_an_answer_is_written(
    client: Client, conversation: str
) -> None:
    ref = (await ask(client, conversation, b"never put"))["ref"]
    with pytest.raises(ConflictError, match="upload_missing"):
        await client.create_message(conversation, [{"type": "blob", "ref": ref}], parent=None)
    answer = await client.produce(conversation, parent=None).open()
    await answer.begin({"type": "blob", "ref": ref})
    with pytest.raises(ConflictError, match="upload_missing"):
        await answer.close()


async def test_more_than_8_mib_are_refused_in_words(client: Client, conversation: str) -> None:
    with pytest.raises(TooLargeError, match="8388608"):
        await client.upload(conversation, bytes(8 * 1024 * 1024 + 1))
