"""Uploads: what does not fit a frame goes to the bucket first, and is named afterwards."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Raw

from threadkeep.domain import times
from threadkeep.domain.bounds import (
    BLOBS_MAX,
    DOWNLOAD_URL_S,
    JSON_DEPTH_MAX,
    UPLOAD_BYTES_MAX,
    UPLOAD_FIELDS_MAX,
    UPLOAD_URL_S,
)
from threadkeep.domain.commands import CreateBlob, GetBlob, PartList, Ref
from threadkeep.domain.errors import Refused, conflict, not_found
from threadkeep.domain.json_text import clean, is_utf8, measure
from threadkeep.domain.json_values import JsonObject, complaint, encode, read_text
from threadkeep.domain.model import Caller, ConversationKey
from threadkeep.domain.ops import Parts, kind
from threadkeep.domain.uploads import Upload
from threadkeep.usecases.checks import check_parts
from threadkeep.usecases.services import Reply, Services, authorize

_PARTS: Final = msgspec.json.Decoder(PartList)


def create(services: Services, caller: Caller, command: CreateBlob) -> Reply:
    """Say where to upload. Nothing is written: asked again, the same ref comes back with a new URL."""
    if command.bytes > UPLOAD_BYTES_MAX:
        raise Refused("too_large", f"An upload takes at most {UPLOAD_BYTES_MAX} bytes.")
    key = authorize(services, caller, command.conversation, fresh=True)
    upload = Upload(command.bytes, command.sha256)
    put = services.uploads.presign(key, upload, media_type=command.media_type, lives_s=UPLOAD_URL_S)
    expires_ms = services.clock.now_ms() + UPLOAD_URL_S * 1_000
    return {
        "upload": {
            "ref": upload.to_ref(),
            "method": "PUT",
            "url": put.url,
            "headers": put.headers,
            "expires_at": times.to_rfc3339(expires_ms),
        }
    }


def get(services: Services, caller: Caller, command: GetBlob) -> Reply:
    """Where to download what a message of the conversation keeps; asked again, there is a new URL.

    Raises:
        Refused: ``not_found``, also for an upload that no message has named.
    """
    key = authorize(services, caller, command.conversation, fresh=True)
    upload = Upload.from_ref(command.blob)
    url = None if upload is None else services.uploads.presign_get(key, upload, lives_s=DOWNLOAD_URL_S)
    if url is None:
        raise not_found()
    expires_ms = services.clock.now_ms() + DOWNLOAD_URL_S * 1_000
    return {"download": {"url": url, "expires_at": times.to_rfc3339(expires_ms)}}


def read_parts(services: Services, key: ConversationKey, said: list[JsonObject] | Ref) -> Parts:
    """A message's parts as the request has them, or as they lie in the upload that it names; what they name is kept.

    Raises:
        Refused: ``conflict`` with ``upload_missing`` or ``upload_damaged``; ``bad_request`` or ``too_large`` for what
            would be refused in a frame as well.
    """
    parts = tuple(_uploaded(services, key, said) if isinstance(said, Ref) else said)
    keep_named(services, key, (part for part in parts if kind(part) == "blob"))
    return parts


def keep_named(services: Services, key: ConversationKey, blobs: Iterable[JsonObject]) -> None:
    """Let the uploads that these parts name stay for good; a ``ref`` that is none of ours is the client's own affair.

    Raises:
        Refused: ``conflict`` with ``upload_missing``; ``bad_request`` where ``bytes`` or ``sha256`` are not the
            upload's; ``too_large`` for more than `BLOBS_MAX`.
    """
    named = {upload: None for blob in blobs if (upload := _named_by(blob)) is not None}
    if len(named) > BLOBS_MAX:
        raise Refused("too_large", f"One request names at most {BLOBS_MAX} uploads in its parts.")
    for upload in named:
        if not services.uploads.keep(key, upload):
            raise _missing()


def _named_by(blob: JsonObject) -> Upload | None:
    upload = Upload.from_ref(read_text(blob.get("ref")) or "")
    if upload is None:
        return None
    right = {"bytes": Raw(encode(upload.size_bytes)), "sha256": Raw(encode(upload.sha256))}
    if any(bytes(blob.get(name, value)) != bytes(value) for name, value in right.items()):
        raise Refused("bad_request", "A blob part's `bytes` and `sha256` are those of the upload that its `ref` names.")
    return upload


def _missing() -> Refused:
    return conflict("upload_missing", "Nothing lies under that `ref`, or no longer: upload it, then ask again.")


def _uploaded(services: Services, key: ConversationKey, said: Ref) -> list[JsonObject]:
    upload = Upload.from_ref(said.ref)
    if upload is None:
        raise Refused("bad_request", "`ref` must be one that `blob.create` gave.")
    content = services.uploads.read(key, upload)
    if content is None:
        raise _missing()
    if not upload.is_of(content):
        raise conflict("upload_damaged", "What was uploaded is not what was spoken of: upload it again.")
    parts = _decode(clean(content))
    check_parts(parts)
    return parts


def _decode(text: bytes) -> list[JsonObject]:
    """The parts in an upload, judged as a frame is."""
    if not is_utf8(text):
        raise Refused("bad_request", "An upload of parts must be a JSON list in UTF-8.")
    shape = measure(text)
    if shape.depth > JSON_DEPTH_MAX:
        raise Refused("bad_request", f"JSON may be nested {JSON_DEPTH_MAX} deep at most.")
    if shape.fields > UPLOAD_FIELDS_MAX:
        raise Refused(
            "too_large", f"Uploaded parts have at most {UPLOAD_FIELDS_MAX} fields; what is in these may be more."
        )
    try:
        return _PARTS.decode(text)
    except msgspec.ValidationError as error:
        raise Refused("bad_request", f"uploaded parts: {complaint(error)}") from error
    except msgspec.DecodeError as error:
        raise Refused("bad_request", "An upload of parts must be a JSON list in UTF-8.") from error
