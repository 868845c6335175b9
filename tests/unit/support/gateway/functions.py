"""Handlers for the gateway to run: they note their events and answer as a test tells them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

from tests.support.gateway.functions import Handler

Answer = Callable[[dict[str, Any]], Any]

ROUTES = {"connection": ("ping",), "send": ("say", "shout")}


class Lambdas:
    """The functions `authorizer`, `connection` and `send`.

    Attributes:
        events: every event, in the order in which functions began.
        on_authorize, on_connect, on_message: what they answer; by default they let all in, and echo.
    """

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.on_authorize: Answer = allow
        self.on_connect: Answer = lambda _: {"statusCode": 200}
        self.on_message: Answer = echo
        self._lock = threading.Lock()

    def handlers(self) -> dict[str, Handler]:
        return {"authorizer": self._authorize, "connection": self._run, "send": self._run}

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        with self._lock:
            return [event for event in self.events if event["requestContext"]["eventType"] == kind]

    def _authorize(self, event: dict[str, Any], _: Any) -> Any:
        return self.on_authorize(event)

    def _run(self, event: dict[str, Any], context: Any) -> Any:
        with self._lock:
            self.events.append(event | {"function": context.function_name})
        match event["requestContext"]["eventType"]:
            case "CONNECT":
                return self.on_connect(event)
            case "MESSAGE":
                return self.on_message(event)
        return {"statusCode": 200}


def echo(event: dict[str, Any]) -> dict[str, Any]:
    return {"statusCode": 200, "body": event["body"]}


def allow(event: dict[str, Any], **context: Any) -> dict[str, Any]:
    return policy("Allow", event["methodArn"], **context)


def policy(effect: str, *resources: str, **context: Any) -> dict[str, Any]:
    statements = [{"Action": "execute-api:Invoke", "Effect": effect, "Resource": [resource]} for resource in resources]
    document = {"Version": "2012-10-17", "Statement": statements}
    return {"principalId": "ann", "policyDocument": document, "context": context}


def message(action: str = "say", **fields: Any) -> str:
    return json.dumps({"action": action, **fields})
