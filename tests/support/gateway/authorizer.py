"""What the gateway makes of a REQUEST authorizer's answer."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.support.gateway.functions import Functions, IntegrationFailed

_ACTION = "execute-api:Invoke"


class HandshakeRefused(Exception):  # noqa: N818 -- an answer, not a fault
    """The handshake ends with this HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


async def authorize(functions: Functions, event: dict[str, Any], *, bytes_max: int) -> dict[str, str]:
    """Ask the authorizer; what it vouches for, every value as a string, and `principalId` beside it.

    Raises:
        HandshakeRefused: 403 where the policy does not allow `$connect`; 401 where the authorizer raised
            `Exception("Unauthorized")`; 500 where it failed otherwise or its answer cannot be read.
    """
    try:
        answer = await functions.invoke("authorizer", event)
    except IntegrationFailed as failed:
        if str(failed.__cause__) == "Unauthorized":
            raise HandshakeRefused(401, "Unauthorized") from failed
        raise HandshakeRefused(500, "Internal server error") from failed
    if len(json.dumps(answer).encode()) > bytes_max:
        raise HandshakeRefused(500, "Internal server error")
    try:
        allowed = _is_allowed(answer["policyDocument"], event["methodArn"])
        context = {name: _as_text(value) for name, value in (answer.get("context") or {}).items()}
        principal = _as_text(answer["principalId"])
    except (KeyError, TypeError, AttributeError) as error:
        raise HandshakeRefused(500, "Internal server error") from error
    if not allowed:
        raise HandshakeRefused(403, "User is not authorized to access this resource")
    return {**context, "principalId": principal}


def _is_allowed(policy: dict[str, Any], arn: str) -> bool:
    """Whether the policy allows the call: a deny comes before every allow, and silence is a deny."""
    effects = {
        statement["Effect"]
        for statement in policy["Statement"]
        if any(_matches(action.lower(), _ACTION.lower()) for action in _as_list(statement["Action"]))
        and any(_matches(resource, arn) for resource in _as_list(statement["Resource"]))
    }
    return effects == {"Allow"}


def _matches(pattern: str, text: str) -> bool:
    """IAM's wildcards: `*` any run of characters, `?` any one."""
    expression = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(expression, text, re.DOTALL) is not None


def _as_list(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _as_text(value: Any) -> str:
    """As later routes get it. Lists and objects are not allowed in a context."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise TypeError(f"an authorizer's context holds flat values, not {type(value).__name__}")
