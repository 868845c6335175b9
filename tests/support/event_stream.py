"""AWS's binary event streams, written as the service writes them, and a server on 127.0.0.1 that sends one.

The format: total and header length and a CRC of both, headers, payload, a CRC of all (AWS documentation of Amazon
Transcribe, "Event stream encoding", recalled 2026-11-29; botocore's own reader is what checks it here).
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any

_STRING = 7


def message(payload: Mapping[str, Any], **headers: str) -> bytes:
    """One message; headers by their names without the colon, underscores for hyphens."""
    encoded = b"".join(_header(f":{name.replace('_', '-')}", value) for name, value in headers.items())
    body = json.dumps(payload).encode()
    prelude = struct.pack("!II", 16 + len(encoded) + len(body), len(encoded))
    whole = prelude + struct.pack("!I", zlib.crc32(prelude)) + encoded + body
    return whole + struct.pack("!I", zlib.crc32(whole))


def event(kind: str, payload: Mapping[str, Any]) -> bytes:
    """An event."""
    return message(payload, event_type=kind, content_type="application/json", message_type="event")


def exception(kind: str, text: str) -> bytes:
    """An exception that ends the stream."""
    return message({"message": text}, exception_type=kind, content_type="application/json", message_type="exception")


def _header(name: str, value: str) -> bytes:
    return bytes([len(name)]) + name.encode() + bytes([_STRING]) + struct.pack("!H", len(value)) + value.encode()
