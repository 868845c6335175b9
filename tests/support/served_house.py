"""A house behind real sockets, for the real clients, in virtual time: the house's clock goes by the event loop's."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, ParamSpec, Self

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from tests.support.house import START_MS, Device, Frame, House, connect_event, message_event
from tests.unit.client.virtual_time import VirtualTimeLoop
from threadkeep.ports import Delivery
from threadkeep_client import Client

Arguments = ParamSpec("Arguments")


def in_virtual_time(test: Callable[Arguments, Coroutine[Any, Any, None]]) -> Callable[Arguments, None]:
    """The test runs in an event loop whose clock jumps ahead when nothing is left to do."""

    @functools.wraps(test)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            runner.run(test(*args, **kwargs))

    return run


def now() -> float:
    """Virtual seconds."""
    return asyncio.get_running_loop().time()


class HouseServer:
    """Serves a house on 127.0.0.1 while entered; no ``$disconnect`` ever comes.

    Attributes:
        filter: what becomes of an event on its way to a connection: nothing, itself, others.
        repeats: actions whose every request arrives again, so many seconds after the first time.
        requests: every request that arrived, the connection it came by, and when.
        sent: every frame that went to a connection, events and replies, and when.
        posts: every post, whether its connection was there or not.
        sockets: open connections by their ids.
    """

    def __init__(self, house: House) -> None:
        self.house = house
        self.filter: Callable[[Frame], Iterable[Frame]] = lambda event: [event]
        self.repeats: dict[str, Sequence[float]] = {}
        self.requests: list[tuple[float, str, Frame]] = []
        self.sent: list[tuple[float, str, Frame]] = []
        self.posts: list[tuple[str, Frame]] = []
        self.sockets: dict[str, ServerConnection] = {}
        self._outgoing: dict[str, asyncio.Queue[Frame]] = {}
        self._tasks: set[asyncio.Future[None]] = set()
        self._count = 0
        house.replace(push=self)

    async def __aenter__(self) -> Self:
        self._server: Server = await serve(
            self._serve,
            "127.0.0.1",
            0,
            process_request=self.welcome,
            subprotocols=[Subprotocol("threadkeep.v1")],
            ping_interval=None,
            close_timeout=1,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()
        for task in tuple(self._tasks):
            task.cancel()
        faults = await asyncio.gather(*self._tasks, return_exceptions=True)
        for fault in faults:
            if isinstance(fault, Exception):
                raise fault

    def welcome(self, _connection: ServerConnection, _request: Request) -> Response | None:
        """What a handshake is answered with; None lets it in."""
        return None

    @property
    def port(self) -> int:
        """Where it listens."""
        port: int = next(iter(self._server.sockets)).getsockname()[1]
        return port

    def client(self, device: Device) -> Client:
        """A client, not yet connected; every connection of its vouches for this user and scope."""
        return Client(f"ws://127.0.0.1:{self.port}/test", json.dumps([device.connection, device.user, device.scope]))

    # --- what a test orders and looks at ----------------------------------------------------------------------------

    def cut(self, device: Device) -> None:
        """Cut the device's sockets, as a network would."""
        for connection in self.connections(device):
            self.sockets.pop(connection).transport.abort()

    def connections(self, device: Device) -> list[str]:
        """The device's connections that are open."""
        return [name for name in self.sockets if name.startswith(device.connection.rstrip("=") + "-")]

    def set_clock(self) -> None:
        """The house's clock shows the time of the loop; every request sets it."""
        self.house.clock.ms = START_MS + int(now() * 1_000)

    def asked(self, action: str) -> list[Frame]:
        """The requests of an action that arrived."""
        return [request for _, _, request in self.requests if request["action"] == action]

    def told(self, kind: str) -> list[Frame]:
        """The frames of a type that were sent."""
        return [frame for _, _, frame in self.sent if frame["type"] == kind]

    # --- @connections -----------------------------------------------------------------------------------------------

    def send(self, connections: Sequence[str], frame: bytes) -> Delivery:
        """See `threadkeep.ports.Push`."""
        event: Frame = json.loads(frame)
        self.posts += [(connection, event) for connection in connections]
        there = [connection for connection in connections if connection in self.sockets]
        for connection in there:
            for kept in self.filter(event):
                self._put(connection, kept)
        return Delivery(gone=tuple(name for name in connections if name not in there), late=())

    def hint(self, connections: Sequence[str], frame: bytes) -> None:
        """See `threadkeep.ports.Push`."""
        self.send(connections, frame)

    # --- serving ----------------------------------------------------------------------------------------------------

    async def _serve(self, socket: ServerConnection) -> None:
        assert socket.request is not None
        name, user, scope = json.loads(socket.request.headers["Authorization"].removeprefix("Bearer "))
        self._count += 1
        device = Device(connection=f"{name.rstrip('=')}-{self._count}=", user=user, scope=scope)
        assert self._invoke(connect_event(device))["statusCode"] == 200
        self.sockets[device.connection] = socket
        self._outgoing[device.connection] = asyncio.Queue()
        writing = self._spawn(self._write(device.connection, socket))
        try:
            async for text in socket:
                assert isinstance(text, str)
                self._receive(device, text)
        except ConnectionClosed:
            pass
        finally:
            self.sockets.pop(device.connection, None)
            writing.cancel()

    async def _write(self, connection: str, socket: ServerConnection) -> None:
        with contextlib.suppress(ConnectionClosed):
            while True:
                frame = await self._outgoing[connection].get()
                self.sent.append((now(), connection, frame))
                await socket.send(json.dumps(frame, ensure_ascii=False))

    def _receive(self, device: Device, text: str) -> None:
        self._carry_out(device, text)
        for delay_s in self.repeats.get(json.loads(text)["action"], ()):
            self.spawn_later(delay_s, functools.partial(self._carry_out, device, text))

    def _carry_out(self, device: Device, text: str) -> None:
        self.requests.append((now(), device.connection, json.loads(text)))
        reply: Frame = json.loads(self._invoke(message_event(device, text))["body"])
        assert reply.get("code") != "internal", reply
        self._put(device.connection, reply)

    def _invoke(self, event: dict[str, Any]) -> dict[str, Any]:
        self.set_clock()
        return self.house.invoke(event)

    def _put(self, connection: str, frame: Frame) -> None:
        self._outgoing[connection].put_nowait(frame)

    def spawn_later(self, delay_s: float, act: Callable[[], None]) -> None:
        """Do something after a while; what it raises, the end of serving raises."""
        self._spawn(self._later(delay_s, act))

    async def _later(self, delay_s: float, act: Callable[[], None]) -> None:
        await asyncio.sleep(delay_s)
        act()

    def _spawn(self, work: Awaitable[None]) -> asyncio.Future[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        return task
