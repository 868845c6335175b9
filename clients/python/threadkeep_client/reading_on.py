"""Reading answers on from where they are held, in the region that streams them (protocol, section 4).

Pages of the viewer's own region are waited for; those of other regions come into its inbox, since a region may be away.
"""

from __future__ import annotations

import asyncio
import random
from typing import Final

from threadkeep_client import following
from threadkeep_client.answer import Answer
from threadkeep_client.connection import Connection
from threadkeep_client.errors import ConflictError, NotFoundError, WireError
from threadkeep_client.following import Elsewhere
from threadkeep_client.held import Held
from threadkeep_client.reading import Page, read_page, read_parts
from threadkeep_client.updates import ViewerSettings
from threadkeep_client.wire import Frame

_RANDOM: Final = random.SystemRandom()


class ReadingOn:
    """Brings the answers of a viewer up to date.

    Args:
        connection: to the viewer's own region.
        conversation: its id.
        held: the answers.
        elsewhere: the other regions.
        settings: of the viewer.
    """

    def __init__(
        self, connection: Connection, conversation: str, held: Held, elsewhere: Elsewhere, settings: ViewerSettings
    ) -> None:
        self._connection = connection
        self._conversation = conversation
        self._held = held
        self._elsewhere = elsewhere
        self._settings = settings

    def due(self, answer: Answer) -> float:
        """When it is to be read on, by the event loop's clock: as was ordered, else after a silence."""
        return answer.heard_at + self._settings.silent_s if answer.due is None else answer.due

    # --- where an answer is streamed -------------------------------------------------------------------------------

    def streamed_at(self, told: Frame, origin: str | None) -> str | None:
        """The endpoint that a frame names for a stream; where it names none, that is where the frame came from."""
        endpoint: str | None = told.get("endpoint")
        if endpoint is None:
            return origin
        return None if endpoint == self._connection.url else endpoint

    def send_to(self, answer: Answer, endpoint: str | None) -> None:
        """It is said to be there: where that is new, it is read there as soon as that region is reached."""
        if answer.endpoint != endpoint:
            answer.endpoint, answer.due = endpoint, None
            answer.heard_at = self._now()
            self._elsewhere.follow(held.endpoint for held in self._held.answers.values())
            self._elsewhere.ask(answer)

    def look_at_home(self, answer: Answer) -> None:
        """It is no longer streamed elsewhere: it has settled, or lives on here. If nobody tells, ask before long."""
        answer.endpoint = None
        self._retry(answer)

    def answered(self, answer: Answer, told: Frame) -> None:
        """What came of a page that was asked for in another region."""
        if told["type"] == following.UNREAD:
            if told["missing"]:
                self.look_at_home(answer)
            else:
                self._retry(answer)
            return
        page: Page = told["page"]
        if page.is_settled or page.message is not None:
            self.look_at_home(answer)
        elif told["asked"] != (answer.epoch, answer.offset):  # deltas came meanwhile
            if (page.epoch, page.following) > (answer.epoch, answer.offset):
                answer.due = self._now()
        else:
            answer.missing_since = None
            self._take(answer, page)

    # --- resuming --------------------------------------------------------------------------------------------------

    async def resume(self, answer: Answer) -> None:
        """Read one page from the answer's place; if there are more, or it failed, the answer is due again."""
        answer.due = None
        answer.heard_at = self._now()
        if answer.endpoint is not None:
            self._elsewhere.ask(answer)
            return
        head = self._held.heads.get(answer.id)
        try:
            if head is not None:
                parts = await read_parts(self._connection, self._conversation, head["id"])
                self._held.settle(head | {"parts": parts})
            else:
                await self._read_on(answer)
        except NotFoundError:
            answer.missing_since = answer.missing_since or self._now()
            if self._now() - answer.missing_since >= self._settings.missing_s:
                self._held.lose(answer)
            self._retry(answer)
        except ConflictError as error:
            if error.reason != "elsewhere":
                raise
            answer.missing_since = None
            self._retry(answer)
            self.send_to(answer, self.streamed_at(dict(error.detail), None))
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
            self._conversation,
            answer.id,
            epoch=answer.epoch,
            offset=answer.offset,
            deadline_s=self._settings.resume_s,
        )
        if page.message is not None and "parts" in page.message:
            self._held.settle(page.message)
        elif self._take(answer, page) and page.message is not None and not page.more:
            self._held.settle(page.message | {"parts": answer.parts})

    def _take(self, answer: Answer, page: Page) -> bool:
        """Take a page; whether it was the one that was asked for, and no older than what is held."""
        is_fresh = page.epoch >= answer.epoch
        if not self._held.take_page(answer, page):
            self._retry(answer)  # not the page that was asked for; from the start, then
            return False
        if page.more and is_fresh:
            # A page that brings nothing must not be asked for in a tight loop.
            answer.due = self._now() if page.following > page.at else self._now() + self._settings.retry_s
        return is_fresh

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
