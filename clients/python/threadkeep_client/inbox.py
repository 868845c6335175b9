"""A bounded queue between the socket's reader, which never waits, and one consumer."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Inbox(Generic[T]):
    """At most `items_max` items; when one more comes, all are dropped and the consumer is told.

    Dropping is safe where everything can be read again: a consumer that was told resumes.
    """

    def __init__(self, items_max: int) -> None:
        self._items_max = items_max
        self._items: deque[T] = deque()
        self._filled = asyncio.Event()
        self._overflown = False

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: T) -> None:
        """Add an item, or drop all."""
        if len(self._items) >= self._items_max:
            self._items.clear()
            self._overflown = True
        self._items.append(item)
        self._filled.set()

    def overflown(self) -> bool:
        """Whether items were dropped since this was last asked."""
        overflown, self._overflown = self._overflown, False
        return overflown

    async def get(self, until: float | None) -> T | None:
        """The next item, or None when the event loop's clock reaches `until`."""
        try:
            async with asyncio.timeout_at(until):
                while not self._items:
                    self._filled.clear()
                    await self._filled.wait()
        except TimeoutError:
            return None
        return self._items.popleft()
