"""Tokens, checked against the issuer's published keys."""

from __future__ import annotations

import time
from typing import Any, Final

import jwt
from jwt import PyJWKClient

from threadkeep.ports import TokenRefused

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA")
"""Signatures by a private key only: with a shared secret every checker could mint tokens."""

_KEYS_FRESH_S: Final = 300
_REFRESH_EVERY_S: Final = 60
_FETCH_TIMEOUT_S: Final = 3


class JwksVerifier:
    """Checks a JWT's signature, issuer, audience and expiry.

    The keys are fetched once and kept for five minutes. A token that names an unknown key causes a fetch of its own,
    but at most one a minute: otherwise made-up key ids would have us hammer the issuer.
    """

    def __init__(self, *, url: str, issuer: str, audience: str) -> None:
        self._keys = PyJWKClient(url, cache_keys=False, lifespan=_KEYS_FRESH_S, timeout=_FETCH_TIMEOUT_S)
        self._issuer = issuer
        self._audience = audience
        self._refreshed_s = float("-inf")

    def claims(self, token: str) -> dict[str, Any]:
        """The claims of a token that holds.

        Raises:
            TokenRefused: it does not, or the keys cannot be had.
        """
        try:
            key = self._key(jwt.get_unverified_header(token).get("kid"))
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=list(ALGORITHMS),
                issuer=self._issuer,
                audience=self._audience,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except (jwt.PyJWTError, ValueError, OSError) as error:  # the last two: keys that are no JSON, a cut connection
            raise TokenRefused(type(error).__name__) from error
        return claims

    def _key(self, key_id: str | None) -> jwt.PyJWK:
        found = self._find(key_id, refresh=False)
        now_s = time.monotonic()
        if found is None and now_s - self._refreshed_s >= _REFRESH_EVERY_S:
            self._refreshed_s = now_s
            found = self._find(key_id, refresh=True)
        if found is None:
            raise TokenRefused("unknown key")
        return found

    def _find(self, key_id: str | None, *, refresh: bool) -> jwt.PyJWK | None:
        keys = self._keys.get_signing_keys(refresh=refresh)
        return next((key for key in keys if key.key_id == key_id), None)
