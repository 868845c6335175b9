"""Watching: exact text and parts of a conversation's answers while they are written (protocol, section 4).

A viewer is an async iterator and does its work while it is iterated: frames wait in a bounded inbox, and a consumer
too slow for it loses nothing but the small steps, since the viewer then resumes. Each step takes one frame and asks
for at most one page an answer, so that a long answer holds up no other.

Answers that another region streams are followed there, over a second connection; messages that have settled come from
the viewer's own region alone, so that what was told can be read there. A region that cannot be reached costs the
growing of its answers, and nothing else.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple, Self

from threadkeep_client import following
from threadkeep_client.answer import Answer, Verdict
from threadkeep_client.catching_up import CatchingUp
from threadkeep_client.connection import Connection
from threadkeep_client.errors import ThreadkeepError
from threadkeep_client.following import Elsewhere
from threadkeep_client.held import Held
from threadkeep_client.inbox import Inbox
from threadkeep_client.reading_on import ReadingOn
from threadkeep_client.regions import Regions
from threadkeep_client.subscription import Subscription
from threadkeep_client.updates import Update, ViewerSettings
from threadkeep_client.wire import Frame, Message


class _Heard(NamedTuple):
    """A frame, and the endpoint of the region that it came from; None is the viewer's own."""

    frame: Frame
    origin: str | None


