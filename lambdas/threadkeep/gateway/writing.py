"""From a use case's answer to a frame."""

from __future__ import annotations

from typing import Any

from threadkeep.domain.bounds import FRAME_BYTES_MAX
from threadkeep.domain.errors import Refused
from threadkeep.domain.json_values import encode


def write_reply(action: str, ref: str | None, fields: dict[str, Any]) -> bytes:
    """``<action>.ok`` with its fields.

    Raises:
        ValueError: it takes more than a frame; the use case had to see to that.
    """
    frame = encode({"type": f"{action}.ok", **_ref(ref), **fields})
    if len(frame) > FRAME_BYTES_MAX:
        raise ValueError(f"the reply to {action} takes {len(frame)} bytes, more than a frame")
    return frame


def write_error(ref: str | None, refused: Refused) -> bytes:
    """The error frame of a refusal."""
    frame: dict[str, Any] = {"type": "error", **_ref(ref), "code": refused.code}
    if refused.reason is not None:
        frame["reason"] = refused.reason
    frame["message"] = refused.message
    if refused.detail is not None:
        frame["detail"] = refused.detail
    frame["retryable"] = refused.retryable
    if refused.retry_after_ms is not None:
        frame["retry_after_ms"] = refused.retry_after_ms
    return encode(frame)


def _ref(ref: str | None) -> dict[str, str]:
    return {} if ref is None else {"ref": ref}
