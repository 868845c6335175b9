"""The replay's watcher: sees a conversation's answers live, and keeps what it saw."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from threadkeep_client.cli.comparing import Sent, compare_message, compare_text
from threadkeep_client.updates import Update
from threadkeep_client.viewer import Viewer
from threadkeep_client.wire import Message


@dataclass(slots=True)
class Seen:
    """One message as it came: piece by piece, and settled."""

    pieces: list[str] = field(default_factory=list)
    first_at: float | None = None
    message: Message | None = None


class Watcher:
    """Keeps what a viewer tells."""

    def __init__(self, viewer: Viewer) -> None:
        self._viewer = viewer
        self._moved = asyncio.Condition()
        self.seen: dict[str, Seen] = {}

    async def run(self) -> None:
        """Watch until cancelled."""
        async for update in self._viewer:
            async with self._moved:
                self._keep(update)
                self._moved.notify_all()

    def _keep(self, update: Update) -> None:
        seen = self.seen.setdefault(update.id, Seen())
        match update.kind:
            case "delta":
                if seen.first_at is None:
                    seen.first_at = asyncio.get_running_loop().time()
                seen.pieces.extend(op[2] for op in update.ops if op[0] == "text")
            case "restarted":
                seen.pieces.clear()
            case "settled" | "created":
                seen.message = update.message

    async def until_settled(self, ids: list[str], patience_s: float) -> None:
        """Wait until all of them have settled here, or patience ends: `compare` tells what is missing."""
        await self._until(lambda: all(self.seen.get(name, Seen()).message is not None for name in ids), patience_s)

    async def until_begun(self, message: str, patience_s: float) -> None:
        """Wait until something of it has been seen here, or patience ends."""
        await self._until(lambda: self.seen.get(message, Seen()).first_at is not None, patience_s)

    async def _until(self, is_so: Callable[[], bool], patience_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(patience_s), self._moved:
                await self._moved.wait_for(is_so)

    def compare(self, sent: list[Sent]) -> Iterator[str]:
        """What differs between what was sent and what was seen: settled, and assembled on the way there."""
        for message in sent:
            seen = self.seen.get(message.id, Seen())
            if seen.message is None:
                yield f"watched: {message.id} did not settle"
                continue
            for difference in compare_message(message, seen.message):
                yield f"watched: {difference}"
            # Settling may overtake the last deltas; what came of them must be right, though.
            assembled = "".join(seen.pieces)
            difference_ = compare_text(message.text[: len(assembled)], assembled)
            if difference_ is not None:
                yield f"watched: {message.id}: the text assembled {difference_}"
