"""Who takes what a connection brings unasked: events of conversations, and the news that it was made again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Protocol

from threadkeep_client.wire import Frame


class Listener(Protocol):
    """Takes the events of one conversation, in the order in which they came; must not wait."""

    def receive(self, frame: Frame) -> None:
        """An event."""
        ...


class Listeners:
    """The part of `Connection` that hands on what nobody asked for; nothing is queued here."""

    def __init__(self) -> None:
        self._listeners: dict[str, list[Listener]] = {}
        self._on_reopen: set[Callable[[], None]] = set()

    @contextlib.contextmanager
    def listening(self, conversation: str, listener: Listener) -> Iterator[None]:
        """Hand the conversation's events to a listener. Asks for none: that is what a subscription does."""
        self._listeners.setdefault(conversation, []).append(listener)
        try:
            yield
        finally:
            self._listeners[conversation].remove(listener)
            if not self._listeners[conversation]:
                del self._listeners[conversation]

    def is_listened(self, conversation: str) -> bool:
        """Whether anybody takes the conversation's events."""
        return conversation in self._listeners

    @contextlib.contextmanager
    def on_reopen(self, notify: Callable[[], None]) -> Iterator[None]:
        """Call `notify` after every reconnect: leases are gone with the old socket."""
        self._on_reopen.add(notify)
        try:
            yield
        finally:
            self._on_reopen.discard(notify)

    def _hand_on(self, event: Frame) -> None:
        for listener in tuple(self._listeners.get(conversation_of(event), ())):
            listener.receive(event)

    def _tell_reopened(self) -> None:
        for notify in tuple(self._on_reopen):
            notify()


def conversation_of(frame: Frame) -> str:
    """The id of the conversation that an event is of; empty where it names none."""
    conversation = frame.get("conversation")
    if isinstance(conversation, dict):
        conversation = conversation.get("id")
    return conversation if isinstance(conversation, str) else ""
