"""A small server of the protocol over a real socket, with faults to order."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Literal, Self

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from tests.unit.client.fake_service import FakeService, Json, Refused
from threadkeep.domain.bounds import FRAME_BYTES_MAX

What = Literal[
    "lose_request", "lose_reply", "gateway", "gateway_after", "noise", "nameless", "cut", "cut_after", "refuse"
]
GATEWAY_FRAME = '{"message":"Internal server error","connectionId":"c","requestId":"r"}'


@dataclass
class Fault:
    """What happens to the next request of an action, after `skip` of them."""

    action: str
    what: What
    skip: int = 0
    refusal: Refused | None = None


class FakeServer:
    """Serves on 127.0.0.1 while entered.

    Attributes:
        service: what is kept.
        mangle: what becomes of an event on its way to a viewer: nothing, itself, itself twice, others.
        on_request: called with every request that arrives.
        requests: every request that arrived.
        tokens: every token that came in a handshake.
        refused_tokens: those that get 401.
    """

    def __init__(self, *, subprotocol: bool = True) -> None:
        self.service = FakeService(self.tell)
        self.on_request: Callable[[Json], None] = lambda _: None
        self.mangle: Callable[[Json], Iterable[Json]] = lambda event: [event]
        self.requests: list[Json] = []
        self.tokens: list[str] = []
        self.refused_tokens: set[str] = set()
        self.viewers: dict[str, set[ServerConnection]] = {}
        self._faults: list[Fault] = []
        self._sockets: list[ServerConnection] = []
        self._subprotocols = [Subprotocol("threadkeep.v1")] if subprotocol else None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def start(self, port: int = 0) -> None:
        self._server: Server = await serve(
            self._serve,
            "127.0.0.1",
            port,
            process_request=self._shake_hands,
            subprotocols=self._subprotocols,
            ping_interval=None,
            close_timeout=1,
        )
        self.port: int = next(iter(self._server.sockets)).getsockname()[1]

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        self._server.close()
        await self._server.wait_closed()

    # --- what a test orders ----------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/local"

    @property
    def connections(self) -> int:
        return len(self._sockets)

    def cut(self) -> None:
        """Cut every socket, as a network would."""
        for socket in self._sockets:
            socket.transport.abort()

    def fail(self, action: str, what: What, *, times: int = 1, skip: int = 0) -> None:
        """Let the next requests of an action fail."""
        self._faults.extend(Fault(action, what, skip if number == 0 else 0) for number in range(times))

    def refuse(self, action: str, code: str, *, times: int = 1, **more: Any) -> None:
        """Let the next requests of an action be refused."""
        self._faults.extend(Fault(action, "refuse", refusal=Refused(code, **more)) for _ in range(times))

    def heal(self) -> None:
        """Let nothing fail any more."""
        self._faults.clear()

    def sent(self, action: str) -> list[Json]:
        """The requests of an action that arrived."""
        return [request for request in self.requests if request.get("action") == action]

    async def tell(self, conversation: str, event: Json) -> None:
        """Send an event to a conversation's viewers."""
        for mangled in self.mangle({"conversation": conversation, **event}):
            for socket in tuple(self.viewers.get(conversation, ())):
                with contextlib.suppress(ConnectionClosed):
                    await socket.send(json.dumps(mangled, ensure_ascii=False))

    # --- serving ---------------------------------------------------------------------------------------------------

    def _shake_hands(self, connection: ServerConnection, request: Request) -> Response | None:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        self.tokens.append(token)
        if not token or token in self.refused_tokens:
            return connection.respond(HTTPStatus.UNAUTHORIZED, "no\n")
        return None

    async def _serve(self, socket: ServerConnection) -> None:
        self._sockets.append(socket)
        try:
            async for text in socket:
                await self._receive(socket, text if isinstance(text, str) else text.decode())
        except ConnectionClosed:
            pass
        finally:
            self._sockets.remove(socket)
            for viewers in self.viewers.values():
                viewers.discard(socket)

    async def _receive(self, socket: ServerConnection, text: str) -> None:
        request = json.loads(text)
        self.requests.append(request)
        self.on_request(request)
        fault = self._next_fault(request["action"])
        if fault is not None and await self._fails_before(socket, request, fault):
            return
        reply = await self._answer(socket, request, len(text.encode()))
        match fault.what if fault else None:
            case None:
                await socket.send(json.dumps({"ref": request["ref"], **reply}, ensure_ascii=False))
            case "gateway_after":
                await socket.send(GATEWAY_FRAME)
            case "cut_after":
                socket.transport.abort()

    async def _answer(self, socket: ServerConnection, request: Json, size: int) -> Json:
        if size > FRAME_BYTES_MAX:
            return Refused("too_large").frame
        viewers = self.viewers.setdefault(request.get("conversation", ""), set())
        try:
            reply = await self.service.carry_out(request)
        except Refused as refused:
            return refused.frame
        if request["action"] == "conversation.subscribe":
            viewers.add(socket)
        elif request["action"] == "conversation.unsubscribe":
            viewers.discard(socket)
        return {"type": request["action"] + ".ok", **reply}

    def _next_fault(self, action: str) -> Fault | None:
        for fault in self._faults:
            if fault.action == action:
                if fault.skip:
                    fault.skip -= 1
                    return None
                self._faults.remove(fault)
                return fault
        return None

    async def _fails_before(self, socket: ServerConnection, request: Json, fault: Fault) -> bool:
        """Whether the request goes no further; what is sent in place of its reply is sent here."""
        instead = {
            "lose_request": "",
            "gateway": GATEWAY_FRAME,
            "noise": "Task timed out after 10.00 seconds",
            "nameless": json.dumps(Refused("bad_request").frame),
        }
        if fault.refusal is not None:
            instead["refuse"] = json.dumps({"ref": request["ref"], **fault.refusal.frame})
        if fault.what == "cut":
            socket.transport.abort()
        elif instead.get(fault.what):
            await socket.send(instead[fault.what])
        return fault.what == "cut" or fault.what in instead
