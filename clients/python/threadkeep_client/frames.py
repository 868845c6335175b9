"""Frames: JSON in UTF-8 without needless escapes, at most 24 KiB.

Numbers keep their kind: integers stay integers of any size up to 4,300 digits, Python's own bound for reading one;
longer ones, and numbers with a point or an exponent, are doubles. What doubles cannot hold is rounded as IEEE 754 says:
`0.1000…0001` reads as `0.1`, `1e400` as infinity, which `encode` refuses, since JSON has no word for it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from threadkeep_client.errors import TooLargeError

FRAME_BYTES_MAX: Final = 24 * 1024
OPS_BYTES_MAX: Final = 16 * 1024
"""The ops of one append, so that a delta fits its frame."""


def clean(text: str) -> str:
    """Join surrogate pairs that stand as two code points, and replace lone halves with U+FFFD: UTF-8 has no halves."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def holds_halves(value: Any) -> bool:
    """Whether `clean` would replace something of a value's texts; what is no JSON in it is passed over."""
    text = json.dumps(value, ensure_ascii=False, default=lambda _: None)
    lost = "\N{REPLACEMENT CHARACTER}"
    return clean(text).count(lost) > text.count(lost)


def to_json(value: Any) -> str:
    """Compact JSON that UTF-8 can carry.

    Raises:
        ValueError: A number is infinite or not a number.
        TypeError: `value` holds what JSON cannot.
    """
    return clean(json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False))


class TooDeepError(ValueError):
    """JSON that is nested deeper than Python reads at once; it may be none behind that."""


def from_json(text: str | bytes) -> Any:
    """A value; numbers as the module says.

    Raises:
        TooDeepError: It is nested too deeply to read.
        ValueError: It is no JSON.
    """
    try:
        return json.loads(text, parse_int=_integer, parse_constant=_no_number)
    except RecursionError as error:
        raise TooDeepError("nested too deeply") from error


def json_bytes(value: Any) -> int:
    """The size of `value` on the wire, in UTF-8 bytes of JSON."""
    return len(to_json(value).encode())


def encode(frame: Mapping[str, Any]) -> str:
    """A request as text.

    Raises:
        TooLargeError: It does not fit a frame.
    """
    text = to_json(frame)
    size = len(text.encode())
    if size > FRAME_BYTES_MAX:
        raise TooLargeError(
            f"{frame.get('action', 'the frame')} takes {size:,} bytes, a frame at most {FRAME_BYTES_MAX:,}",
            reason="frame",
        )
    return text


def decode(text: str | bytes) -> dict[str, Any] | None:
    """A received frame, or None for what is no frame of ours: no JSON, no object, or without a `type`.

    Such a frame is the gateway's own, and names no request.
    """
    try:
        frame = from_json(text)
    except ValueError:
        return None
    if not isinstance(frame, dict) or not isinstance(frame.get("type"), str):
        return None
    return frame


def _integer(digits: str) -> int | float:
    """One number of somebody else's must not make the whole frame unreadable."""
    try:
        return int(digits)
    except ValueError:
        return float(digits)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
