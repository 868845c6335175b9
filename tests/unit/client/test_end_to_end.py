from __future__ import annotations

import asyncio

from tests.unit.client.fake_server import FakeServer
from threadkeep_client import Client, Update, text_of


async def collect(client: Client, conversation: str, started: asyncio.Event, count: int) -> list[Update]:
    updates: list[Update] = []
    async with client.watch(conversation) as viewer:
        started.set()
        async for update in viewer:
            updates.append(update)
            if sum(u.kind in {"settled", "created"} for u in updates) == count:
                break
    return updates


async def test_an_answer_goes_round(server: FakeServer, conversation: str) -> None:
    async with Client(server.url, "t") as client, Client(server.url, "t") as other:
        await client.create_conversation(conversation, title="Rivers")
        started = asyncio.Event()
        watching = asyncio.create_task(collect(other, conversation, started, 2))
        await started.wait()
        question = await client.create_message(conversation, "Which is the longest?", parent=None)
        async with client.produce(conversation, parent=question["id"], model="m") as answer:
            for piece in ("The Nile, says one; ", "the Amazon", ", says another. 🏞️"):
                await answer.text(piece)
                await asyncio.sleep(0.1)
        history = await client.history(conversation)
        assert answer.outcome is not None
        assert answer.outcome.kind == "settled"
        assert [text_of(m["parts"]) for m in history] == [
            "Which is the longest?",
            "The Nile, says one; the Amazon, says another. 🏞️",
        ]
        updates = await watching
        assert [u.kind for u in updates][:3] == ["created", "opened", "delta"]
        assert updates[-1].message == history[-1]
        assert "".join(op[2] for u in updates for op in u.ops if op[0] == "text") == text_of(history[-1]["parts"])
