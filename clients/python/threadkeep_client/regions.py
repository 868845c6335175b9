"""The regions of a deployment beside the client's own: a connection to each that is needed, for as long as it is.

A conversation may stream in a region, or be written there, while a client is connected to another one. Replies and
events then name the `endpoint` to go to. Whoever follows or writes there shares one connection with all others of the
same client; the last to leave closes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from threadkeep_client.connection import Connection
from threadkeep_client.errors import ConnectionFailedError

_PROTECTED = "wss"


class Regions:
    """Gives connections by their endpoints, never more than one for each.

    Args:
        home: the client's own; its endpoint leads to it, and its token goes to the others.
    """

    def __init__(self, home: Connection) -> None:
        self.home = home
        self._places: dict[str, _Place] = {}

    @asynccontextmanager
    async def connected(self, endpoint: str) -> AsyncIterator[Connection]:
        """A connection to that region, for the length of the block.

        Raises:
            ConnectionFailedError: Nobody answers there, or the endpoint would carry the token in the clear where the
                own connection does not.
            TokenRefusedError: The token was refused there.
        """
        if endpoint == self.home.url:
            yield self.home
            return
        if urlsplit(self.home.url).scheme == _PROTECTED and urlsplit(endpoint).scheme != _PROTECTED:
            raise ConnectionFailedError("the region's endpoint has no TLS, so it is not given the token")
        place = self._places.setdefault(endpoint, _Place(self.home.to(endpoint)))
        place.users += 1
        try:
            yield await place.open()
        finally:
            place.users -= 1
            await place.close_unused()
            if not place.users and self._places.get(endpoint) is place:
                del self._places[endpoint]


class _Place:
    """One region, and those who need it."""

    def __init__(self, connection: Connection) -> None:
        self.users = 0
        self._connection = connection
        self._is_open = False
        self._lock = (
            asyncio.Lock()
        )  # who comes while it is opened or closed waits for that, and does not connect beside

    async def open(self) -> Connection:
        """Connect, unless another user has."""
        async with self._lock:
            if self._is_open and self._connection.has_ended:
                await self._close()
            if not self._is_open:
                await self._connection.open()
                self._is_open = True
            return self._connection

    async def close_unused(self) -> None:
        """Close, unless another user is there."""
        async with self._lock:
            if not self.users and self._is_open:
                await self._close()

    async def _close(self) -> None:
        self._is_open = False
        ended, self._connection = self._connection, self._connection.to(self._connection.url)
        await ended.close()
