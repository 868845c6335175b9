"""`@connections`: how functions post to clients, over HTTP, as boto3's `apigatewaymanagementapi` speaks it."""

from __future__ import annotations

import asyncio
import http.client
import io
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final
from urllib.parse import unquote, urlsplit

from websockets.frames import CloseCode

from tests.support.gateway.api import Api
from tests.support.gateway.session import Session
from tests.support.gateway.socket import BufferFull

MARK: Final = "/@connections/"
_SIGNATURE: Final = "AWS4-HMAC-SHA256 "
_BODY_BYTES_MAX: Final = 10 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An HTTP response; `error` is the name of the exception that boto3 raises for it."""

    status: HTTPStatus
    body: bytes = b""
    error: str = ""

    @classmethod
    def from_error(cls, status: HTTPStatus, error: str, message: str = "") -> Answer:
        """A refusal."""
        return cls(status=status, error=error, body=json.dumps({"message": message}).encode())

    def to_bytes(self) -> bytes:
        """As it goes out."""
        lines = [f"HTTP/1.1 {self.status.value} {self.status.phrase}", "Content-Type: application/json"]
        if self.status is not HTTPStatus.NO_CONTENT:
            lines.append(f"Content-Length: {len(self.body)}")
        if self.error:
            lines.append(f"x-amzn-ErrorType: {self.error}")
        return "\r\n".join([*lines, "", ""]).encode() + self.body


GONE: Final = Answer.from_error(HTTPStatus.GONE, "GoneException")
FULL: Final = Answer.from_error(HTTPStatus.TOO_MANY_REQUESTS, "LimitExceededException", "Client buffer full")
THROTTLED: Final = Answer.from_error(HTTPStatus.TOO_MANY_REQUESTS, "LimitExceededException", "Too Many Requests")
TOO_LARGE: Final = Answer.from_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "PayloadTooLargeException")
FORBIDDEN: Final = Answer.from_error(HTTPStatus.FORBIDDEN, "ForbiddenException", "Missing Authentication Token")
FAILED: Final = Answer.from_error(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalServerError")
BAD: Final = Answer.from_error(HTTPStatus.BAD_REQUEST, "BadRequestException")
UNKNOWN: Final = Answer.from_error(HTTPStatus.NOT_FOUND, "NotFoundException")


@dataclass(slots=True)
class Endpoint:
    """The `@connections` of an API."""

    api: Api
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    async def serve(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one TCP connection, the first of which begins with `head`."""
        try:
            while True:
                method, target, headers = _parse(head)
                size = int(headers.get("Content-Length", "0"))
                if size > _BODY_BYTES_MAX:
                    return
                body = await reader.readexactly(size)
                answer = await self._answer(method, target, headers, body)
                writer.write(answer.to_bytes())
                await writer.drain()
                head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return

    async def _answer(self, method: str, target: str, headers: http.client.HTTPMessage, body: bytes) -> Answer:
        stage, _, connection = urlsplit(target).path.partition(MARK)
        if stage != f"/{self.api.stage}":
            return UNKNOWN
        if self.api.manners.checks_signatures and not headers.get("Authorization", "").startswith(_SIGNATURE):
            return FORBIDDEN
        if not self.api.bucket.take():
            self.api.counts["posts_throttled"] += 1
            return THROTTLED
        return await self._serve(method, self.api.sessions.get(unquote(connection)), body)

    async def _serve(self, method: str, session: Session | None, body: bytes) -> Answer:
        match method:
            case "POST":
                return await self._post(session, body)
            case "GET":
                return _describe(session)
            case "DELETE":
                return _delete(session)
            case _:
                return FORBIDDEN

    async def _post(self, session: Session | None, body: bytes) -> Answer:
        api = self.api
        number = next(self._numbers)
        api.counts["posts"] += 1
        if api.faults.happens("slow_post", number):
            api.counts["posts_slow"] += 1
            await asyncio.sleep(api.faults.slow_ms / 1_000)
        if api.faults.happens("fail_post", number):
            api.counts["posts_failed"] += 1
            return THROTTLED if api.faults.coin("fail_post", number) else FAILED
        if len(body) > api.limits.message_bytes_max:
            api.counts["posts_too_large"] += 1
            return TOO_LARGE
        if session is None:
            api.counts["posts_gone"] += 1
            return GONE
        try:
            await session.push(body.decode())
        except UnicodeDecodeError:
            return BAD
        except BufferFull:
            return FULL
        return Answer(status=HTTPStatus.OK)


def _parse(head: bytes) -> tuple[str, str, http.client.HTTPMessage]:
    line, _, rest = head.partition(b"\r\n")
    method, target, _ = line.decode("ascii").split(" ", 2)
    return method, target, http.client.parse_headers(io.BytesIO(rest))


def _describe(session: Session | None) -> Answer:
    if session is None or session.connected is None:
        return GONE
    described = {
        "connectedAt": _timestamp(session.connected_at),
        "identity": {"sourceIp": "127.0.0.1", "userAgent": session.connected.handshake.user_agent},
        "lastActiveAt": _timestamp(session.active_at),
    }
    return Answer(status=HTTPStatus.OK, body=json.dumps(described).encode())


def _delete(session: Session | None) -> Answer:
    if session is None:
        return GONE
    session.close(CloseCode.NORMAL_CLOSURE, "Connection Closed Normally")
    return Answer(status=HTTPStatus.NO_CONTENT)


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
