from __future__ import annotations

import pytest

from threadkeep_client.errors import ConflictError, GapError, InternalError, WireError, is_repeatable


def test_a_reply_becomes_the_error_of_its_code() -> None:
    error = WireError.from_frame(
        {"type": "error", "code": "gap", "message": "m", "detail": {"expected": 3}, "retryable": True}
    )
    assert isinstance(error, GapError)
    assert error.detail["expected"] == 3
    error = WireError.from_frame({"code": "conflict", "reason": "held", "message": "m", "retry_after_ms": 1500})
    assert isinstance(error, ConflictError)
    assert (error.reason, error.retry_after_s, error.retryable) == ("held", 1.5, False)
    assert str(error) == "conflict/held: m"
    assert str(WireError.from_frame({"code": "gap", "message": "m"}, "stream.append")) == "gap: m (stream.append)"


def test_codes_of_a_later_version_are_borne() -> None:
    error = WireError.from_frame({"code": "melted", "message": "m", "retryable": True})
    assert type(error) is WireError
    assert error.code == "melted"
    assert is_repeatable(error)


@pytest.mark.parametrize("field", [{"code": 1}, {"reason": 1}, {"detail": []}, {"retry_after_ms": "1"}])
def test_fields_of_a_wrong_type_count_as_absent(field: dict[str, object]) -> None:
    error = WireError.from_frame({"code": "internal", "message": "m", **field})
    assert isinstance(error, InternalError)
    assert (error.reason, dict(error.detail), error.retry_after_s) == (None, {}, None)


@pytest.mark.parametrize(
    ("code", "reason", "retryable", "repeatable"),
    [
        ("unavailable", None, True, True),
        ("unavailable", None, False, False),
        ("internal", None, True, True),
        ("rate_limited", None, True, True),
        ("conflict", "parent_open", True, True),
        ("conflict", "parent_missing", True, True),
        ("conflict", "stale_leaf", True, False),
        ("conflict", "held", True, False),
        ("gap", None, True, False),
        ("not_found", None, True, False),
        ("fenced", None, True, False),
        ("closed", None, True, False),
        ("bad_request", None, False, False),
    ],
)
def test_what_may_be_repeated(code: str, reason: str | None, *, retryable: bool, repeatable: bool) -> None:
    error = WireError.from_frame({"code": code, "reason": reason, "message": "m", "retryable": retryable})
    assert is_repeatable(error) is repeatable
