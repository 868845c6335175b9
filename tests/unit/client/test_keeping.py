from __future__ import annotations

from typing import Any

import pytest

from tests.unit.client.fake_server import FakeServer
from threadkeep_client import Client

C = "01900000-0000-7000-8000-000000000001"
DAMAGED = {"damaged": [{"first": C, "last": C, "count": 1}]}


async def answered(server: FakeServer, action: str, reply: dict[str, Any]) -> None:
    async def answer(_: dict[str, Any]) -> dict[str, Any]:
        return reply

    setattr(server.service, "_" + action.replace(".", "_"), answer)
    server.service.conversations[C] = {"id": C}


def asked(server: FakeServer) -> dict[str, Any]:
    (request,) = server.requests
    return {name: value for name, value in request.items() if name not in {"action", "ref"}}


async def test_a_context_is_read_within_bounds(server: FakeServer) -> None:
    message: Any = {"id": "m", "parts": []}
    await answered(
        server, "context.read", {"messages": [message], "truncated": True, "cursor": "x", "tier": "hot"} | DAMAGED
    )
    async with Client(server.url, "t") as client:
        context = await client.read_context(C, leaf="l", max_messages=3, max_tokens=100, cursor="y")
    assert asked(server) == {"conversation": C, "leaf": "l", "max_messages": 3, "max_tokens": 100, "cursor": "y"}
    assert (context.messages, context.truncated, context.cursor, context.tier) == ([message], True, "x", "hot")
    assert context.damaged == DAMAGED["damaged"]


async def test_what_is_not_given_is_not_sent(server: FakeServer) -> None:
    await answered(server, "context.read", {"messages": [], "truncated": False, "cursor": None, "tier": "warm"})
    async with Client(server.url, "t") as client:
        context = await client.read_context(C)
    assert asked(server) == {"conversation": C}
    assert (context.truncated, context.cursor) == (False, None)


async def test_a_page_tells_what_no_region_could_give(server: FakeServer) -> None:
    await answered(server, "message.list", {"messages": [], "cursor": None, "tier": "cold"} | DAMAGED)
    async with Client(server.url, "t") as client:
        assert (await client.list_messages(C)).damaged == DAMAGED["damaged"]
        await answered(server, "message.list", {"messages": [], "cursor": None, "tier": "cold"})
        assert (await client.list_messages(C)).damaged == []


@pytest.mark.parametrize(
    ("action", "method", "arguments", "wanted"),
    [
        ("blob.get", "get_blob", (C, "r.1"), {"conversation": C, "blob": "r.1"}),
        ("conversation.delete", "delete_conversation", (C,), {"conversation": C}),
        ("erasure.get", "get_erasure", (C,), {"erasure": C}),
        ("export.create", "create_export", (C,), {"conversation": C, "format": "jsonl"}),
        ("export.create", "create_export", (), {"format": "jsonl"}),
        ("export.get", "get_export", ("e",), {"export": "e"}),
    ],
)
async def test_each_method_asks_and_hands_back_the_object(
    server: FakeServer, action: str, method: str, arguments: tuple[str, ...], wanted: dict[str, Any]
) -> None:
    field = {"blob.get": "download", "conversation.delete": "erasure"}.get(action, action.partition(".")[0])
    await answered(server, action, {field: {"state": "as it came"}})
    async with Client(server.url, "t") as client:
        assert await getattr(client, method)(*arguments) == {"state": "as it came"}
    assert asked(server) == wanted
