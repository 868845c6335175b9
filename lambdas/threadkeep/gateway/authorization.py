"""The handshake: who may connect (docs/protocol.md, section 1)."""

from __future__ import annotations

from typing import Any, Final

from threadkeep.config import Config
from threadkeep.domain.bounds import TOKEN_BYTES_MAX
from threadkeep.gateway.events import is_principal, read_headers, read_protocols
from threadkeep.ports import TokenRefused, TokenVerifier

_BEARER_PROTOCOL: Final = "bearer."
_BEARER_HEADER: Final = "bearer "


def authorize(event: dict[str, Any], config: Config, verifier: TokenVerifier) -> dict[str, str]:
    """What the authorizer vouches for: ``tenant``, ``sub``, ``scope``, ``exp``, all strings.

    Raises:
        TokenRefused: no token, one that does not hold, one without tenant or user, or a page of a foreign origin.
    """
    _check_origin(read_headers(event).get("origin"), config.allowed_origins)
    token = _find_token(event, query_token=config.query_token)
    if len(token.encode()) > TOKEN_BYTES_MAX:
        raise TokenRefused("token too long")
    claims = verifier.claims(token)
    tenant, user, scope, expiry = (claims.get(name) for name in ("tenant", "sub", "scope", "exp"))
    if not is_principal(tenant) or not is_principal(user):
        raise TokenRefused("token without tenant or user")
    if not isinstance(scope, str) or not isinstance(expiry, int) or isinstance(expiry, bool):
        raise TokenRefused("token without scope or expiry")
    return {"tenant": str(tenant), "sub": str(user), "scope": scope, "exp": str(expiry)}


def _check_origin(origin: str | None, allowed: tuple[str, ...]) -> None:
    """Compared whole: a suffix or a prefix match lets a neighbour's page in. Servers send none."""
    if origin is not None and origin not in allowed:
        raise TokenRefused("origin not allowed")


def _find_token(event: dict[str, Any], *, query_token: bool) -> str:
    header = read_headers(event).get("authorization", "")
    if header[: len(_BEARER_HEADER)].lower() == _BEARER_HEADER:
        return header[len(_BEARER_HEADER) :].strip()
    for protocol in read_protocols(event):
        if protocol.startswith(_BEARER_PROTOCOL):
            return protocol.removeprefix(_BEARER_PROTOCOL)
    query = event.get("queryStringParameters") or {}
    if query_token and isinstance(query.get("token"), str):
        return str(query["token"])
    raise TokenRefused("no token")
