"""One recorded conversation through a deployment: asked, streamed while someone watches, read back, compared."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Literal

from local.chats import Chat
from threadkeep_client.client import Client
from threadkeep_client.ids import new_id
from threadkeep_client.producer import Producer
from threadkeep_client.updates import Update
from threadkeep_client.viewer import Viewer
from threadkeep_client.wire import Message, text_of

Cut = Literal["watcher", "producer"]
_PIECE_CHARS: Final = (3, 5, 2, 7, 4)
"""About what tokens are, in code points."""
_PIECE_EVERY_S: Final = 0.002
_SETTLED_S: Final = 30.0


@dataclass(kw_only=True)
class Tally:
    """What was done and found, over all conversations."""

    conversations: int = 0
    messages: int = 0
    pieces: int = 0
    frames: int = 0
    reconnects: int = 0
    first_delta_s: list[float] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Written:
    """A message as it was sent."""

    parent: str | None
    role: str
    text: str


class Dialogue:
    """Plays one conversation, each of three parties over a connection of its own.

    The user asks and reads back; a worker writes the answers in small pieces; a second device of the user watches.

    Args:
        chat: what is said.
        connect: makes a client with these scopes.
        tally: is added to.
        cut: whose socket is cut in the middle of the first answer, and resumed.
        advance: told of every message that is settled.
    """

    def __init__(
        self,
        chat: Chat,
        *,
        connect: Callable[[str], Client],
        tally: Tally,
        cut: Cut | None = None,
        advance: Callable[[], None] = lambda: None,
    ) -> None:
        self._chat = chat
        self._user, self._watcher = connect("chat"), connect("chat")
        self._worker = connect("produce")
        self._tally = tally
        self._cut = cut
        self._advance = advance
        self._written: dict[str, Written] = {}
        self._answers: dict[str, _Watched] = {}

    @property
    def clients(self) -> tuple[Client, ...]:
        """Its connections' clients."""
        return self._user, self._watcher, self._worker

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
            async with self._watching(conversation):
                main_line = await self._send(conversation)
            await self._compare(conversation, main_line)
        self._tally.conversations += 1

    def _count_reconnect(self) -> None:
        self._tally.reconnects += 1

    # --- sending ---------------------------------------------------------------------------------------------------

    async def _send(self, conversation: str) -> list[str]:
        """Send every turn; returns the ids of the main line, which goes on from each first answer."""
        main_line: list[str] = []
        leaf: str | None = None
        for turn in self._chat.messages:
            parent = main_line[-1] if main_line else None
            is_fork = parent != leaf  # there were alternates: the main line goes on beside them
            message = new_id(after=leaf)
            main_line.append(message)
            self._written[message] = Written(parent=parent, role=turn.role, text=turn.text)
            if turn.role == "user":
                await self._user.create_message(conversation, turn.text, parent=parent, message=message, fork=is_fork)
            else:
                await self._answer(conversation, message, model=turn.model, is_fork=is_fork)
            leaf = message
            self._advance()
            for alternate in turn.alternates:
                leaf = new_id(after=leaf)
                self._written[leaf] = Written(parent=parent, role=turn.role, text=alternate.text)
                await self._answer(conversation, leaf, model=None, is_fork=True)
                self._advance()
        return main_line

    async def _answer(self, conversation: str, message: str, *, model: str | None, is_fork: bool) -> None:
        written = self._written[message]
        watched = self._answers[message] = _Watched(written.text)
        pieces = list(_pieces(written.text))
        cut, self._cut = self._cut, None
        producing = self._worker.produce(
            conversation, parent=written.parent, message=message, model=model, fork=is_fork
        )
        async with producing as producer:
            for number, piece in enumerate(pieces):
                if number == len(pieces) // 2:
                    self._cut_socket(cut)
                watched.begun_at = watched.begun_at or _now()
                await producer.text(piece)
                await asyncio.sleep(_PIECE_EVERY_S)
        self._tally.pieces += len(pieces)
        self._check_outcome(producer)
        try:
            async with asyncio.timeout(_SETTLED_S):
                await watched.settled.wait()
        except TimeoutError:
            self._differ(message, f"the watcher was not told of its end within {_SETTLED_S:.0f} s")
        if watched.first_delta_s is not None:
            self._tally.first_delta_s.append(watched.first_delta_s)
        self._tally.frames += watched.frames

    def _cut_socket(self, cut: Cut | None) -> None:
        if cut is not None:
            (self._watcher if cut == "watcher" else self._worker).connection.cut()

    def _check_outcome(self, producer: Producer) -> None:
        outcome = producer.outcome
        if outcome is None or outcome.kind != "settled":
            self._differ(producer.id, f"ended as {None if outcome is None else outcome.kind}")

    # --- watching --------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _watching(self, conversation: str) -> AsyncIterator[None]:
        """Watch while the block sends; an error of either ends both."""
        async with self._watcher.watch(conversation) as viewer, asyncio.TaskGroup() as tasks:
            task = tasks.create_task(self._watch(viewer))
            yield
            task.cancel()

    async def _watch(self, viewer: Viewer) -> None:
        async for update in viewer:
            watched = self._answers.get(update.id)
            if watched is None:
                continue  # the user's own message
            for difference in watched.take(update):
                self._differ(update.id, difference)

    # --- comparing -------------------------------------------------------------------------------------------------

    async def _compare(self, conversation: str, main_line: list[str]) -> None:
        """Compare the tree and its main line as they are read back with what was sent."""
        read = {message["id"]: message for message in await self._user.history(conversation, leaf="all")}
        self._tally.messages += len(read)
        for message in read.keys() - self._written.keys():
            self._differ(message, "was never sent")
        for message, written in self._written.items():
            if message not in read:
                self._differ(message, "is missing")
            elif (difference := _difference(written, read[message])) is not None:
                self._differ(message, difference)
        path = [message["id"] for message in await self._user.history(conversation, leaf=main_line[-1])]
        if path != main_line:
            self._differ(conversation, f"the main line has {len(path)} messages, or others, for {len(main_line)}")

    def _differ(self, message: str, difference: str) -> None:
        self._tally.differences.append(f"{self._chat.title}, {message}: {difference}")


