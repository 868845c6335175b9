"""What OpenAI-compatible servers say when they fail, in an answer of its own or in the middle of a stream."""

from __future__ import annotations

from typing import Any, Final

from threadkeep.responder.answers import Failed, code_from

_RETRYABLE: Final = frozenset({408, 409, 429})
_SERVER_ERROR: Final = 500
_RETRYABLE_CODES: Final = frozenset({"overloaded_error", "rate_limit_exceeded", "server_error", "timeout"})
_FINAL_CODES: Final = frozenset({"insufficient_quota"})
"""Comes with 429, and stays."""


def failure_from(told: Any, *, status: int | None = None) -> Failed:
    """The failure in an error's JSON (None where there was none), with the HTTP status if it was an answer's.

    OpenAI says ``{"error": {"message", "type", "code"}}`` (recalled 2026-11-29). Others give the status as
    code, so that the type says more; leave out the envelope (older vLLM); or give a sentence in place of the object
    (Ollama). Of sentences nothing is kept: they may quote the question.
    """
    error = told.get("error", told) if isinstance(told, dict) else None
    fields: dict[str, Any] = error if isinstance(error, dict) else {}
    number = fields.get("code")
    if status is None and isinstance(number, int):
        status = number
    unnamed = "provider_error" if status is None else f"http_{status}"
    code = code_from(number, code_from(fields.get("type"), unnamed))
    is_passing = status is not None and (status in _RETRYABLE or status >= _SERVER_ERROR)
    return Failed(code, retryable=code not in _FINAL_CODES and (is_passing or code in _RETRYABLE_CODES))
