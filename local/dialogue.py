"""One recorded conversation through a deployment: asked, streamed while someone watches, read back, compared."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Literal

from threadkeep_client import Client, new_id
from threadkeep_client.cli.chats import Chat, Turn
from threadkeep_client.cli.comparing import Sent, compare_messages
from threadkeep_client.cli.watching import Watcher

Cut = Literal["watcher", "producer"]
Party = Literal["user", "device", "worker"]
Check = Callable[[str, list[Sent]], Awaitable[list[str]]]
"""Looks at a conversation, given what was sent; tells what differs."""
_PIECE_CHARS: Final = (3, 5, 2, 7, 4)
"""About what tokens are, in code points."""
_PIECE_EVERY_S: Final = 0.002
_SETTLED_S: Final = 120.0
"""Longer than news of another region take whose first attempts met functions that had not started (30 s each)."""


@dataclass(kw_only=True)
class Tally:
    """What was done and found, over all conversations. Frames are the appends that carried the pieces."""

    conversations: int = 0
    messages: int = 0
    pieces: int = 0
    frames: int = 0
    reconnects: int = 0
    first_delta_s: list[float] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)

    def observe(self, action: str, _seconds: float) -> None:
        """Count the frames among a client's requests."""
        self.frames += action == "stream.append"


class Dialogue:
    """Plays one conversation, each of three parties over a connection of its own.

    The user asks and reads back; a worker writes the answers in small pieces; a second device of the user watches.

    Args:
        chat: what is said.
        connect: makes the client of a party: the user who asks, their other device that watches, the worker.
        tally: is added to.
        cut: whose socket is cut in the middle of the first answer, and resumed.
        begun_s: how long the worker waits behind the first piece of an answer until the watcher has seen it begin.
        advance: told of every message that is settled.
        check: looks at the conversation when all has been read back.
    """

    def __init__(
        self,
        chat: Chat,
        *,
        connect: Callable[[Party], Client],
        tally: Tally,
        cut: Cut | None = None,
        begun_s: float = 0.0,
        advance: Callable[[], None] = lambda: None,
        check: Check | None = None,
    ) -> None:
        self._chat = chat
        self._user, self._device, self._worker = connect("user"), connect("device"), connect("worker")
        self._tally = tally
        self._cut = cut
        self._begun_s = begun_s
        self._advance = advance
        self._check = check
        self._sent: list[Sent] = []

    @property
    def clients(self) -> tuple[Client, ...]:
        """The three parties'."""
        return self._user, self._device, self._worker

    async def play(self) -> None:
        """Send all of it, and compare what was watched and what is read back with what was sent.

        Raises:
            ThreadkeepError: the deployment refused something, or is gone.
        """
        async with AsyncExitStack() as connections:
            for client in self.clients:
                await connections.enter_async_context(client)
                connections.enter_context(client.connection.on_reopen(self._count_reconnect))
            conversation = (await self._user.create_conversation(title=self._chat.title))["id"]
            async with self._watching(conversation) as watcher:
                for turn in self._chat.turns:
                    await self._send(conversation, turn, watcher)
            differences = [*watcher.compare(self._sent), *await self._read_back(conversation)]
            if self._check is not None:
                differences += await self._check(conversation, self._sent)
        self._tally.differences.extend(f"{self._chat.title}: {difference}" for difference in differences)
        self._tally.conversations += 1

    def _count_reconnect(self) -> None:
        self._tally.reconnects += 1

    @asynccontextmanager
    async def _watching(self, conversation: str) -> AsyncIterator[Watcher]:
        """Watch while the block sends; an error of either ends both."""
        async with self._device.watch(conversation) as viewer, asyncio.TaskGroup() as tasks:
            watcher = Watcher(viewer)
            watching = tasks.create_task(watcher.run())
            yield watcher
            watching.cancel()

    async def _send(self, conversation: str, turn: Turn, watcher: Watcher) -> None:
        """Send a turn. Of several answers the main one comes last: as the newest it is the leaf, and goes on."""
        parent = self._sent[-1].id if self._sent else None
        if turn.role == "user":
            message = await self._user.create_message(conversation, turn.text, parent=parent)
            self._sent.append(Sent(message["id"], parent, "user", turn.text, None))
            self._advance()
            return
        answers = [(text, None) for text in turn.alternates] + [(turn.text, turn.model)]
        for number, (text, model) in enumerate(answers, start=1):
            sent = Sent(new_id(after=parent), parent, "assistant", text, model, branch=number < len(answers))
            self._sent.append(sent)
            await self._answer(conversation, sent, is_fork=number > 1, watcher=watcher)
            self._advance()

    async def _answer(self, conversation: str, sent: Sent, *, is_fork: bool, watcher: Watcher) -> None:
        """Stream an answer piece by piece, and wait until the watcher knows that it is whole."""
        pieces = list(_pieces(sent.text))
        cut, self._cut = self._cut, None
        async with self._worker.produce(
            conversation, parent=sent.parent, message=sent.id, model=sent.model, fork=is_fork
        ) as producer:
            begun_at = asyncio.get_running_loop().time()
            for number, piece in enumerate(pieces):
                if cut is not None and number == len(pieces) // 2:
                    (self._device if cut == "watcher" else self._worker).connection.cut()
                await producer.text(piece)
                if number == 0:
                    await watcher.until_begun(sent.id, self._begun_s)
                await asyncio.sleep(_PIECE_EVERY_S)
        self._tally.pieces += len(pieces)
        await watcher.until_settled([sent.id], _SETTLED_S)
        seen = watcher.seen.get(sent.id)
        if seen is not None and seen.first_at is not None:
            self._tally.first_delta_s.append(seen.first_at - begun_at)

    async def _read_back(self, conversation: str) -> list[str]:
        """What differs in the history: on the path to the leaf, and on all branches."""
        path = await self._user.history(conversation)
        tree = await self._user.history(conversation, leaf="all")
        self._tally.messages += len(tree)
        return [
            *compare_messages("path", [sent for sent in self._sent if not sent.branch], path),
            *compare_messages("all branches", self._sent, tree),
        ]


def _pieces(text: str) -> Iterator[str]:
    start = 0
    for length in itertools.cycle(_PIECE_CHARS):
        if start >= len(text):
            return
        yield text[start : start + length]
        start += length
