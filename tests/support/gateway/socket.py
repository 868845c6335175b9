"""The gateway's end of one WebSocket: its frames, its limits, its closes. Bytes and time, no events and no Lambdas."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import Final

from websockets.exceptions import InvalidState
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from tests.support.gateway.limits import Limits

_CLOSE_S: Final = 1.0
"""How long a client may take to answer a close."""
_READ_BYTES: Final = 64 * 1024

_LOG: Final = logging.getLogger("tests.support.gateway")
_LOG.setLevel(logging.WARNING)  # below, websockets logs headers and frames


class BufferFull(Exception):  # noqa: N818 -- an answer, not a fault
    """The client has too much outstanding that it has not read."""


class ClientSocket:
    """One WebSocket (RFC 6455 by websockets' sans-I/O protocol) over one TCP connection.

    Args:
        reader, writer: the TCP connection.
        limits: of frames, messages and the buffer.
        on_ping: called for every ping.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        limits: Limits,
        on_ping: Callable[[], None],
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._limits = limits
        self._on_ping = on_ping
        self._protocol = ServerProtocol(max_size=(limits.message_bytes_max, limits.frame_bytes_max), logger=_LOG)
        # The buffer's end is the gateway's to tell, not the kernel's.
        writer.transport.set_write_buffer_limits(high=limits.buffer_bytes_max)

    # --- handshake -------------------------------------------------------------------------------------------------

    def read_request(self, head: bytes) -> Request | None:
        """The request in the head of a TCP connection; None where there is none to be read."""
        self._protocol.receive_data(head)
        return next((event for event in self._protocol.events_received() if isinstance(event, Request)), None)

    def accept(self, request: Request, headers: dict[str, str]) -> bool:
        """Answer 101, with these headers beside the handshake's own; False where the request is no handshake."""
        response = self._protocol.accept(request)
        if response.status_code == HTTPStatus.SWITCHING_PROTOCOLS:
            response.headers.update(headers)
        self._protocol.send_response(response)
        self._flush()
        return self._protocol.state is State.OPEN

    def refuse(self, status: int, body: str) -> None:
        """Answer the handshake with this status and no WebSocket."""
        self._protocol.send_response(self._protocol.reject(status, body))
        self._flush()

    # --- in --------------------------------------------------------------------------------------------------------

    async def messages(self) -> AsyncIterator[str]:
        """The client's messages, until the socket ends; `close_code` tells how it did."""
        parts: list[bytes] = []
        while self._protocol.state is not State.CLOSED and (data := await self._read()) is not None:
            if data:
                self._protocol.receive_data(data)
            else:
                self._protocol.receive_eof()
            events = self._protocol.events_received()
            self._flush()
            for frame in events:
                if isinstance(frame, Frame) and (message := self._assemble(frame, parts)) is not None:
                    yield message
            if not data:
                return

    async def _read(self) -> bytes | None:
        """What came; empty at the end, None where the client does not answer a close."""
        try:
            async with asyncio.timeout(_CLOSE_S if self._protocol.close_expected() else None):
                return await self._reader.read(_READ_BYTES)
        except (TimeoutError, ConnectionError):
            return None

    def _assemble(self, frame: Frame, parts: list[bytes]) -> str | None:
        match frame.opcode:
            case Opcode.PING:
                self._on_ping()
            case Opcode.BINARY:
                # "rejects it and disconnects the client with code 1003": "Binary media types for WebSocket APIs in API
                # Gateway", read 2026-11-29.
                self.close(CloseCode.UNSUPPORTED_DATA)
            case Opcode.TEXT | Opcode.CONT:
                parts.append(bytes(frame.data))
                if frame.fin:
                    whole = b"".join(parts)
                    parts.clear()
                    return self._decode(whole)
            case _:
                pass
        return None

    def _decode(self, message: bytes) -> str | None:
        try:
            return message.decode()
        except UnicodeDecodeError:
            self.close(CloseCode.INVALID_DATA)
            return None

    # --- out -------------------------------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether frames can be sent."""
        return self._protocol.state is State.OPEN and not self._writer.is_closing()

    @property
    def is_full(self) -> bool:
        """Whether the client has as much outstanding as it may."""
        return self._outstanding() >= self._limits.buffer_bytes_max

    def _outstanding(self) -> int:
        return self._writer.transport.get_write_buffer_size()

    def send(self, text: str) -> bool:
        """Send a message, in frames of the size that the gateway allows; whether it went out."""
        if not self.is_open:
            return False
        data, size = text.encode(), self._limits.frame_bytes_max
        self._protocol.send_text(data[:size], fin=len(data) <= size)
        for begin in range(size, len(data), size):
            self._protocol.send_continuation(data[begin : begin + size], fin=begin + size >= len(data))
        self._flush()
        return True

    async def drain(self) -> None:
        """Wait until the client has read what was outstanding, or is gone."""
        try:
            await self._writer.drain()
        except ConnectionError:
            return

    def close(self, code: int, reason: str = "") -> None:
        """Begin to close; `messages` ends when the client has answered, or after a second."""
        try:
            self._protocol.send_close(code, reason)
        except InvalidState:
            return
        self._flush()
        # Wakes the reader, which until now waits for the client without end.
        asyncio.get_running_loop().call_later(_CLOSE_S, self.cut)

    def cut(self) -> None:
        """Drop the TCP connection, as a network does."""
        self._writer.transport.abort()

    async def finish(self) -> None:
        """Let go of the TCP connection."""
        self._writer.close()
        try:
            async with asyncio.timeout(_CLOSE_S):
                await self._writer.wait_closed()
        except (ConnectionError, TimeoutError):
            self.cut()

    def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            if self._writer.is_closing():
                return
            if data:
                self._writer.write(data)
            else:
                with contextlib.suppress(OSError):  # the client went away just now; the reader will see
                    self._writer.write_eof()

    # --- the end ---------------------------------------------------------------------------------------------------

    @property
    def close_code(self) -> int:
        """How the socket ended: the gateway's own close, else the client's, else 1006."""
        close = self._protocol.close_sent or self._protocol.close_rcvd
        return CloseCode.ABNORMAL_CLOSURE if close is None else close.code

    @property
    def close_reason(self) -> str:
        """What was said with it."""
        close = self._protocol.close_sent or self._protocol.close_rcvd
        return "" if close is None else close.reason
