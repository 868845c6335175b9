"""Everything that can go wrong, as one tree.

* `ThreadkeepError`
    * `ConnectionFailedError`: nobody answers at the address
        * `TokenRefusedError`: somebody answers and refuses the token
    * `ConnectionEndedError`: used after `close`
    * `StreamEndedError`: an answer that can no longer be written to (see `threadkeep_client.producer`)
    * `WireError`: an error reply; `code`, `reason`, `detail`, `retryable`, `retry_after_s`
        * `BadRequestError`, `TooLargeError`, `TokenExpiredError`, `UnauthorizedError`, `RateLimitedError`,
          `NotFoundError`, `ConflictError`, `FencedError`, `ClosedError`, `GapError`, `UnavailableError`,
          `InternalError`: one a code of the protocol (section 2); a code that this version does not know is a bare
          `WireError`
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final


class ThreadkeepError(Exception):
    """Base of all errors of this package."""


class ConnectionFailedError(ThreadkeepError):
    """No connection could be made; the message says to where, and why."""


class TokenRefusedError(ConnectionFailedError):
    """The deployment refused the token in the handshake, also after the token source was asked anew."""


class ConnectionEndedError(ThreadkeepError):
    """The connection was closed by its owner, so nothing can be sent any more."""


class WireError(ThreadkeepError):
    """An error reply of the protocol.

    Attributes:
        action: Of the request that it answers; empty where it answers none.
        code: One of the protocol's codes.
        reason: Narrows a code down, e.g. `stale_leaf` for `conflict`.
        detail: What helps to go on: `leaf`, `expected`, `settled`.
        retryable: Whether the same request may succeed when repeated.
        retry_after_s: How long the service asks to wait before that, if it says so.
    """

    code: str = ""
    _by_code: ClassVar[dict[str, type[WireError]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        WireError._by_code[cls.code] = cls

    def __init__(
        self,
        message: str,
        *,
        action: str = "",
        code: str | None = None,
        reason: str | None = None,
        detail: Mapping[str, Any] | None = None,
        retryable: bool = False,
        retry_after_s: float | None = None,
    ) -> None:
        name = code or self.code
        told = f"{name}/{reason}: {message}" if reason else f"{name}: {message}"
        super().__init__(f"{told} ({action})" if action else told)
        self.action = action
        self.code = name
        self.reason = reason
        self.detail: Mapping[str, Any] = detail or {}
        self.retryable = retryable
        self.retry_after_s = retry_after_s

    @classmethod
    def from_frame(cls, frame: Mapping[str, Any], action: str = "") -> WireError:
        """Read the error reply to an action; fields of a wrong type count as absent."""
        code = frame.get("code")
        code = code if isinstance(code, str) else "internal"
        reason, detail, pause = frame.get("reason"), frame.get("detail"), frame.get("retry_after_ms")
        return cls._by_code.get(code, WireError)(
            str(frame.get("message", "no message")),
            action=action,
            code=code,
            reason=reason if isinstance(reason, str) else None,
            detail=detail if isinstance(detail, dict) else None,
            retryable=frame.get("retryable") is True,
            retry_after_s=pause / 1000 if isinstance(pause, (int, float)) and pause >= 0 else None,
        )


class BadRequestError(WireError):
    """The request is malformed."""

    code = "bad_request"


class TooLargeError(WireError):
    """Something is over a bound; also raised before sending, since a frame over 24 KiB is never sent."""

    code = "too_large"


class TokenExpiredError(WireError):
    """The connection outlived its token: the connection reconnects by itself if its token source can mint another."""

    code = "token_expired"


class UnauthorizedError(WireError):
    """The token lacks the scope."""

    code = "unauthorized"


class RateLimitedError(WireError):
    """Too much in too short a time."""

    code = "rate_limited"


class NotFoundError(WireError):
    """Foreign, deleted, or never there: which of them is not told."""

    code = "not_found"


class ConflictError(WireError):
    """The request contradicts what stands; `reason` says how."""

    code = "conflict"


class FencedError(WireError):
    """Another producer's epoch has taken this stream over."""

    code = "fenced"


class ClosedError(WireError):
    """The stream is sealed; `detail["settled"]` is the stored message if there is one already."""

    code = "closed"


class GapError(WireError):
    """An append skipped something; `detail["expected"]` is the offset to go on from."""

    code = "gap"


class UnavailableError(WireError):
    """No answer, or none that counts: the request may have been carried out, or not."""

    code = "unavailable"


class InternalError(WireError):
    """A fault of the service."""

    code = "internal"


VERDICTS: Final = frozenset({"not_found", "fenced", "closed", "gap"})
"""Codes that tell the caller to do something else than repeat, whatever `retryable` says."""
WAITING_REASONS: Final = frozenset({"parent_open", "parent_missing"})
"""The reasons of `conflict` that pass with time; all others ask for a decision."""


def is_repeatable(error: WireError) -> bool:
    """Whether the same request, repeated after a pause, may succeed without anything else being done."""
    if error.code in VERDICTS or not error.retryable:
        return False
    return error.code != "conflict" or error.reason in WAITING_REASONS
