"""Readers: a page that is loaded anew reads the conversation's present path, and finds it whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tests.simulation.network import Device, Frame

PAUSE_MS_MAX: Final = 30_000
PAGE_SIZES: Final = (1, 2, 20)


class Reader:
    """A device that reads the path now and then, by one action or the other.

    Args:
        check: is told each whole path, newest first, and what had been acknowledged before it was asked for.
        acknowledged: ids of the messages of which somebody has been told that they are stored.
    """

    def __init__(
        self,
        device: Device,
        conversation: str,
        *,
        check: Callable[[list[Frame], set[str]], None],
        acknowledged: Callable[[], set[str]],
    ) -> None:
        self.device = device
        self.conversation = conversation
        self._check = check
        self._acknowledged = acknowledged

    def go(self, until: Callable[[], bool]) -> None:
        """Read until it is so."""
        scheduler = self.device.network.scheduler
        while not until():
            self.read()
            scheduler.pause(scheduler.random.randint(1, PAUSE_MS_MAX))

    def read(self) -> list[Frame] | None:
        """The present path, newest first, in pages; None where the reading broke off."""
        random = self.device.network.scheduler.random
        known = self._acknowledged()
        is_context, size = random.random() < 0.5, random.choice(PAGE_SIZES)
        path: list[Frame] = []
        place: dict[str, Any] = {}
        while True:
            reply = (
                self._ask("context.read", max_messages=size, **place)
                if is_context
                else self._ask("message.list", limit=size, **place)
            )
            if reply is None or "code" in reply:
                return None
            path += reversed(reply["messages"]) if is_context else reply["messages"]
            if reply["cursor"] is None:
                break
            place = {"cursor": reply["cursor"]}
        self._check(path, known)
        return path

    def _ask(self, action: str, **fields: Any) -> Frame | None:
        return self.device.call(action, conversation=self.conversation, times=3, **fields)
