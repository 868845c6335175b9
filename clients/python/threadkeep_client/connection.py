"""One WebSocket connection that lasts: it reconnects, repeats what may be repeated, and keeps subscriptions alive.

Everything waits on the event loop's clock alone. Bounds: `requests_max` requests in flight, each at most a frame
(24 KiB); nothing else is queued here, since events go straight to their listeners, which bound what they keep.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from threadkeep_client.backoff import Backoff
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
from threadkeep_client.tokens import TokenKeeper, TokenSource
from threadkeep_client.wire import Frame


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    """How patient a connection is.

    Attributes:
        open_s: for one attempt to connect.
        reply_s: for one reply; then the request is repeated.
        deadline_s: for a request with all its repeats, unless the caller gives another.
        requests_max: in flight at once; more wait.
        refusals_max: refused handshakes in a row, each with a newly asked token, after which the connection ends.
        reconnect: pauses between attempts to connect.
        repeat: pauses between repeats of a request.
    """

    open_s: float = 10.0
    reply_s: float = 10.0
    deadline_s: float = 60.0
    requests_max: int = 64
    refusals_max: int = 5
    reconnect: Backoff = field(default_factory=lambda: Backoff(base_s=0.2, ceiling_s=20.0))
    repeat: Backoff = field(default_factory=lambda: Backoff(base_s=0.2, ceiling_s=5.0, floor_s=0.05))


class Listener(Protocol):
    """Takes the events of one conversation, in the order in which they came; must not wait."""

    def receive(self, frame: Frame) -> None:
        """An event."""
        ...


Observer = Callable[[str, float], None]
"""Told the action and the seconds of every request that was answered with `.ok`, repeats included."""


class Connection:
    """A connection to a deployment; see the module.

    Args:
        url: `wss://…/{stage}`.
        token: a token, or a function that gives one: asked anew after a refusal, and where a minute is left.
        settings: how patient it is.
        observe: told how long requests took.
    """

    def __init__(
        self,
        url: str,
        token: TokenSource,
        *,
        settings: ConnectionSettings | None = None,
        observe: Observer | None = None,
    ) -> None:
        self.url = url
        self.settings = settings or ConnectionSettings()
        self._tokens = TokenKeeper(token)
        self._observe = observe
        self._socket: ClientConnection | None = None
        self._settled = asyncio.Event()  # there is a socket, or there never will be one again
        self._ended: ThreadkeepError | None = None
        self._away = "not connected"  # why, as long as there is no socket
        self._waiting: dict[str, asyncio.Future[Frame]] = {}
        self._slots = asyncio.Semaphore(self.settings.requests_max)
        self._refs = (format(number, "x") for number in itertools.count(1))
        self._listeners: dict[str, list[Listener]] = {}
        self._on_reopen: set[Callable[[], None]] = set()
        self._task: asyncio.Task[None] | None = None

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
            for notify in tuple(self._on_reopen):
                notify()

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
            self._fail_requests(UnavailableError("the connection was cut", reason="cut", retryable=True))

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
            self._fail_requests(error)

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
        ref = next(self._refs)
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
        reply: asyncio.Future[Frame] = loop.create_future()
        self._waiting[ref] = reply
        try:
            async with asyncio.timeout_at(min(deadline, loop.time() + self.settings.reply_s)):
                await socket.send(text)
                frame = await reply
        except TimeoutError:
            raise UnavailableError(f"no reply to {action} in time", reason="no_reply", retryable=True) from None
        except ConnectionClosed:
            raise UnavailableError("the connection was cut", reason="cut", retryable=True) from None
        finally:
            self._waiting.pop(ref, None)
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
            self._fail_requests(
                UnavailableError("the gateway answered in place of the service", reason="gateway", retryable=True)
            )
            return
        if "ref" in frame:
            reply = self._waiting.get(str(frame["ref"]))
            if reply is not None and not reply.done():
                reply.set_result(frame)
            return
        if frame["type"].endswith(".ok"):
            return  # a reply to nobody: a subscription hands its own replies on, and takes none for an event
        for listener in tuple(self._listeners.get(conversation_of(frame), ())):
            listener.receive(frame)

    def _fail_requests(self, error: ThreadkeepError) -> None:
        for reply in self._waiting.values():
            if not reply.done():
                reply.set_exception(error)

    # --- listeners -----------------------------------------------------------------------------------------------

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


def conversation_of(frame: Frame) -> str:
    """The id of the conversation that an event is of; empty where it names none."""
    conversation = frame.get("conversation")
    if isinstance(conversation, dict):
        conversation = conversation.get("id")
    return conversation if isinstance(conversation, str) else ""