class _Watched:
    """An answer as the watcher sees it."""

    def __init__(self, expected: str) -> None:
        self.begun_at: float | None = None
        self.first_delta_s: float | None = None
        self.frames = 0
        self.settled = asyncio.Event()
        self._expected = expected

    def take(self, update: Update) -> Iterator[str]:
        """Take note of an update; yields what is wrong about it."""
        if update.kind == "delta" and update.answer is not None:
            self.frames += 1
            if self.first_delta_s is None and self.begun_at is not None:
                self.first_delta_s = _now() - self.begun_at
            if not self._expected.startswith(update.answer.text):
                yield "while it was streamed, the watcher saw what was not said"
        elif update.message is not None:
            if text_of(update.message["parts"]) != self._expected:
                yield "the watcher was told another text at its end"
            self.settled.set()
        elif update.kind == "lost":
            yield "the watcher lost it"
            self.settled.set()


def _pieces(text: str) -> Iterator[str]:
    start = 0
    for length in itertools.cycle(_PIECE_CHARS):
        if start >= len(text):
            return
        yield text[start : start + length]
        start += length


def _difference(written: Written, read: Message) -> str | None:
    """Compared code point for code point: Python's strings are such."""
    text = text_of(read["parts"])
    if text != written.text:
        same = sum(
            1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(text, written.text, strict=False))
        )
        return f"its text differs from code point {same} on"
    if (read["role"], read["parent"], read["status"]) != (written.role, written.parent, "complete"):
        return "its role, parent or status differs"
    return None


def _now() -> float:
    return asyncio.get_running_loop().time()
