"""What has to be passed before a client is connected."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus
from http.client import responses
from typing import Final

from websockets.http11 import Request

from tests.support.gateway.api import Api
from tests.support.gateway.authorizer import HandshakeRefused, authorize
from tests.support.gateway.events import Connected, Handshake, new_id
from tests.support.gateway.functions import IntegrationFailed

_PROTOCOL_HEADER: Final = "sec-websocket-protocol"


async def connect(api: Api, request: Request) -> tuple[Connected, dict[str, str]]:
    """Ask the authorizer, then `$connect`; what they said, and the headers that the handshake's answer gets of it.

    Raises:
        HandshakeRefused: there, or by a limit of the gateway's own.
    """
    if not api.bucket.take():
        raise HandshakeRefused(HTTPStatus.TOO_MANY_REQUESTS, "Too Many Requests")
    if len(request.path) > api.limits.url_chars_max:
        raise HandshakeRefused(HTTPStatus.REQUEST_URI_TOO_LONG, "URI too long")
    handshake = Handshake.from_request(request)
    if not {name.lower() for name in api.identity_sources} <= {name.lower() for name in handshake.headers}:
        raise HandshakeRefused(HTTPStatus.UNAUTHORIZED, "Unauthorized")
    connected = Connected(stage=api.stage, connection=new_id(), connected_at_ms=api.clock.now_ms(), handshake=handshake)
    if "authorizer" in api.functions:
        event = connected.authorizer_event(now_ms=api.clock.now_ms())
        vouched = await authorize(api.functions, event, bytes_max=api.limits.authorizer_bytes_max)
        connected = replace(connected, authorizer=vouched)
    return connected, await _ask_connect(api, connected)


async def _ask_connect(api: Api, connected: Connected) -> dict[str, str]:
    """Run `$connect`. Of its headers the subprotocol alone goes on; a status beyond 2xx is the handshake's."""
    try:
        reply = await api.functions.invoke(api.function("$connect"), connected.connect_event(now_ms=api.clock.now_ms()))
        status = int(reply["statusCode"])
        headers = dict(reply.get("headers") or {})
    except (IntegrationFailed, TypeError, KeyError, ValueError, AttributeError) as error:
        raise HandshakeRefused(HTTPStatus.BAD_GATEWAY, "Internal server error") from error
    if status // 100 != HTTPStatus.OK // 100:
        raise HandshakeRefused(status, responses.get(status, ""))
    return {name: value for name, value in headers.items() if name.lower() == _PROTOCOL_HEADER}