class Viewer:
    """Watches a conversation, or one stream of it until it settles. One task iterates it.

    Args:
        connection: with scope `chat`.
        conversation: its id.
        stream: watch this answer alone, opened or not yet, live or settled; then the iteration ends with it.
        since: newest message that is known already: what came after it on the path to the present leaf is told first.
        settings: how it waits.
        regions: where connections to other regions come from; absent, the viewer has its own.

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
        regions: Regions | None = None,
    ) -> None:
        self.conversation = conversation
        self._connection = connection
        self._stream = stream
        self._settings = settings or ViewerSettings()
        self._inbox: Inbox[_Heard] = Inbox(self._settings.frames_max)
        self._subscription = Subscription(connection, conversation, self)
        self._elsewhere = Elsewhere(regions or Regions(connection), conversation, self._hear, self._settings)
        self._held = Held(stream=stream, ended_max=self._settings.ended_max, now=self._now)
        self.answers = self._held.answers
        self._path = CatchingUp(connection, conversation, self._held, since)
        self._reading = ReadingOn(connection, conversation, self._held, self._elsewhere, self._settings)
        self._error: ThreadkeepError | None = None

    async def __aenter__(self) -> Self:
        """Subscribe.

        Raises:
            WireError: It was refused.
        """
        if self._stream is not None:
            self._held.follow(self._stream).due = self._now()
        await self._subscription.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._elsewhere.leave()
        await self._subscription.__aexit__()

    # --- the subscriber's side: called by the socket's reader ------------------------------------------------------

    def receive(self, frame: Frame) -> None:
        """Take a frame into the inbox."""
        if frame["type"] == "conversation.subscribe.ok":
            self._path.begin(frame)  # where watching begins must not get lost, whatever becomes of the inbox
        self._hear(frame)

    def fail(self, error: ThreadkeepError) -> None:
        """End the iteration with this error, after what is in the inbox."""
        self._error = error
        self._hear({"type": "viewer.failed"})

    def _hear(self, frame: Frame, origin: str | None = None) -> None:
        self._inbox.put(_Heard(frame, origin))

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
        while not self._held.told:
            if self._stream is not None and self._stream not in self.answers:
                raise StopAsyncIteration
            if self._error is not None and not self._inbox:
                raise self._error
            await self._step()
        return self._held.told.popleft()

    async def _step(self) -> None:
        heard = await self._inbox.get(
            min((self._reading.due(answer) for answer in self.answers.values()), default=None)
        )
        try:
            if self._inbox.overflown():
                self._start_over()
            if heard is not None:
                await self._handle(heard)
            for answer in tuple(self.answers.values()):
                if self._reading.due(answer) <= self._now():
                    if answer.due is None:  # silence: perhaps we are no longer among the viewers
                        self._subscription.renew()
                        self._elsewhere.renew(answer)
                    await self._reading.resume(answer)
            self._elsewhere.follow(answer.endpoint for answer in self.answers.values())
        except asyncio.CancelledError:
            self._start_over()  # the frame is half handled
            raise

    def _start_over(self) -> None:
        """Something was missed, nobody knows what: ask for everything."""
        for answer in self.answers.values():
            answer.due = self._now()
        self._subscription.renew()

    async def _handle(self, heard: _Heard) -> None:
        frame, origin = heard
        match frame["type"]:
            case "stream.opened" if self._held.watches(frame["stream"]):
                await self._opened(frame, origin)
            case "stream.delta" if self._held.watches(frame["stream"]):
                await self._delta(frame, origin)
            case "stream.lag" if self._held.watches(frame["stream"]):
                await self._reading.resume(_found(self._held.follow(frame["stream"]), origin))
            case "message.created" if self._held.watches(frame["message"]["id"]):
                await self._created(frame["message"], origin)
            case "conversation.subscribe.ok":
                await self._subscribed(frame, origin)
            case "conversation.updated":
                self._held.told.append(Update(kind="updated", id=self.conversation))
            case "conversation.deleted":
                self._held.told.append(Update(kind="deleted", id=self.conversation))
            case following.PAGE | following.UNREAD if frame["stream"] in self.answers:
                self._reading.answered(self.answers[frame["stream"]], frame)
            case _:  # a type that this version does not know, or an answer that is not watched
                pass

    # --- frames ----------------------------------------------------------------------------------------------------

    def _expect(self, parent: str | None) -> None:
        """What stands under a message that was never seen shows that its frame was lost: look for it at once."""
        if self._stream is None and self._path.misses(parent):
            self._subscription.renew()

    async def _opened(self, frame: Frame, origin: str | None) -> None:
        streamed_at = self._reading.streamed_at(frame, origin)
        if origin is not None and streamed_at != origin:
            return  # of a third region, or of our own: that is told at home
        if origin is None:
            self._expect(frame.get("parent"))
        answer = self._held.follow(frame["stream"], parent=frame.get("parent"), role=frame.get("role"))
        if frame["epoch"] < answer.epoch:
            return
        _found(answer, streamed_at)
        if answer.epoch == 0:
            answer.restart(frame["epoch"])
            answer.due = answer.missing_since = None
        elif frame["epoch"] > answer.epoch:
            await self._reading.resume(answer)

    async def _delta(self, frame: Frame, origin: str | None) -> None:
        answer = self._held.follow(frame["stream"])
        epoch, at = frame["epoch"], frame["at"]
        if epoch >= answer.epoch:
            _found(answer, origin)
            answer.heard_at = self._now()
        verdict = answer.judge(epoch, at)
        if verdict is Verdict.RESUME:
            await self._reading.resume(answer)  # what it answers holds this frame too
        elif verdict is Verdict.APPLY:
            answer.due = answer.missing_since = None
            self._held.grow(answer, frame["ops"], epoch=epoch, following=frame["next"])

    async def _created(self, message: Message, origin: str | None) -> None:
        if origin is not None:
            if message["id"] in self.answers:
                self._reading.look_at_home(self.answers[message["id"]])
            return
        self._expect(message["parent"])
        if "parts" in message:
            self._held.settle(message)
            return
        self._held.heads[message["id"]] = message
        answer = self._held.follow(message["id"], parent=message["parent"], role=message["role"])
        await self._reading.resume(_found(answer, None))

    async def _subscribed(self, frame: Frame, origin: str | None) -> None:
        """Compare what is told to live with what is held; look for what was settled while we were away."""
        live = {told["stream"]: told for told in frame.get("live") or ()}
        for stream, told in live.items():
            if self._held.watches(stream):
                self._compare(told, origin)
        for answer in tuple(self.answers.values()):
            if answer.id not in live:
                self._not_live(answer, origin)
        if self._stream is None and origin is None and not await self._path.read(frame):
            self._subscription.renew()

    def _compare(self, told: Frame, origin: str | None) -> None:
        streamed_at = self._reading.streamed_at(told, origin)
        if origin is not None and streamed_at != origin:
            return
        answer = self._held.follow(told["stream"], parent=told.get("parent"), role=told.get("role"))
        if streamed_at != origin:
            self._reading.send_to(answer, streamed_at)
        elif answer.epoch == 0 and told["offset"] == 0:
            _found(answer, origin).restart(told["epoch"])
            answer.due = None
        elif (answer.epoch, answer.offset) < (told["epoch"], told["offset"]):
            _found(answer, origin).due = self._now()

    def _not_live(self, answer: Answer, origin: str | None) -> None:
        if origin is None:
            answer.due = self._now() if answer.due is None else answer.due
            _found(answer, None)
        elif answer.endpoint == origin:
            self._reading.look_at_home(answer)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def _found(answer: Answer, endpoint: str | None) -> Answer:
    """It is heard of there."""
    answer.endpoint = endpoint
    return answer
