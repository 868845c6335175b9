"""Exports of the deployed service: asked for over the socket, made behind the queue, downloaded by the link."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import pytest_asyncio

from tests.support.conversations import noise
from tests.support.exporting import lines_of
from tests.support.services import DeployedCloud
from threadkeep_client import Client, NotFoundError, new_id
from threadkeep_client.cli import main
from threadkeep_client.keeping import Export, ExportFormat

PATIENCE_S: Final = 60
LARGE: Final = noise(420_000)
"""Its body goes to the bucket."""
FIVE_MB: Final = noise(5_000_000)


@pytest_asyncio.fixture
async def client(local_cloud: DeployedCloud) -> AsyncIterator[Client]:
    """Of a user of its own, whom no other test knows."""
    async with Client(local_cloud.state.url, token(local_cloud, f"user-{new_id()}")) as connected:
        yield connected


def token(cloud: DeployedCloud, user: str, **fields: str) -> str:
    return cloud.mint_token(sub=user, **fields)


async def finished(client: Client, export: Export) -> Export:
    """Ask until it is made."""
    deadline = time.monotonic() + PATIENCE_S
    while export["state"] == "running":
        assert time.monotonic() < deadline, "the export is never made"
        await asyncio.sleep(0.1)
        export = await client.get_export(export["id"])
    assert export["state"] == "done", export
    return export


async def fetched(url: str) -> httpx.Response:
    async with httpx.AsyncClient(timeout=60) as http:
        return (await http.get(url)).raise_for_status()


async def exported(client: Client, form: ExportFormat = "jsonl", conversation: str | None = None) -> bytes:
    """Export, and download it."""
    export = await finished(client, await client.create_export(conversation, form=form))
    content = (await fetched(export["url"])).content
    assert len(content) == export["bytes"]
    return content


async def talk(client: Client, *texts: str) -> tuple[str, list[Any]]:
    """A conversation with questions and an answer to each; its id and its messages, whole."""
    conversation = (await client.create_conversation(title="to take away", metadata={"n": 1.0}))["id"]
    parent: str | None = None
    for text in texts:
        question = await client.create_message(conversation, text, parent=parent)
        async with client.produce(conversation, parent=question["id"]) as answer:
            await answer.text(f"about {text[:10]}")
        parent = (await client.history(conversation))[-1]["id"]
    return conversation, [await client.whole(message) for message in await client.history(conversation, leaf="all")]


async def test_what_is_exported_is_what_is_read(client: Client) -> None:
    conversation, messages = await talk(client, "short 🎨", LARGE)
    head, *rest = lines_of(await exported(client))
    assert head.pop("type") == "conversation"
    assert head == await client.get_conversation(conversation)
    assert [line.pop("type") for line in rest] == ["message"] * 4
    assert rest == sorted(messages, key=lambda message: str(message["id"]))


async def test_every_form_is_made_and_the_link_names_the_file(client: Client) -> None:
    conversation, messages = await talk(client, "a question")
    (told,) = json.loads(await exported(client, "chatgpt"))
    assert told["id"] == conversation
    assert told["mapping"].keys() == {message["id"] for message in messages}
    export = await finished(client, await client.create_export(conversation, form="markdown"))
    answer = await fetched(export["url"])
    assert "# to take away" in answer.text
    assert "a question" in answer.text
    assert ".md" in answer.headers["content-disposition"]


async def test_a_file_in_several_parts_comes_whole(client: Client) -> None:
    conversation = (await client.create_conversation())["id"]
    parent: str | None = None
    for text in (FIVE_MB, FIVE_MB[::-1]):
        parent = (await client.create_message(conversation, text, parent=parent))["id"]
    _, *rest = lines_of(await exported(client))
    assert [line["parts"][0]["text"] for line in rest] == [FIVE_MB, FIVE_MB[::-1]]


async def test_what_is_deleted_is_in_no_export_and_neither_is_what_is_anothers(
    local_cloud: DeployedCloud, client: Client
) -> None:
    kept, _ = await talk(client, "kept")
    gone, _ = await talk(client, "gone")
    export = await client.create_export()
    async with Client(local_cloud.state.url, token(local_cloud, f"bob-{new_id()}")) as bob:
        assert await exported(bob) == b""
        with pytest.raises(NotFoundError):
            await bob.get_export(export["id"])
        with pytest.raises(NotFoundError):
            await bob.create_export(kept)
    await finished(client, export)
    await client.delete_conversation(gone)
    assert {line["id"] for line in lines_of(await exported(client)) if line["type"] == "conversation"} == {kept}


async def test_a_link_that_was_tampered_with_leads_nowhere(client: Client) -> None:
    await talk(client, "secret")
    export = await finished(client, await client.create_export())
    async with httpx.AsyncClient(timeout=60) as http:
        assert (await http.get(export["url"].partition("?")[0])).status_code == 403
        assert (await http.get(export["url"].replace(export["id"], new_id()))).status_code == 403


async def test_the_command_writes_the_file(local_cloud: DeployedCloud, tmp_path: Path) -> None:
    user = f"user-{new_id()}"
    async with Client(local_cloud.state.url, token(local_cloud, user)) as client:
        conversation, _ = await talk(client, "by the command")
    path = tmp_path / "mine.jsonl"
    named = ["--url", local_cloud.state.url, "--token", token(local_cloud, user), "--output", str(path)]
    assert await asyncio.to_thread(main, ["export", *named]) == 0
    assert [line["id"] for line in lines_of(path.read_bytes()) if line["type"] == "conversation"] == [conversation]


async def test_a_file_that_a_message_keeps_is_downloaded_by_its_ref(client: Client) -> None:
    conversation = (await client.create_conversation())["id"]
    pixels = bytes(range(256)) * 1_000
    ref = await client.upload(conversation, pixels, media_type="image/png")
    with pytest.raises(NotFoundError):
        await client.get_blob(conversation, ref)
    await client.create_message(conversation, [{"type": "blob", "ref": ref}], parent=None)
    answer = await fetched((await client.get_blob(conversation, ref))["url"])
    assert (answer.content, answer.headers["content-type"]) == (pixels, "image/png")
