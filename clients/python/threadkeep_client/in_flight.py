"""Requests that are in flight: each waits for the reply that names it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Iterator

from threadkeep_client.errors import ThreadkeepError
from threadkeep_client.wire import Frame


class InFlight:
    """Matches replies with requests by their `ref`."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[Frame]] = {}
        self._refs = (format(number, "x") for number in itertools.count(1))

    def new_ref(self) -> str:
        """A `ref` that no request of this connection had."""
        return next(self._refs)

    @contextlib.contextmanager
    def expecting(self, ref: str) -> Iterator[asyncio.Future[Frame]]:
        """The reply to that request, while it is waited for; `fail` makes it raise."""
        reply: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self._waiting[ref] = reply
        try:
            yield reply
        finally:
            self._waiting.pop(ref, None)

    def take(self, frame: Frame) -> None:
        """A reply; one that nobody waits for (any more) is dropped."""
        reply = self._waiting.get(str(frame["ref"]))
        if reply is not None and not reply.done():
            reply.set_result(frame)

    def fail(self, error: ThreadkeepError) -> None:
        """None of them will be answered."""
        for reply in self._waiting.values():
            if not reply.done():
                reply.set_exception(error)
