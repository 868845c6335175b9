"""`threadkeep chat`: write messages from a terminal, ask for answers, and see them grow, whoever gives them."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from typing import Final

from threadkeep_client.cli.errors import naming_wrong_ids
from threadkeep_client.cli.opening import leaf_to_open
from threadkeep_client.cli.target import Target
from threadkeep_client.cli.terminal import printable
from threadkeep_client.client import Client
from threadkeep_client.errors import ConflictError
from threadkeep_client.ids import new_id
from threadkeep_client.updates import Update
from threadkeep_client.viewer import Viewer
from threadkeep_client.wire import Message, text_of

_ECHO_PAUSE_S: Final = 0.03
_ECHO_CHARS: Final = 8
_SOON_S: Final = 3.0
"""How long the answer that was asked for may take to begin, before it is asked whether anybody is there to give one."""
_LATE_S: Final = 30.0
"""How long it may take after that; a responder that starts from nothing takes some ten seconds."""
_NOBODY: Final = "(nobody answers here: a worker of yours has to, or `threadkeep chat --echo` does)"
_SILENCE: Final = "(no answer yet; what comes is shown. `threadkeep chat --echo` answers itself)"


async def chat(target: Target, conversation: str | None, *, echo: bool) -> int:
    """Talk until the end of input."""
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(target.client("chat"))
        worker = await stack.enter_async_context(target.client("produce")) if echo else None
        if conversation is None:
            conversation = (await client.create_conversation(title="From the terminal"))["id"]
        with naming_wrong_ids(conversation):
            viewer = await stack.enter_async_context(client.watch(conversation))
        left = await leaf_to_open(client, conversation)
        history = await client.history(conversation, leaf=left)
        print(f"conversation {conversation} (end with Ctrl-D)")
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        talk = Talk(client, worker, viewer, left=left)
        for message in history:
            talk.show_message(message)
        showing = tasks.create_task(talk.show())
        await talk.write()
        showing.cancel()
    return 0


class Talk:
    """One conversation at a terminal.

    Args:
        client: of the user.
        worker: answers with an echo, if there is one.
        viewer: of the conversation.
        left: the message to go on from, where that is not the present leaf.
    """

    def __init__(self, client: Client, worker: Client | None, viewer: Viewer, *, left: str | None = None) -> None:
        self._client = client
        self._worker = worker
        self._viewer = viewer
        self._left = left
        self._leaf: str | None = None
        self._shown: set[str] = set()
        self._live: set[str] = set()
        self._quiet = asyncio.Condition()
        self._prompted = False
        self._asks = worker is None  # until it turns out that nobody is there

    async def write(self) -> None:
        """Send every line of input, when nobody is answering."""
        lines = _lines()
        while True:
            async with self._quiet:
                await self._quiet.wait_for(lambda: not self._live)
            self._prompt()
            line = await lines.get()
            self._prompted = False
            if line is None:
                print()
                return
            if line.strip():
                await self._send(line)

    async def _send(self, text: str) -> None:
        name = new_id(after=self._leaf)
        reply = new_id(after=name) if self._asks else None
        self._shown.add(name)  # its event may come before its reply
        try:
            await self._client.create_message(
                self._viewer.conversation,
                text,
                parent=self._leaf,
                message=name,
                fork=self._left is not None and self._leaf == self._left,
                reply=reply,
            )
        except ConflictError as error:
            if error.reason != "stale_leaf":
                raise
            print("(the conversation has gone on meanwhile: read, then send again)")
            return
        self._mark(name)  # an answer may have come before this reply
        if self._worker is not None:
            await self._echo(self._worker, name, text)
        elif reply is not None:
            await self._wait_for(reply, name)

    async def _wait_for(self, reply: str, question: str) -> None:
        """Until an answer has begun, whoever gives it; where none does, say so."""
        if await self._begins(question, _SOON_S):
            return
        try:
            # The same ids: of a responder that is at it already nothing more comes of this.
            await self._client.respond(self._viewer.conversation, parent=question, reply=reply)
        except ConflictError as error:
            if error.reason != "no_responder":
                raise
            self._asks = False
            print(_NOBODY)
            return
        if not await self._begins(question, _LATE_S):
            print(_SILENCE)

    async def _begins(self, question: str, seconds: float) -> bool:
        """Whether something has come after the question within so many seconds."""
        try:
            async with asyncio.timeout(seconds), self._quiet:
                await self._quiet.wait_for(lambda: bool(self._live) or self._leaf != question)
        except TimeoutError:
            return False
        return True

    async def _echo(self, worker: Client, parent: str, text: str) -> None:
        answer = worker.produce(self._viewer.conversation, parent=parent, model="echo")
        async with answer:
            for start in range(0, len(text), _ECHO_CHARS):
                await answer.text(text[start : start + _ECHO_CHARS])
                await asyncio.sleep(_ECHO_PAUSE_S)
        async with self._quiet:
            await self._quiet.wait_for(lambda: answer.id in self._shown)

    async def show(self) -> None:
        """Print what comes."""
        async for update in self._viewer:
            async with self._quiet:
                news = update.kind in {"opened", "created", "settled", "lost"} and update.id not in self._shown
                if self._prompted and news and update.id not in self._live:
                    print()  # below the line that somebody may be typing
                self._show(update)
                if self._prompted and news and not self._live:
                    self._prompt()
                self._quiet.notify_all()

    def _prompt(self) -> None:
        print("you> ", end="", flush=True)
        self._prompted = True

    def _show(self, update: Update) -> None:
        match update.kind:
            case "opened" if update.answer is not None:
                self._live.add(update.id)
                print(f"{update.answer.role}> ", end="", flush=True)
            case "delta":
                print(printable("".join(op[2] for op in update.ops if op[0] == "text")), end="", flush=True)
            case "restarted":
                print("\n(from the start) ", end="", flush=True)
            case "settled" if update.message is not None:
                self._end(update.id, "" if update.message["status"] == "complete" else update.message["status"])
            case "created" if update.message is not None and update.id not in self._shown:
                self.show_message(update.message)
            case "lost":
                self._end(update.id, "lost")

    def show_message(self, message: Message) -> None:
        """Print a message that came whole."""
        print(f"{message['role']}> {printable(text_of(message['parts']))}")
        self._mark(message["id"])

    def _end(self, name: str, status: str) -> None:
        print(f" ({status})" if status else "", flush=True)
        self._live.discard(name)
        self._mark(name)

    def _mark(self, name: str) -> None:
        self._shown.add(name)
        self._leaf = max(name, self._leaf or name)


def _lines() -> asyncio.Queue[str | None]:
    """Lines of input as they are typed; None at the end.

    Read by a thread that nobody waits for: a read from a terminal cannot be cancelled, and must not hold up the end.
    """
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str | None] = asyncio.Queue()

    def read() -> None:
        with contextlib.suppress(RuntimeError):  # the loop has closed meanwhile: nobody asks any more
            for line in sys.stdin:
                loop.call_soon_threadsafe(lines.put_nowait, line.rstrip("\n"))
            loop.call_soon_threadsafe(lines.put_nowait, None)

    threading.Thread(target=read, daemon=True, name="threadkeep input").start()
    return lines
