"""Tokens: held while they last, asked of their source anew when they run out or are refused."""

from __future__ import annotations

import base64
import binascii
import inspect
import json
import time
from collections.abc import Awaitable, Callable
from typing import Final

from threadkeep_client.errors import ConnectionFailedError

TokenSource = str | Callable[[], str | Awaitable[str]]
"""A token, or a function (plain or async) that gives one."""

RENEW_BEFORE_S: Final = 60.0
"""A token with less left is renewed before it is used (protocol, section 1)."""


def expires_at(token: str) -> float | None:
    """The `exp` of a JWT in seconds since 1970, unverified; None where there is none to read."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        exp = claims["exp"]
    except (IndexError, KeyError, TypeError, ValueError, binascii.Error):
        return None
    return float(exp) if isinstance(exp, (int, float)) else None


class TokenKeeper:
    """Holds the token of a connection.

    Args:
        source: Where tokens come from.
        wall_s: The wall clock, in seconds since 1970.
    """

    def __init__(self, source: TokenSource, wall_s: Callable[[], float] = time.time) -> None:
        self._source = source
        self._wall_s = wall_s
        self._held: str | None = None

    @property
    def renewable(self) -> bool:
        """Whether asking again can give another token."""
        return callable(self._source)

    async def get(self) -> str:
        """The held token, or a new one where it is refused, or has under a minute left.

        Raises:
            ConnectionFailedError: The source raised; its error is the cause.
        """
        if self._held is None or self._runs_out(self._held):
            self._held = await self._ask()
        return self._held

    def refuse(self) -> None:
        """Forget the held token: it was refused."""
        self._held = None

    def _runs_out(self, token: str) -> bool:
        end = expires_at(token)
        return end is not None and end - self._wall_s() < RENEW_BEFORE_S

    async def _ask(self) -> str:
        if isinstance(self._source, str):
            return self._source
        try:
            given = self._source()
            return await given if inspect.isawaitable(given) else given
        except Exception as error:
            raise ConnectionFailedError(f"the token source raised {type(error).__name__}") from error
