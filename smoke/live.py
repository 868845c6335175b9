"""A live answer to look at: a question of the user's, and a stream that a worker writes, one append at a time."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from smoke.ground import Ground
from threadkeep_client import Client, new_id


class Live:
    """One stream.

    Attributes:
        conversation, stream, epoch: its names.
        offset: where the next append goes.
        text: all that was said.
    """

    def __init__(self, worker: Client, conversation: str, stream: str, epoch: int) -> None:
        self._worker = worker
        self.conversation = conversation
        self.stream = stream
        self.epoch = epoch
        self.offset = 0
        self.text = ""

    async def append(self, text: str) -> None:
        """Say more, in an append of its own; on return it is accepted."""
        said: list[Any] = [["text", 0, text]]
        reply = await self._worker.connection.request("stream.append", ops=said, **self._place())
        self.offset = reply["offset"]
        self.text += text

    async def close(self) -> None:
        """Settle it as `complete`."""
        await self._worker.connection.request("stream.close", status="complete", **self._place())

    def _place(self) -> dict[str, Any]:
        return {
            "conversation": self.conversation,
            "stream": self.stream,
            "epoch": self.epoch,
            "offset": self.offset,
        }


@asynccontextmanager
async def live_stream(ground: Ground) -> AsyncIterator[Live]:
    """Ask, open, and settle at the end."""
    async with ground.user() as user, ground.worker() as worker:
        conversation = await ground.conversation(user)
        question = await user.create_message(conversation, "smoke?", parent=None)
        opened = await worker.connection.request(
            "stream.open",
            conversation=conversation,
            message=new_id(after=question["id"]),
            parent=question["id"],
            role="assistant",
            producer=str(uuid.uuid4()),
        )
        live = Live(worker, conversation, opened["stream"], opened["epoch"])
        yield live
        await live.close()
