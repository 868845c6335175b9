"""One WebSocket connection that lasts: it reconnects, repeats what may be repeated, and keeps subscriptions alive.

Everything waits on the event loop's clock alone. Bounds: `requests_max` requests in flight, each at most a frame
(24 KiB); nothing else is queued here, since events go straight to their listeners, which bound what they keep.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Self

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from threadkeep_client.dialing import dial
from threadkeep_client.errors import (
    ConnectionEndedError,
    ConnectionFailedError,
    ThreadkeepError,
    TokenExpiredError,
    TokenRefusedError,
    UnavailableError,
    WireError,
    is_repeatable,
)
from threadkeep_client.frames import decode, encode
from threadkeep_client.in_flight import InFlight
from threadkeep_client.listening import Listeners
from threadkeep_client.patience import ConnectionSettings
from threadkeep_client.tokens import TokenKeeper, TokenSource
from threadkeep_client.wire import Frame

Observer = Callable[[str, float], None]
"""Told the action and the seconds of every request that was answered with `.ok`, repeats included."""


class Connection(Listeners):
    """A connection to a deployment; see the module.

    Args:
        url: `wss://…/{stage}`.
        token: a token, or a function that gives one: asked anew after a refusal, and where a minute is left;
            connections of one client share its keeper.
        settings: how patient it is.
        observe: told how long requests took.
    """

    def __init__(
        self,
        url: str,
        token: TokenSource | TokenKeeper,
        *,
        settings: ConnectionSettings | None = None,
        observe: Observer | None = None,
    ) -> None:
        super().__init__()
        self.url = url
        self.settings = settings or ConnectionSettings()
        self._tokens = token if isinstance(token, TokenKeeper) else TokenKeeper(token)
        self._observe = observe
        self._socket: ClientConnection | None = None
        self._settled = asyncio.Event()  # there is a socket, or there never will be one again
        self._ended: ThreadkeepError | None = None
        self._away = "not connected"  # why, as long as there is no socket
        self._in_flight = InFlight()
        self._slots = asyncio.Semaphore(self.settings.requests_max)
        self._task: asyncio.Task[None] | None = None

    def to(self, url: str) -> Connection:
        """Another one, not open yet: to another address, with the same token, patience and observer."""
        return Connection(url, self._tokens, settings=self.settings, observe=self._observe)

    @property
    def is_up(self) -> bool:
        """Whether there is a socket now."""
        return self._socket is not None

    @property
    def has_ended(self) -> bool:
        """Whether there never will be one again."""
        return self._ended is not None

    # --- life ----------------------------------------------------------------------------------------------------

    async def open(self) -> Self:
        """Connect; afterwards the connection keeps itself up until `close`.

        Raises:
            ConnectionFailedError: Nobody answers, or not as a WebSocket server.
            TokenRefusedError: The token was refused, and so was the one that the source gave when asked anew.
        """
        try:
            socket = await self._dial()
        except TokenRefusedError:
            if not self._tokens.renewable:
                raise
            socket = await self._dial()
        self._task = asyncio.create_task(self._run(socket), name="threadkeep connection")
        self._settled.set()
        self._socket = socket
        return self

    async def close(self) -> None:
        """Close; requests in flight and later ones raise `ConnectionEndedError`."""
        self._end(ConnectionEndedError("the connection was closed"))
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        socket, self._socket = self._socket, None
        if socket is not None:
            await socket.close()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _run(self, socket: ClientConnection) -> None:
        while True:
            await self._serve(socket)
            try:
                socket = await self._redial()
            except ThreadkeepError as error:
                self._end(error)
                return
            self._socket = socket
            self._settled.set()
            self._tell_reopened()

    async def _serve(self, socket: ClientConnection) -> None:
        try:
            async for text in socket:
                self._receive(text)
        except ConnectionClosed:
            pass  # an ordinary event: what was in flight is repeated on the next socket
        finally:
            if self._ended is None:
                self._socket = None
                self._settled.clear()
            self._in_flight.fail(UnavailableError("the connection was cut", reason="cut", retryable=True))

    async def _redial(self) -> ClientConnection:
        refusals = 0
        for pause in self.settings.reconnect.pauses():
            await asyncio.sleep(pause)
            try:
                return await self._dial()
            except TokenRefusedError:
                refusals += 1
                if not self._tokens.renewable or refusals >= self.settings.refusals_max:
                    raise
            except ConnectionFailedError as error:
                self._away = str(error)  # requests have deadlines of their own; the connection itself goes on trying
        raise AssertionError("pauses never end")

    async def _dial(self) -> ClientConnection:
        token = await self._tokens.get()
        try:
            return await dial(self.url, token, open_s=self.settings.open_s)
        except TokenRefusedError:
            self._tokens.refuse()
            raise

    def _end(self, error: ThreadkeepError) -> None:
        if self._ended is None:
            self._ended = error
            self._settled.set()
            self._in_flight.fail(error)

    # --- requests ------------------------------------------------------------------------------------------------

    async def request(self, action: str, /, *, deadline_s: float | None = None, **fields: Any) -> Frame:
        """Send a request until it is answered, repeating it as the protocol allows.

        Repeats are the same to the byte, so what is created must be named by the caller (`new_id`).

        Args:
            action: the protocol's.
            deadline_s: for all repeats together.
            **fields: of the request.

        Raises:
            WireError: The answer is an error, and repeating did not help or cannot; `UnavailableError` also where no
                answer came.
            ConnectionEndedError: The connection is closed.
            ConnectionFailedError: It ended since its token was refused.
        """
        ref = self._in_flight.new_ref()
        text = encode({"action": action, "ref": ref, **fields})
        clock = asyncio.get_running_loop().time
        begin = clock()
        deadline = begin + (self.settings.deadline_s if deadline_s is None else deadline_s)
        async with self._slots:
            for pause in self.settings.repeat.pauses():
                try:
                    reply = await self._attempt(action, ref, text, deadline)
                except WireError as error:
                    pause_s = max(pause, error.retry_after_s or 0.0)
                    if not self._may_repeat(error) or clock() + pause_s >= deadline:
                        raise
                else:
                    if self._observe is not None:
                        self._observe(action, clock() - begin)
                    return reply
                await asyncio.sleep(pause_s)
        raise AssertionError("pauses never end")

    def _may_repeat(self, error: WireError) -> bool:
        if isinstance(error, TokenExpiredError) and self._tokens.renewable:
            self._tokens.refuse()
            self.cut()
            return True
        return is_repeatable(error)

    async def _attempt(self, action: str, ref: str, text: str, deadline: float) -> Frame:
        loop = asyncio.get_running_loop()
        socket = await self._open_socket(deadline)
        timeout = asyncio.timeout_at(min(deadline, loop.time() + self.settings.reply_s))
        try:
            with self._in_flight.expecting(ref) as reply:
                async with timeout:
                    await socket.send(text)
                    frame = await reply
        except TimeoutError:
            raise UnavailableError(f"no reply to {action} in time", reason="no_reply", retryable=True) from None
        except ConnectionClosed:
            raise UnavailableError("the connection was cut", reason="cut", retryable=True) from None
        if frame["type"] == "error":
            raise WireError.from_frame(frame, action)
        return frame

    async def _open_socket(self, deadline: float) -> ClientConnection:
        while True:
            if self._ended is not None:
                raise self._ended
            if self._socket is not None:
                return self._socket
            try:
                async with asyncio.timeout_at(deadline):
                    await self._settled.wait()
            except TimeoutError:
                raise UnavailableError(self._away, reason="away", retryable=True) from None

    def cut(self) -> None:
        """Drop the present socket, as a network would; the connection reconnects."""
        if self._socket is not None:
            self._socket.transport.abort()

    # --- receiving -----------------------------------------------------------------------------------------------

    def _receive(self, text: str | bytes) -> None:
        frame = decode(text)
        if frame is None or (frame["type"] == "error" and "ref" not in frame):
            # It names no request, so it may mean any of them.
            self._in_flight.fail(
                UnavailableError("the gateway answered in place of the service", reason="gateway", retryable=True)
            )
            return
        if "ref" in frame:
            self._in_flight.take(frame)
            return
        if frame["type"].endswith(".ok"):
            return  # a reply to nobody: a subscription hands its own replies on, and takes none for an event
        self._hand_on(frame)
