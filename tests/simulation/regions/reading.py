"""Readers in a region: what they are given of a path has no gap of which nothing was said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tests.simulation.network import Frame
from tests.simulation.reading import PAGE_SIZES
from tests.simulation.regions.clients import Client

PAUSE_MS_MAX: Final = 3_000


class RegionalReader:
    """A device that reads the present path now and then. ``check`` is told each, newest first, and what follows it.

    Attributes:
        incomplete: how often a page said that something is still under way.
        paths: how many were read to their end.
    """

    def __init__(self, client: Client, conversation: str, check: Callable[[list[Frame], str | None], None]) -> None:
        self.client = client
        self.conversation = conversation
        self.incomplete = self.paths = 0
        self._check = check

    def go(self, until: Callable[[], bool]) -> None:
        """Read until it is so."""
        scheduler = self.client.network.scheduler
        while not until():
            self.read()
            scheduler.pause(scheduler.random.randint(1, PAUSE_MS_MAX))

    def read(self) -> list[Frame] | None:
        """The present path, newest first, in pages; None where the reading broke off."""
        random = self.client.network.scheduler.random
        is_context, size = random.random() < 0.5, random.choice(PAGE_SIZES)
        action = "context.read" if is_context else "message.list"
        bound = {"max_messages" if is_context else "limit": size}
        path: list[Frame] = []
        place: dict[str, Any] = {}
        while True:
            reply = self.client.call(action, conversation=self.conversation, times=3, **bound, **place)
            if reply is None or "code" in reply:
                return None
            path += reversed(reply["messages"]) if is_context else reply["messages"]
            cursor = reply["cursor"]
            if cursor is None or reply.get("incomplete"):
                break
            place = {"cursor": cursor}
        self.incomplete += cursor is not None
        self.paths += cursor is None
        self._check(path, cursor)
        return path if cursor is None else None
