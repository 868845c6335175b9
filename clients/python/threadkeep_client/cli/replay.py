"""`threadkeep replay`: send a file of conversations through a deployment, watch, read back, compare.

Three connections: one sends the users' messages and reads, one produces the answers, one watches. Of several answers
to one question the main one is sent last: it is then the newest, so the conversation's present leaf, and goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from threadkeep_client.cli.chats import Chat, Turn, read_chats
from threadkeep_client.cli.comparing import Sent, compare_messages
from threadkeep_client.cli.report import Report
from threadkeep_client.cli.target import Target
from threadkeep_client.cli.watching import Watcher
from threadkeep_client.client import Client
from threadkeep_client.ids import new_id
from threadkeep_client.writing import ProducerSettings

_PIECE_CHARS: Final = 100
_PIECES_MAX: Final = 8
"""Pieces of an answer, an append each: small ones, and not so many that a long file takes all day."""
_SETTLE_S: Final = 30.0
_OUTAGE_S: Final = 30.0
_FAREWELL_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySettings:
    """What was asked for."""

    check: bool
    as_json: bool
    limit: int | None
    concurrency: int


async def replay(target: Target, path: Path, settings: ReplaySettings) -> int:
    """Replay a file; returns the exit code.

    Raises:
        CommandError: The file cannot be read, or a line of it is malformed.
        ThreadkeepError: The deployment cannot be reached, or refuses.
    """
    chats = read_chats(path, settings.limit)
    report = Report(checked=settings.check)
    clock = asyncio.get_running_loop().time
    begin = clock()
    async with (
        target.client("chat", report.observe) as chat,
        target.client("produce", report.observe) as worker,
        target.client("chat") as watcher,
    ):
        one = Replay(chat, worker, watcher, report, check=settings.check)
        with _progress(sum(len(chat.turns) for chat in chats)) as advance:
            await _each(chats, lambda chat: one.run(chat, advance), settings.concurrency)
    report.seconds = clock() - begin
    report.print_differences(Console(stderr=True, soft_wrap=True))
    if settings.as_json:
        print(report.to_json())
    else:
        report.print(Console())
    return 1 if report.differences else 0


class Replay:
    """Sends conversations over three connections and compares, into one report."""

    def __init__(self, chat: Client, worker: Client, watcher: Client, report: Report, *, check: bool) -> None:
        self._chat = chat
        self._worker = worker
        self._watcher = watcher
        self._report = report
        self._check = check

    async def run(self, chat: Chat, advance: Callable[[], None]) -> None:
        """Send one conversation, with its branches, and compare."""
        conversation = new_id()
        await self._chat.create_conversation(conversation, title=chat.title)
        sent: list[Sent] = []
        async with self._watching(conversation) as watcher:
            for turn in chat.turns:
                sent.extend(await self._send(conversation, turn, _leaf(sent), watcher))
                advance()
            if watcher is not None:
                await watcher.until_settled([message.id for message in sent], _SETTLE_S)
        self._report.conversations += 1
        self._report.messages += sum(not message.branch for message in sent)
        self._report.branches += sum(message.branch for message in sent)
        if watcher is not None:
            found = [*watcher.compare(sent), *await self._read_back(conversation, chat, sent)]
            self._report.differences.extend(f"line {chat.line}: {difference}" for difference in found)

    @contextlib.asynccontextmanager
    async def _watching(self, conversation: str) -> AsyncIterator[Watcher | None]:
        if not self._check:
            yield None
            return
        async with self._watcher.watch(conversation) as viewer, asyncio.TaskGroup() as tasks:
            watcher = Watcher(viewer)
            watching = tasks.create_task(watcher.run())
            yield watcher
            watching.cancel()

    async def _send(self, conversation: str, turn: Turn, parent: str | None, watcher: Watcher | None) -> list[Sent]:
        if turn.role == "user":
            message = await self._chat.create_message(conversation, turn.text, parent=parent)
            return [Sent(message["id"], parent, "user", turn.text, None)]
        answers = [(text, None) for text in turn.alternates] + [(turn.text, turn.model)]
        sent = []
        for number, (text, model) in enumerate(answers, start=1):
            answer = await self._answer(conversation, text, model, parent, fork=number > 1, watcher=watcher)
            sent.append(Sent(answer, parent, "assistant", text, model, branch=number < len(answers)))
        return sent

    async def _answer(
        self,
        conversation: str,
        text: str,
        model: str | None,
        parent: str | None,
        *,
        fork: bool,
        watcher: Watcher | None,
    ) -> str:
        """Stream an answer in small pieces; returns its id."""
        answer = self._worker.produce(
            conversation,
            parent=parent,
            model=model,
            fork=fork,
            settings=ProducerSettings(outage_s=_OUTAGE_S, farewell_s=_FAREWELL_S),
        )
        async with answer:
            begin = asyncio.get_running_loop().time()
            step = max(_PIECE_CHARS, -(-len(text) // _PIECES_MAX))
            for start in range(0, len(text), step):
                await answer.text(text[start : start + step])
                await answer.flush()
        if watcher is not None:
            await watcher.until_settled([answer.id], _SETTLE_S)
            first_at = watcher.seen[answer.id].first_at if answer.id in watcher.seen else None
            if first_at is not None:
                self._report.first_delta_s.append(first_at - begin)
        return answer.id

    async def _read_back(self, conversation: str, chat: Chat, sent: list[Sent]) -> list[str]:
        """Read the path to the leaf, every branch, and the title; returns what differs."""
        path = await self._chat.history(conversation)
        every = await self._chat.history(conversation, leaf="all")
        head = await self._chat.get_conversation(conversation)
        differences = [
            *compare_messages("path", [message for message in sent if not message.branch], path),
            *compare_messages("all", sent, every),
        ]
        if head.get("title", "") != chat.title:
            differences.append("the title is another")
        return differences


def _leaf(sent: list[Sent]) -> str | None:
    return sent[-1].id if sent else None


async def _each(chats: list[Chat], run: Callable[[Chat], Awaitable[None]], concurrency: int) -> None:
    """Run all, so many at once; the first that fails ends the others."""
    waiting = iter(chats)

    async def work() -> None:
        for chat in waiting:
            await run(chat)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(min(concurrency, len(chats))):
            tasks.create_task(work())


@contextlib.contextmanager
def _progress(total: int) -> Iterator[Callable[[], None]]:
    console = Console(stderr=True)
    columns = (TextColumn("messages"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("messages", total=total)
        yield lambda: progress.advance(task)
