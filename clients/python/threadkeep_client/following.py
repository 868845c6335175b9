"""A viewer's second places: the other regions, in which some of the answers that it follows are streamed.

All of it goes on beside the viewer, which waits for none of these regions: what they say comes into its inbox.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final, NamedTuple

from threadkeep_client.answer import Answer
from threadkeep_client.connection import Connection
from threadkeep_client.errors import NotFoundError, ThreadkeepError
from threadkeep_client.reading import read_page
from threadkeep_client.regions import Regions
from threadkeep_client.subscription import Subscription
from threadkeep_client.updates import ViewerSettings
from threadkeep_client.wire import Frame

PAGE: Final = "viewer.page"
"""A page that was asked for: `stream`, `asked` (the place), `page`."""
UNREAD: Final = "viewer.unread"
"""It could not be had: `stream`, `missing` (whether that region does not know the stream)."""
_TAKEN: Final = frozenset(
    {"conversation.subscribe.ok", "stream.opened", "stream.delta", "stream.lag", "message.created"}
)

Hear = Callable[[Frame, str], None]
"""Takes a frame, and the endpoint that it came from."""


class Elsewhere:
    """The regions that one viewer follows.

    Args:
        regions: where connections come from.
        conversation: its id.
        hear: takes what they say.
        settings: of the viewer.
    """

    def __init__(self, regions: Regions, conversation: str, hear: Hear, settings: ViewerSettings) -> None:
        self._regions = regions
        self._conversation = conversation
        self._hear = hear
        self._settings = settings
        self._followed: dict[str, _Following] = {}
        self._leaving: set[asyncio.Task[None]] = set()

    def follow(self, endpoints: Iterable[str | None]) -> None:
        """Follow these regions and no others."""
        wanted = {endpoint for endpoint in endpoints if endpoint is not None}
        for endpoint in self._followed.keys() - wanted:
            leaving = asyncio.create_task(self._followed.pop(endpoint).leave())
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)
        for endpoint in wanted - self._followed.keys():
            self._followed[endpoint] = _Following(
                self._regions, endpoint, self._conversation, self._hear, self._settings
            )

    def ask(self, answer: Answer) -> None:
        """Read a page from the answer's place in the region that streams it.

        Where that region is not reached yet, nothing happens: the reply to the subscribe there will tell its place.
        """
        following = self._followed.get(answer.endpoint or "")
        if following is not None:
            following.ask(answer.id, answer.epoch, answer.offset)

    def renew(self, answer: Answer) -> None:
        """Subscribe again in the region that streams it."""
        following = self._followed.get(answer.endpoint or "")
        if following is not None:
            following.renew()

    async def leave(self) -> None:
        """Follow none any more."""
        self.follow(())
        while self._leaving:
            await asyncio.wait(self._leaving)


class _There(NamedTuple):
    connection: Connection
    subscription: Subscription


class _Following:
    """One region: reached, subscribed to, and reached again when that fails."""

    def __init__(
        self, regions: Regions, endpoint: str, conversation: str, hear: Hear, settings: ViewerSettings
    ) -> None:
        self._regions = regions
        self._endpoint = endpoint
        self._conversation = conversation
        self._hear = hear
        self._settings = settings
        self._there: _There | None = None
        self._failed = asyncio.Event()
        self._is_left = False
        self._asked: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._spawn(self._run())

    def ask(self, stream: str, epoch: int, offset: int) -> None:
        if self._there is not None and self._there.connection.is_up and stream not in self._asked:
            self._asked.add(stream)
            self._spawn(self._read(self._there.connection, stream, epoch, offset))

    def renew(self) -> None:
        if self._there is not None:
            self._there.subscription.renew()

    async def leave(self) -> None:
        self._is_left = True  # whoever is just closing something may not notice that it is cancelled
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- the subscriber's side -------------------------------------------------------------------------------------

    def receive(self, frame: Frame) -> None:
        """Take what is said of streams there; all else the viewer hears at home."""
        if frame["type"] in _TAKEN:
            self._hear(frame, self._endpoint)

    def fail(self, _error: ThreadkeepError) -> None:
        """The subscription, or the connection, has ended: begin again."""
        self._failed.set()

    # --- tasks -----------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        pauses = self._settings.reach.pauses()
        while not self._is_left:
            self._failed.clear()
            with contextlib.suppress(ThreadkeepError):
                async with (
                    self._regions.connected(self._endpoint) as connection,
                    Subscription(connection, self._conversation, self) as subscription,
                ):
                    pauses = self._settings.reach.pauses()
                    self._there = _There(connection, subscription)
                    try:
                        await self._failed.wait()
                    finally:
                        self._there = None
            if not self._is_left:
                await asyncio.sleep(next(pauses))

    async def _read(self, connection: Connection, stream: str, epoch: int, offset: int) -> None:
        told: Frame = {"type": UNREAD, "conversation": self._conversation, "stream": stream, "missing": False}
        try:
            page = await read_page(
                connection,
                self._conversation,
                stream,
                epoch=epoch,
                offset=offset,
                deadline_s=self._settings.resume_s,
            )
            told |= {"type": PAGE, "asked": (epoch, offset), "page": page}
        except NotFoundError:
            told["missing"] = True
        except ThreadkeepError:
            pass  # told as it is: unread
        self._asked.discard(stream)
        self._hear(told, self._endpoint)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="threadkeep elsewhere")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
