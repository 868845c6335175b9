"""Watching: exact text and parts of a conversation's answers while they are written (protocol, section 4).

A viewer is an async iterator and does its work while it is iterated: frames wait in a bounded inbox, and a consumer
too slow for it loses nothing but the small steps, since the viewer then resumes. Each step takes one frame and asks
for at most one page an answer, so that a long answer holds up no other.
"""

from __future__ import annotations

import asyncio
import random
from collections import OrderedDict, deque
from typing import Final, Self, cast

from threadkeep_client.answer import Answer, Verdict
from threadkeep_client.connection import Connection
from threadkeep_client.errors import NotFoundError, ThreadkeepError, WireError
from threadkeep_client.inbox import Inbox
from threadkeep_client.reading import read_page, read_parts, read_path, with_parts
from threadkeep_client.subscription import Subscription
from threadkeep_client.updates import Update, ViewerSettings
from threadkeep_client.wire import Frame, Message, Op

_RANDOM: Final = random.SystemRandom()


class Viewer:
    """Watches a conversation, or one stream of it until it settles. One task iterates it.

    Args:
        connection: with scope `chat`.
        conversation: its id.
        stream: watch this answer alone, opened or not yet, live or settled; then the iteration ends with it.
        since: newest message that is known already: what came after it on the path to the present leaf is told first.
        settings: how it waits.

    Attributes:
        answers: what is being written now, by id.
    """

    def __init__(
        self,
        connection: Connection,
        conversation: str,
        *,
        stream: str | None = None,
        since: str | None = None,
        settings: ViewerSettings | None = None,
    ) -> None:
        self.conversation = conversation
        self.answers: dict[str, Answer] = {}
        self._connection = connection
        self._stream = stream
        self._settings = settings or ViewerSettings()
        self._inbox: Inbox[Frame] = Inbox(self._settings.frames_max)
        self._subscription = Subscription(connection, conversation, self)
        self._told: deque[Update] = deque()
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._heads: dict[str, Message] = {}  # settled messages whose parts are still to be read
        self._begun = since is not None
        self._caught_up = since  # up to this id nothing on the path was missed
        self._error: ThreadkeepError | None = None

    async def __aenter__(self) -> Self:
        """Subscribe.

        Raises:
            WireError: It was refused.
        """
        if self._stream is not None:
            self._follow(self._stream).due = self._now()
        await self._subscription.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._subscription.__aexit__()

    # --- the subscriber's side: called by the socket's reader ------------------------------------------------------

    def receive(self, frame: Frame) -> None:
        """Take a frame into the inbox."""
        if not self._begun and frame["type"] == "conversation.subscribe.ok":
            # Where watching begins must not get lost, whatever becomes of the inbox.
            self._begun, self._caught_up = True, _settled_leaf(frame)
        self._inbox.put(frame)

    def fail(self, error: ThreadkeepError) -> None:
        """End the iteration with this error, after what is in the inbox."""
        self._error = error
        self._inbox.put({"type": "viewer.failed"})

    # --- the consumer's side ---------------------------------------------------------------------------------------

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Update:
        """The next change.

        Raises:
            StopAsyncIteration: The one stream that is watched has settled, or is lost.
            ThreadkeepError: The subscription ended: the conversation was deleted, the token is refused, the
                connection closed.
        """
        while not self._told:
            if self._stream is not None and self._stream not in self.answers:
                raise StopAsyncIteration
            if self._error is not None and not self._inbox:
                raise self._error
            await self._step()
        return self._told.popleft()

    async def _step(self) -> None:
        frame = await self._inbox.get(min((self._due(answer) for answer in self.answers.values()), default=None))
        try:
            if self._inbox.overflown():
                self._start_over()
            if frame is not None:
                await self._handle(frame)
            for answer in tuple(self.answers.values()):
                if self._due(answer) <= self._now():
                    if answer.due is None:  # silence: perhaps we are no longer among the viewers
                        self._subscription.renew()
                    await self._resume(answer)
        except asyncio.CancelledError:
            self._start_over()  # the frame is half handled
            raise

    def _start_over(self) -> None:
        """Something was missed, nobody knows what: ask for everything."""
        for answer in self.answers.values():
            answer.due = self._now()
        self._subscription.renew()

    def _due(self, answer: Answer) -> float:
        return answer.heard_at + self._settings.silent_s if answer.due is None else answer.due

    async def _handle(self, frame: Frame) -> None:
        match frame["type"]:
            case "stream.opened" if self._watches(frame["stream"]):
                await self._opened(frame)
            case "stream.delta" if self._watches(frame["stream"]):
                await self._delta(frame)
            case "stream.lag" if self._watches(frame["stream"]):
                await self._resume(self._follow(frame["stream"]))
            case "message.created" if self._watches(frame["message"]["id"]):
                await self._created(frame["message"])
            case "conversation.subscribe.ok":
                await self._subscribed(frame)
            case "conversation.updated":
                self._told.append(Update(kind="updated", id=self.conversation))
            case "conversation.deleted":
                self._told.append(Update(kind="deleted", id=self.conversation))
            case _:  # a type that this version does not know, or an answer that is not watched
                pass

    def _watches(self, stream: str) -> bool:
        return stream not in self._ended and self._stream in {None, stream}

    # --- frames ----------------------------------------------------------------------------------------------------

    def _expect(self, parent: str | None) -> None:
        """What stands under a message that was never seen shows that its frame was lost: look for it at once."""
        is_known = parent is None or parent in self._ended or parent in self.answers
        if self._stream is None and not is_known and (self._caught_up is None or str(parent) > self._caught_up):
            self._subscription.renew()

    async def _opened(self, frame: Frame) -> None:
        self._expect(frame.get("parent"))
        answer = self._follow(frame["stream"], parent=frame.get("parent"), role=frame.get("role"))
        if answer.epoch == 0:
            answer.restart(frame["epoch"])
            answer.due = answer.missing_since = None
        elif frame["epoch"] > answer.epoch:
            await self._resume(answer)

    async def _delta(self, frame: Frame) -> None:
        answer = self._follow(frame["stream"])
        answer.heard_at = self._now()
        epoch, at, ops = frame["epoch"], frame["at"], tuple(frame["ops"])
        verdict = answer.judge(epoch, at)
        if verdict is Verdict.RESUME:
            await self._resume(answer)  # what it answers holds this frame too
        elif verdict is Verdict.APPLY:
            answer.take(ops, epoch=epoch, following=frame["next"])
            answer.due = answer.missing_since = None
            self._grew(answer, ops)

    async def _created(self, message: Message) -> None:
        self._expect(message["parent"])
        if "parts" in message:
            self._settle(message)
            return
        self._heads[message["id"]] = message
        await self._resume(self._follow(message["id"], parent=message["parent"], role=message["role"]))

    async def _subscribed(self, frame: Frame) -> None:
        """Compare what is told to live with what is held; look for what was settled while we were away."""
        live = {told["stream"]: told for told in frame.get("live") or ()}
        for stream, told in live.items():
            if not self._watches(stream):
                continue
            answer = self._follow(stream, parent=told.get("parent"), role=told.get("role"))
            if answer.epoch == 0 and told["offset"] == 0:
                answer.restart(told["epoch"])
                answer.due = None
            elif (answer.epoch, answer.offset) < (told["epoch"], told["offset"]):
                answer.due = self._now()
        for answer in self.answers.values():
            if answer.id not in live and answer.due is None:
                answer.due = self._now()
        if self._stream is None:
            await self._catch_up(_settled_leaf(frame))

    async def _catch_up(self, leaf: str | None) -> None:
        """Tell the messages on the path to the leaf that were missed."""
        if leaf is None or (self._caught_up is not None and leaf <= self._caught_up):
            return
        try:
            missed = [
                message async for message in read_path(self._connection, self.conversation, leaf, self._caught_up)
            ]
            for message in sorted(missed, key=lambda message: message["id"]):
                if self._watches(message["id"]):
                    self._settle(await with_parts(self._connection, message))
        except NotFoundError:
            return  # the next renewal looks again
        except WireError as error:
            if not error.retryable:
                raise
            self._subscription.renew()
            return
        self._caught_up = leaf

    # --- resuming --------------------------------------------------------------------------------------------------

    async def _resume(self, answer: Answer) -> None:
        """Read one page from the answer's place; if there are more, or it failed, the answer is due again."""
        answer.due = None
        answer.heard_at = self._now()
        head = self._heads.get(answer.id)
        try:
            if head is not None:
                parts = await read_parts(self._connection, self.conversation, head["id"])
                self._settle(head | {"parts": parts})
            else:
                await self._read_on(answer)
        except NotFoundError:
            answer.missing_since = answer.missing_since or self._now()
            if self._now() - answer.missing_since >= self._settings.missing_s:
                self._forget(answer.id)
                self._told.append(Update(kind="lost", id=answer.id, answer=answer))
            self._retry(answer)
        except WireError as error:
            if not error.retryable:
                raise
            self._retry(answer)
        else:
            answer.missing_since = None

    def _retry(self, answer: Answer) -> None:
        answer.due = self._now() + self._settings.retry_s * _RANDOM.uniform(0.5, 1.5)

    async def _read_on(self, answer: Answer) -> None:
        page = await read_page(
            self._connection,
            self.conversation,
            answer.id,
            epoch=answer.epoch,
            offset=answer.offset,
            deadline_s=self._settings.resume_s,
        )
        if page.message is not None and "parts" in page.message:
            self._settle(page.message)
            return
        if page.epoch < answer.epoch:
            return  # older than what is held: the next delta, or the silence, asks again
        if page.epoch > answer.epoch or page.at != answer.offset:
            was_empty = answer.is_empty
            answer.restart(page.epoch)
            if not was_empty:
                self._told.append(Update(kind="restarted", id=answer.id, answer=answer))
        if page.at != answer.offset:
            self._retry(answer)  # not the page that was asked for; from the start, then
            return
        answer.take(page.ops, epoch=page.epoch, following=page.following)
        self._grew(answer, tuple(page.ops))
        if page.more:
            # A page that brings nothing must not be asked for in a tight loop.
            answer.due = self._now() if page.following > page.at else self._now() + self._settings.retry_s
        elif page.message is not None:
            self._settle(page.message | {"parts": answer.parts})

    # --- what is held ------------------------------------------------------------------------------------------------

    def _follow(self, stream: str, *, parent: str | None = None, role: str | None = None) -> Answer:
        answer = self.answers.get(stream)
        if answer is None:
            answer = self.answers[stream] = Answer(stream, heard_at=self._now())
            answer.shown = stream not in self._heads
            if answer.shown:
                self._told.append(Update(kind="opened", id=stream, answer=answer))
        answer.parent = parent or answer.parent
        answer.role = role or answer.role
        return answer

    def _grew(self, answer: Answer, ops: tuple[Op, ...]) -> None:
        if ops:
            self._told.append(Update(kind="delta", id=answer.id, answer=answer, ops=ops))

    def _settle(self, message: Message) -> None:
        """The end of a stream, or a message that had none: it replaces what was assembled."""
        answer = self.answers.get(message["id"])
        whole = cast("Message", {name: value for name, value in message.items() if name != "bytes"})
        self._forget(message["id"])
        self._told.append(
            Update(
                kind="settled" if answer is not None and answer.shown else "created",
                id=message["id"],
                answer=answer,
                message=whole,
            )
        )

    def _forget(self, stream: str) -> None:
        self.answers.pop(stream, None)
        self._heads.pop(stream, None)
        self._ended[stream] = None
        while len(self._ended) > self._settings.ended_max:
            self._ended.popitem(last=False)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def _settled_leaf(frame: Frame) -> str | None:
    """The newest settled message on the path to the leaf that a reply to a subscribe tells."""
    parents = {told["stream"]: told.get("parent") for told in frame.get("live") or ()}
    leaf: str | None = frame.get("leaf")
    while leaf in parents:
        leaf = parents.pop(leaf)  # each once: parents that went round in a circle would be followed for ever
    return leaf
