"""Where an answer is written: in the producer's own region, or in another one that has its stream."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from threadkeep_client.connection import Connection
from threadkeep_client.errors import ConflictError, ConnectionFailedError, UnavailableError, WireError
from threadkeep_client.regions import Regions
from threadkeep_client.wire import Frame
from threadkeep_client.writing import ProducerSettings


class Place:
    """Sends requests of one stream to the region that has it.

    It begins at home. A region that says `elsewhere` names another, and that is gone to; one that is away is left, and
    home is asked again, where the stream may live by then, or name a region that can be reached.

    Args:
        regions: where connections come from.
        settings: how it waits.
    """

    def __init__(self, regions: Regions, *, settings: ProducerSettings) -> None:
        self._regions = regions
        self._settings = settings
        self._pauses = settings.reopen.pauses()
        self._there = AsyncExitStack()
        self.connection: Connection = regions.home

    async def request(self, action: str, *, deadline_s: float | None, **fields: Any) -> Frame:
        """Send a request until it is answered otherwise than by `elsewhere`.

        Raises:
            WireError: As `Connection.request`; `UnavailableError` also where a region that is named cannot be reached.
        """
        for _ in range(self._settings.moves_max):
            try:
                return await self.connection.request(action, deadline_s=deadline_s, **fields)
            except ConflictError as error:
                if error.reason != "elsewhere":
                    raise
                await self._move(str(error.detail.get("endpoint", "")))
            except WireError as error:
                if error.retryable and self.is_away:
                    await self.return_home()
                raise
        await asyncio.sleep(next(self._pauses))
        raise UnavailableError("the regions send a stream to and fro", reason="elsewhere", retryable=True)

    @property
    def is_away(self) -> bool:
        """Whether it is another region than the producer's own."""
        return self.connection is not self._regions.home

    async def return_home(self) -> None:
        """Leave the other region."""
        self.connection = self._regions.home
        await self._there.aclose()

    async def _move(self, endpoint: str) -> None:
        await self.return_home()
        try:
            self.connection = await self._there.enter_async_context(self._regions.connected(endpoint))
        except ConnectionFailedError as error:
            # Whoever asked asks home again at once, and is sent here again: the pause is to be made here.
            await asyncio.sleep(next(self._pauses))
            away = f"the region of the stream is away: {error}"
            raise UnavailableError(away, reason="away", retryable=True) from None
        self._pauses = self._settings.reopen.pauses()
