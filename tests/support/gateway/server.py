"""The gateway itself: one port for WebSockets and for `@connections`."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Self

from websockets.frames import CloseCode

from tests.support.gateway.api import Api
from tests.support.gateway.clock import VirtualClock
from tests.support.gateway.connections import MARK, Endpoint
from tests.support.gateway.faults import Faults
from tests.support.gateway.functions import Functions, Handler
from tests.support.gateway.limits import Limits, Manners
from tests.support.gateway.session import Session
from tests.support.gateway.throttle import TokenBucket
from threadkeep.schema import ROUTES

_HEAD_BYTES_MAX: Final = 64 * 1024
_SEND_BUFFER_BYTES: Final = 16 * 1024
"""The kernel's part of a client's buffer: small, so that the gateway's own is what counts."""
_PATIENCE_S: Final = 5.0
_LOOK_S: Final = 0.005


class FaultGateway:
    """A stand-in for API Gateway's WebSocket APIs, on 127.0.0.1, in front of Lambda handlers.

    Use it as an asynchronous context manager, or from synchronous code by `in_thread`.

    Args:
        handlers: the functions by name: those that `routes` names, and `authorizer` (without one all are let in).
        routes: the actions that each function serves.
        stage: the first segment of its paths.
        identity_sources: headers without which a handshake is refused unseen.
        limits, manners, faults, clock: see there.
    """

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        *,
        routes: Mapping[str, Sequence[str]] = ROUTES,
        stage: str = "test",
        identity_sources: Sequence[str] = (),
        limits: Limits | None = None,
        manners: Manners | None = None,
        faults: Faults | None = None,
        clock: VirtualClock | None = None,
    ) -> None:
        limits = limits or Limits()
        self.clock = clock or VirtualClock()
        self._api = Api(
            stage=stage,
            functions=Functions(handlers, clock=self.clock, timeout_s=limits.integration_s),
            routes={action: function for function, actions in routes.items() for action in actions},
            limits=limits,
            manners=manners or Manners(),
            faults=faults or Faults(),
            clock=self.clock,
            bucket=TokenBucket(rate=limits.requests_per_s, burst=limits.requests_burst, clock=self.clock),
            identity_sources=tuple(identity_sources),
        )
        self._endpoint = Endpoint(self._api)
        self._connections = itertools.count()
        self._sessions: set[asyncio.Task[Any]] = set()
        self._posters: set[asyncio.Task[Any]] = set()
        # Bound here, not in `start`: the handlers' configuration wants the address before the gateway runs.
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"ws://127.0.0.1:{self._listener.getsockname()[1]}/{self._api.stage}"

    @property
    def connections_url(self) -> str:
        """The base of `@connections`, boto3's `endpoint_url`."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}/{self._api.stage}"

    @property
    def faults(self) -> Faults:
        """What goes wrong from now on."""
        return self._api.faults

    @faults.setter
    def faults(self, faults: Faults) -> None:
        self._api.faults = faults

    @property
    def counts(self) -> Counter[str]:
        """What happened so far: `messages`, `replies`, `pushes`, `posts_gone`, `cut`, … A test looks for its fault."""
        return self._api.counts

    @property
    def largest_sent_bytes(self) -> int:
        """The largest message that went out to a client, in bytes of UTF-8."""
        return self._api.largest_sent_bytes

    @property
    def connections(self) -> tuple[str, ...]:
        """Ids of the connections that stand, vanished ones too, in the order in which they came."""
        return tuple(self._api.sessions)

    def cut(self, connection: str | None = None) -> None:
        """Cut this connection's socket, or all, without a close frame."""
        sessions = self._api.sessions
        for session in tuple(sessions.values()) if connection is None else (sessions[connection],):
            session.cut()

    # --- life ------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, sock=self._listener, limit=_HEAD_BYTES_MAX)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close everything, in the order in which one part needs the other.

        Raises:
            ExceptionGroup: the gateway itself failed somewhere.
        """
        assert self._server is not None
        self._server.close()
        for session in tuple(self._api.sessions.values()):
            session.close(CloseCode.GOING_AWAY)
        await asyncio.gather(*self._sessions)
        await self.settle()
        await self._api.functions.close()
        for task in self._posters:  # kept alive by their clients
            task.cancel()
        await asyncio.gather(*self._posters, return_exceptions=True)
        await self._server.wait_closed()
        if self._api.failures:
            raise BaseExceptionGroup("the fault gateway failed", self._api.failures)

    async def settle(self) -> None:
        """Wait until no message is being answered and no frame is held back."""
        while self._api.tasks:
            await asyncio.wait(self._api.tasks)

    async def until(self, happened: Callable[[], bool]) -> None:
        """Wait until it has happened here: what ends a socket comes by the network, with no reply to wait for.

        Raises:
            TimeoutError: it did not, within 5 s.
        """
        async with asyncio.timeout(_PATIENCE_S):
            while not happened():  # noqa: ASYNC110 -- it looks at counts, which set no event
                await asyncio.sleep(_LOOK_S)

    @contextlib.contextmanager
    def in_thread(self) -> Iterator[Self]:
        """Run in a thread of its own, for synchronous code."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="gateway")
        thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self.__aenter__(), loop).result()
            try:
                yield self
            finally:
                asyncio.run_coroutine_threadsafe(self.__aexit__(), loop).result()
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
        task = asyncio.current_task()
        assert task is not None
        self._posters.add(task)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            if MARK.encode() in head.partition(b"\r\n")[0]:
                await self._endpoint.serve(head, reader, writer)
            else:
                self._posters.discard(task)
                self._sessions.add(task)
                await Session(self._api, next(self._connections), reader, writer).run(head)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            return  # the client left, or never spoke HTTP
        except Exception as error:  # noqa: BLE001 -- raised again at the end, where the test sees it
            self._api.failures.append(error)
        finally:
            writer.close()
            self._posters.discard(task)
            self._sessions.discard(task)
