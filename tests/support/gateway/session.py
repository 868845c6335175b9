"""One connection, from its handshake to its `$disconnect`."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import Any

from websockets.frames import CloseCode

from tests.support.gateway.api import Api
from tests.support.gateway.authorizer import HandshakeRefused
from tests.support.gateway.clock import Timer
from tests.support.gateway.events import Connected, new_id
from tests.support.gateway.functions import IntegrationFailed
from tests.support.gateway.handshake import connect
from tests.support.gateway.socket import BufferFull, ClientSocket


class Session:
    """A client's connection.

    Args:
        api: what it is a connection of.
        number: how many came before it: its place in the plan of faults.
        reader, writer: the TCP connection.
    """

    def __init__(self, api: Api, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._api = api
        self._number = number
        self._socket = ClientSocket(reader, writer, limits=api.limits, on_ping=self._pinged)
        self._received = itertools.count()
        self._pushed = itertools.count()
        self._frames = 0
        self._ended = asyncio.Event()
        self._idle = Timer(0.0, 0, None)
        self._loop = asyncio.get_running_loop()
        self.connected: Connected | None = None
        self.connected_at = self.active_at = api.clock.now()

    # --- life ------------------------------------------------------------------------------------------------------

    async def run(self, head: bytes) -> None:
        """Serve the connection whose first bytes are `head`, until it ends."""
        try:
            request = self._socket.read_request(head)
            if request is None:
                return
            try:
                connected, headers = await connect(self._api, request)
            except HandshakeRefused as refused:
                self._api.counts[f"handshakes_{refused.status}"] += 1
                self._socket.refuse(refused.status, json.dumps({"message": str(refused), "requestId": new_id()}))
                return
            if self._socket.accept(request, headers):
                self._api.counts["handshakes"] += 1
                await self._serve(connected)
        finally:
            await self._socket.finish()

    async def _serve(self, connected: Connected) -> None:
        api = self._api
        self.connected = connected
        self.connected_at = self.active_at = api.clock.now()
        api.sessions[connected.connection] = self
        lifetime = api.clock.call_at(self.connected_at + api.limits.lifetime_s, self._expire)
        self._watch_idle()
        try:
            async for message in self._socket.messages():
                self._receive(message)
            if self._socket.close_code == CloseCode.ABNORMAL_CLOSURE and api.faults.happens("vanish", self._number):
                api.counts["vanished"] += 1
                await self._ended.wait()
        finally:
            lifetime.cancel()
            self._idle.cancel()
            del api.sessions[connected.connection]
            api.counts[f"ended_{self._socket.close_code}"] += 1
            api.spawn(self._disconnect(connected))

    async def _disconnect(self, connected: Connected) -> None:
        if self._api.faults.happens("lose_disconnect", self._number):
            self._api.counts["disconnects_lost"] += 1
            return
        code, reason = self._socket.close_code, self._socket.close_reason
        event = connected.disconnect_event(code, reason, now_ms=self._api.clock.now_ms())
        try:
            await self._api.functions.invoke(self._api.function("$disconnect"), event)
        except IntegrationFailed:
            self._api.counts["disconnects_failed"] += 1
        else:
            self._api.counts["disconnects"] += 1

    # --- time ------------------------------------------------------------------------------------------------------

    def _watch_idle(self) -> None:
        self._idle = self._api.clock.call_at(self.active_at + self._api.limits.idle_s, self._look)

    def _look(self) -> None:
        """Close when nothing was said for long enough; else look again when that could first be."""
        if self._api.clock.now() - self.active_at >= self._api.limits.idle_s:
            self._expire()
        else:
            self._watch_idle()

    def _expire(self) -> None:
        """Close for age or silence; called in whatever thread advances the clock."""
        self._loop.call_soon_threadsafe(self.close, CloseCode.GOING_AWAY, "Going away")

    def _pinged(self) -> None:
        if self._api.manners.pings_keep_alive:
            self.active_at = self._api.clock.now()

    def close(self, code: int, reason: str = "") -> None:
        """Close as the gateway does."""
        self._socket.close(code, reason)
        self._ended.set()

    def cut(self) -> None:
        """Drop the TCP connection, as a network does. From any thread."""
        self._loop.call_soon_threadsafe(self._socket.cut)

    # --- messages --------------------------------------------------------------------------------------------------

    def _receive(self, message: str) -> None:
        api = self._api
        api.counts["messages"] += 1
        self.active_at = api.clock.now()
        number = next(self._received)
        if not self._passes_cut():
            return
        if not api.bucket.take():
            self._throttle()
        elif api.faults.happens("lose_request", self._number, number):
            api.counts["requests_lost"] += 1
        else:
            api.spawn(self._deliver(number, message))

    def _throttle(self) -> None:
        self._api.counts["throttled"] += 1
        if self._api.manners.throttled == "close":
            self.close(CloseCode.POLICY_VIOLATION, "Too Many Requests")
        else:
            self._send(self._gateway_frame("Too Many Requests", new_id()))

    async def _deliver(self, number: int, message: str) -> None:
        api = self._api
        assert self.connected is not None
        if delay_s := api.faults.delay_s("delay_request", self._number, number):
            api.counts["requests_delayed"] += 1
            await asyncio.sleep(delay_s)
        route = api.route(message)
        event = self.connected.message_event(route, message, now_ms=api.clock.now_ms())
        times = 1
        if api.faults.happens("double_request", self._number, number):
            api.counts["requests_doubled"] += 1
            times = 2
        await asyncio.gather(*(self._answer(number, copy, route, event) for copy in range(times)))

    async def _answer(self, number: int, copy: int, route: str, event: dict[str, Any]) -> None:
        """Run the function and send its reply, or the gateway's own frame in its place."""
        api = self._api
        place = (self._number, number, copy)
        try:
            reply = await self._invoke(place, route, event)
        except IntegrationFailed as failed:
            api.counts["integrations_failed"] += 1
            reply = self._gateway_frame(str(failed), event["requestContext"]["requestId"])
        if reply is None:
            return
        if api.faults.happens("lose_reply", *place):
            api.counts["replies_lost"] += 1
            return
        if delay_s := api.faults.delay_s("delay_reply", *place):
            api.counts["replies_delayed"] += 1
            await asyncio.sleep(delay_s)
        self._reply(reply)

    async def _invoke(self, place: tuple[int, ...], route: str, event: dict[str, Any]) -> str | None:
        """Run the function, unless the plan has it fail before that; fail afterwards where the plan says so."""
        api = self._api
        fails = api.faults.happens("fail_integration", *place)
        if not fails or not api.faults.coin("fail_integration", *place):
            reply = _body(await api.functions.invoke(api.function(route), event), api.limits.message_bytes_max)
        if fails:
            raise IntegrationFailed("Internal server error")
        return reply

    def _gateway_frame(self, message: str, request: str) -> str:
        assert self.connected is not None
        return json.dumps({"message": message, "connectionId": self.connected.connection, "requestId": request})

    def _reply(self, text: str) -> None:
        if self._socket.is_full:
            self._drop()
        elif self._send(text):
            self._api.counts["replies"] += 1

    # --- pushes ----------------------------------------------------------------------------------------------------

    async def push(self, text: str) -> None:
        """Take a post.

        Raises:
            BufferFull: the client does not read.
        """
        api = self._api
        place = (self._number, next(self._pushed))
        if api.faults.happens("lose_push", *place) or (
            api.faults.drop_pushes and _kind(text) in api.faults.drop_pushes
        ):
            api.counts["pushes_lost"] += 1
            return
        if self._socket.is_full:
            await self._wait_for_room()
        if delay_s := api.faults.delay_s("delay_push", *place):
            api.counts["pushes_delayed"] += 1
            api.spawn(self._push_later(delay_s, text))
            return
        self._push(text)
        if api.faults.happens("double_push", *place):
            api.counts["pushes_doubled"] += 1
            self._push(text)

    async def _push_later(self, delay_s: float, text: str) -> None:
        await asyncio.sleep(delay_s)
        self._push(text)

    def _push(self, text: str) -> None:
        if self._send(text):
            self._api.counts["pushes"] += 1

    async def _wait_for_room(self) -> None:
        self._api.counts["buffers_full"] += 1
        match self._api.manners.full_buffer:
            case "wait":
                await self._socket.drain()
            case "drop":
                self._drop()
                raise BufferFull
            case "refuse":
                raise BufferFull

    # --- out -------------------------------------------------------------------------------------------------------

    def _send(self, text: str) -> bool:
        if not self._socket.is_open or not self._passes_cut() or not self._socket.send(text):
            return False
        self.active_at = self._api.clock.now()
        self._api.largest_sent_bytes = max(self._api.largest_sent_bytes, len(text.encode()))
        return True

    def _drop(self) -> None:
        self._api.counts["dropped"] += 1
        self._socket.cut()

    def _passes_cut(self) -> bool:
        """Count a frame, either way; False where the plan cuts the socket before it."""
        self._frames += 1
        faults = self._api.faults
        listed = faults.cut_after[self._number] if self._number < len(faults.cut_after) else None
        if self._frames == listed:
            is_before = False
        elif faults.happens("cut", self._number, self._frames):
            is_before = faults.coin("cut", self._number, self._frames)
        else:
            return True
        self._api.counts["cut"] += 1
        if is_before:
            self._socket.cut()
        else:
            self._loop.call_soon(self._socket.cut)
        return not is_before


def _body(reply: Any, bytes_max: int) -> str | None:
    """The route response's body, as a proxy integration gives it.

    Raises:
        IntegrationFailed: the reply has no status, or a body that is no text, or one larger than a message.
    """
    if not isinstance(reply, dict) or "statusCode" not in reply:
        raise IntegrationFailed("Internal server error")
    body = reply.get("body")
    if body is None or body == "":
        return None
    if not isinstance(body, str) or len(body.encode()) > bytes_max:
        raise IntegrationFailed("Internal server error")
    return body


def _kind(text: str) -> str | None:
    """The `type` of a pushed frame."""
    try:
        frame = json.loads(text)
    except ValueError:
        return None
    return frame.get("type") if isinstance(frame, dict) else None
