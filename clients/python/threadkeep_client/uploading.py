"""What does not fit a frame is uploaded first, and named afterwards (protocol, section 6)."""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import urllib.error
import urllib.request
from typing import Final
from urllib.parse import urlsplit

from threadkeep_client.connection import Connection
from threadkeep_client.errors import UnavailableError
from threadkeep_client.frames import FRAME_BYTES_MAX, json_bytes, to_json
from threadkeep_client.wire import JsonObject, Part

_ATTEMPTS_MAX: Final = 3
_SILENCE_S: Final = 30.0
"""How long the store may take nothing and say nothing."""
_AROUND_FIELDS_BYTES: Final = 512
"""What stands around the given fields of a request: action, ref, ids, epoch, offset."""


async def upload(connection: Connection, conversation: str, content: bytes, *, media_type: str | None = None) -> str:
    """Upload bytes for a conversation; the `ref` by which its messages may name them, for two days.

    Every attempt asks for the URL anew: one may have run out before a slow upload began.

    Args:
        connection: with scope `chat` or `produce`.
        conversation: its id.
        content: at most 8 MiB; held in memory.
        media_type: as a `blob` part says it.

    Raises:
        TooLargeError: There are more bytes than the service takes.
        UnavailableError: The store did not take them; `reason` is `upload`.
        WireError: As any request.
    """
    said: JsonObject = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    if media_type is not None:
        said["media_type"] = media_type
    pauses = connection.settings.repeat.pauses()
    for attempt in range(1, _ATTEMPTS_MAX + 1):
        told = (await connection.request("blob.create", conversation=conversation, **said))["upload"]
        try:
            await asyncio.to_thread(_put, told["url"], told["headers"], content)
        except (OSError, http.client.HTTPException) as error:
            if attempt == _ATTEMPTS_MAX:
                raise UnavailableError(
                    f"the store did not take {len(content):,} bytes: {error}", reason="upload", retryable=True
                ) from error
            await asyncio.sleep(next(pauses))
        else:
            break
    return str(told["ref"])


async def upload_parts(connection: Connection, conversation: str, parts: list[Part]) -> JsonObject:
    """Upload a message's parts; what a request says in their place. Raises as `upload`."""
    content = to_json(parts).encode()
    return {"ref": await upload(connection, conversation, content, media_type="application/json")}


def fits_frame(fields: JsonObject) -> bool:
    """Whether a request with these fields fits a frame."""
    return json_bytes(fields) <= FRAME_BYTES_MAX - _AROUND_FIELDS_BYTES


def _put(url: str, headers: dict[str, str], content: bytes) -> None:
    """Put the content there.

    Raises:
        OSError: It was not taken, `urllib.error.HTTPError` among the reasons.
        http.client.HTTPException: What answered is no HTTP server.
        ValueError: The URL is none of HTTP.
    """
    if urlsplit(url).scheme not in {"http", "https"}:
        raise ValueError(f"an upload goes by HTTP, not to {url.partition(':')[0]!r}")
    request = urllib.request.Request(url, data=content, headers=headers, method="PUT")  # noqa: S310 -- looked at above
    try:
        with urllib.request.urlopen(request, timeout=_SILENCE_S) as answer:  # noqa: S310 -- likewise
            answer.read()
    except urllib.error.HTTPError as refused:
        refused.close()  # it is an answer too, and holds the connection
        raise
