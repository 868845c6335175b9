"""Connections: `$connect`, `$disconnect`, `ping`, subscriptions, and a clear error for what no route serves."""

from __future__ import annotations

from typing import Any, Final

from handlers.serving import Routes, answer
from threadkeep.domain import times
from threadkeep.domain.commands import Ping, Subscribe, Unsubscribe
from threadkeep.domain.errors import Refused
from threadkeep.domain.model import Caller
from threadkeep.gateway.events import PROTOCOL, read_caller, read_protocols
from threadkeep.telemetry import count, instrumented
from threadkeep.usecases import conversations
from threadkeep.usecases.services import Reply, Services


def _ping(services: Services, _caller: Caller, _command: Ping) -> Reply:
    return {"now": times.to_rfc3339(services.clock.now_ms())}


ROUTES: Final[Routes] = {
    Ping: _ping,
    Subscribe: conversations.subscribe,
    Unsubscribe: conversations.unsubscribe,
}


def _handle(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    # By the event's type, not by the route's name: a client may call its action `$connect`.
    match event["requestContext"]["eventType"]:
        case "CONNECT":
            return _connect(event)
        case "DISCONNECT":
            # Nothing hangs on it: it is best effort, and a viewer's lease ends by itself.
            count("Disconnections")
            return {"statusCode": 200}
        case _:
            return answer(event, ROUTES)


def _connect(event: dict[str, Any]) -> dict[str, Any]:
    try:
        read_caller(event)
    except Refused:
        count("Connections", outcome="refused")
        return {"statusCode": 401}
    count("Connections", outcome="ok")
    if PROTOCOL in read_protocols(event):
        return {"statusCode": 200, "headers": {"Sec-WebSocket-Protocol": PROTOCOL}}
    return {"statusCode": 200}


handler = instrumented(_handle)
