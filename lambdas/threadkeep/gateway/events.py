"""API Gateway's WebSocket events, as far as we read them."""

from __future__ import annotations

from typing import Any, Final

from threadkeep.domain.errors import Refused
from threadkeep.domain.model import Caller

PRINCIPAL_BYTES_MAX: Final = 256
"""In UTF-8; percent-encoded three times that, and both names in one key must stay under DynamoDB's 2,048 bytes."""
PROTOCOL: Final = "threadkeep.v1"


def read_caller(event: dict[str, Any]) -> Caller:
    """Who sent this, by the authorizer's context alone; its values arrive as strings, whatever they were.

    Raises:
        Refused: ``unauthorized`` where a value is missing, empty or no string: nobody shares a tenant by default.
    """
    context = event["requestContext"]
    vouched = context.get("authorizer")
    if not isinstance(vouched, dict):
        raise _unvouched()
    tenant, user, scope, expiry = (vouched.get(name) for name in ("tenant", "sub", "scope", "exp"))
    if not (is_principal(tenant) and is_principal(user) and isinstance(scope, str) and isinstance(expiry, str)):
        raise _unvouched()
    if not expiry.isdecimal():
        raise _unvouched()
    return Caller(
        tenant=str(tenant),
        user=str(user),
        scopes=frozenset(scope.split()),
        expires_at_ms=int(expiry) * 1_000,
        connection=context["connectionId"],
    )


def is_principal(value: object) -> bool:
    """Whether it can name a tenant or a user."""
    try:
        return isinstance(value, str) and 0 < len(value.encode()) <= PRINCIPAL_BYTES_MAX
    except UnicodeEncodeError:
        return False  # half a surrogate, which JSON can say and no key can hold


def read_headers(event: dict[str, Any]) -> dict[str, str]:
    """The handshake's headers, names in lower case; of several of one name a list separated by commas."""
    headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
    for name, values in (event.get("multiValueHeaders") or {}).items():
        headers[name.lower()] = ",".join(values)
    return headers


def read_protocols(event: dict[str, Any]) -> list[str]:
    """The subprotocols that the client offers."""
    offered = read_headers(event).get("sec-websocket-protocol", "")
    return [protocol.strip() for protocol in offered.split(",") if protocol.strip()]


def _unvouched() -> Refused:
    return Refused("unauthorized", "The connection carries no tenant and user; connect again with a valid token.")
