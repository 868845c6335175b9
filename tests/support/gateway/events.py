"""The events that API Gateway makes for Lambda, field by field as in recorded ones (API Gateway Developer Guide)."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from urllib.parse import parse_qsl, urlsplit

from websockets.http11 import Request

ACCOUNT: Final = "000000000000"
REGION: Final = "us-east-1"
API_ID: Final = "faultgate1"
DOMAIN: Final = "domain-name-of-the-event.invalid"
"""Never the place to post to: `@connections` has the API's own name, an event has whatever name the client used."""

EventType = Literal["CONNECT", "MESSAGE", "DISCONNECT"]


def new_id() -> str:
    """An id as the gateway's own look: it ends in `=`, which a URL has to escape."""
    return secrets.token_urlsafe(11) + "="


@dataclass(frozen=True, slots=True, kw_only=True)
class Handshake:
    """What a client sent to connect.

    Attributes:
        headers: names as they came, with all their values.
        query: names with all their values.
    """

    headers: dict[str, list[str]]
    query: dict[str, list[str]]

    @classmethod
    def from_request(cls, request: Request) -> Handshake:
        """Of a parsed request."""
        headers: dict[str, list[str]] = {}
        for name, value in request.headers.raw_items():
            headers.setdefault(name, []).append(value)
        query: dict[str, list[str]] = {}
        for name, value in parse_qsl(urlsplit(request.path).query, keep_blank_values=True):
            query.setdefault(name, []).append(value)
        return cls(headers=headers, query=query)

    @property
    def user_agent(self) -> str:
        """The client's name for itself."""
        return next((values[-1] for name, values in self.headers.items() if name.lower() == "user-agent"), "")

    def to_event(self) -> dict[str, Any]:
        """Its fields in an event; of several values the plain ones hold the last."""
        event: dict[str, Any] = {
            "headers": {name: values[-1] for name, values in self.headers.items()},
            "multiValueHeaders": self.headers,
        }
        if self.query:
            event["queryStringParameters"] = {name: values[-1] for name, values in self.query.items()}
            event["multiValueQueryStringParameters"] = self.query
        return event


@dataclass(frozen=True, slots=True, kw_only=True)
class Connected:
    """One connection, as its events tell of it."""

    stage: str
    connection: str
    connected_at_ms: int
    handshake: Handshake
    authorizer: dict[str, Any] = field(default_factory=dict)

    def authorizer_event(self, *, now_ms: int) -> dict[str, Any]:
        """Of the REQUEST authorizer, which is asked at `$connect` only."""
        return {
            "type": "REQUEST",
            "methodArn": f"arn:aws:execute-api:{REGION}:{ACCOUNT}:{API_ID}/{self.stage}/$connect",
            "queryStringParameters": {},
            "multiValueQueryStringParameters": {},
            "stageVariables": {},
            **self.handshake.to_event(),
            "requestContext": self._context("$connect", "CONNECT", now_ms),
        }

    def connect_event(self, *, now_ms: int) -> dict[str, Any]:
        """Of `$connect`."""
        context = self._context("$connect", "CONNECT", now_ms)
        return {**self.handshake.to_event(), "requestContext": context, "isBase64Encoded": False}

    def message_event(self, route: str, body: str, *, now_ms: int) -> dict[str, Any]:
        """Of a message."""
        context = self._context(route, "MESSAGE", now_ms) | {"messageId": new_id()}
        return {"requestContext": context, "body": body, "isBase64Encoded": False}

    def disconnect_event(self, code: int, reason: str, *, now_ms: int) -> dict[str, Any]:
        """Of `$disconnect`; `code` is 1006 where the socket ended without a close frame."""
        context = self._context("$disconnect", "DISCONNECT", now_ms)
        context |= {"disconnectStatusCode": code, "disconnectReason": reason}
        headers = {"Host": DOMAIN, "x-api-key": "", "x-restapi": ""}
        multi = {name: [value] for name, value in headers.items()}
        return {"headers": headers, "multiValueHeaders": multi, "requestContext": context, "isBase64Encoded": False}

    def _context(self, route: str, kind: EventType, now_ms: int) -> dict[str, Any]:
        context: dict[str, Any] = {
            "routeKey": route,
            "eventType": kind,
            "extendedRequestId": new_id(),
            "requestTime": time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(now_ms / 1_000)),
            "messageDirection": "IN",
            "stage": self.stage,
            "connectedAt": self.connected_at_ms,
            "requestTimeEpoch": now_ms,
            "identity": {"sourceIp": "127.0.0.1", "userAgent": self.handshake.user_agent},
            "requestId": new_id(),
            "domainName": DOMAIN,
            "connectionId": self.connection,
            "apiId": API_ID,
        }
        if self.authorizer:
            context["authorizer"] = {**self.authorizer, "integrationLatency": 1}
        return context
