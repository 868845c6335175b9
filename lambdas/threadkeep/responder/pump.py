"""Reads a model in a thread of its own: while it is silent, its producer beats, hears of a stop, or gives up."""

from __future__ import annotations

import queue
import threading
from typing import Final, Protocol

from threadkeep.responder.answers import AnswerStream, Cut, Event

_EVENTS_MAX: Final = 1_000
"""So many events wait for the producer at most; then the model waits."""
_FAREWELL_S: Final = 1.0


class Source(Protocol):
    """Where a model's events come from, with a bound on the wait."""

    def take(self, wait_s: float) -> Event | None:
        """The next event; None if there is none within so long. After the end: `Cut`."""
        ...

    def stop(self) -> None:
        """Nobody wants the rest."""
        ...


class Pump:
    """`Source` on an answer under way; begins it."""

    def __init__(self, stream: AnswerStream) -> None:
        self._stream = stream
        self._events: queue.Queue[Event | BaseException] = queue.Queue(_EVENTS_MAX)
        self._is_stopped = False
        self._thread = threading.Thread(target=self._read, name="threadkeep model", daemon=True)
        self._thread.start()

    def take(self, wait_s: float) -> Event | None:
        """See `Source`. What the model's adapter raised, which is a fault of ours, is raised here."""
        try:
            event = self._events.get(timeout=wait_s) if wait_s > 0 else self._events.get_nowait()
        except queue.Empty:
            return None
        if isinstance(event, BaseException):
            raise event
        return event

    def stop(self) -> None:
        """See `Source`. Waits a moment for the model's connection to be closed, since a sandbox freezes afterwards."""
        self._is_stopped = True
        self._stream.cancel()
        while self._thread.is_alive():
            try:  # the thread may wait for room
                self._events.get_nowait()
            except queue.Empty:
                break
        self._thread.join(_FAREWELL_S)

    def _read(self) -> None:
        try:
            for event in self._stream:
                if self._is_stopped:
                    return
                self._events.put(event)
        except BaseException as fault:  # noqa: BLE001 -- raised again where the events are taken
            self._events.put(fault)
        else:
            self._events.put(Cut())
