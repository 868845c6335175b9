"""The keys of the bucket: the one place that builds them, and always with the tenant in them.

Each begins with what it is a key of (`threadkeep.schema`), then tenant and conversation: so a bucket's rules tell the
kinds apart, and all of one kind that a conversation has lies under one prefix.
"""

from __future__ import annotations

import base64
import hashlib

import msgspec

from threadkeep.domain.errors import Unreadable
from threadkeep.domain.model import ConversationKey
from threadkeep.domain.uploads import Upload
from threadkeep.schema import BLOBS_PREFIX, BODIES_PREFIX, EXPORTS_PREFIX, SEGMENTS_PREFIX, UPLOADS_PREFIX
from threadkeep.stores.table_keys import encode_name


def body(key: ConversationKey, message: str, content: bytes) -> str:
    """Where a large body lies: ``bodies/<tenant>/<conversation>/<message>/<sha256>``.

    With the hash in it, a retry meets its own object, and no two contents meet.
    """
    return f"{BODIES_PREFIX}{_place(key)}{message}/{sha256(content)}"


def upload(key: ConversationKey, digest: str) -> str:
    """Where an upload lies until it expires: ``uploads/<tenant>/<conversation>/<sha256>``."""
    return f"{UPLOADS_PREFIX}{_place(key)}{digest}"


def blob(key: ConversationKey, digest: str) -> str:
    """Where an upload lies for good that a message names: ``blobs/<tenant>/<conversation>/<sha256>``."""
    return f"{BLOBS_PREFIX}{_place(key)}{digest}"


def segment(key: ConversationKey, first: str, digest: str) -> str:
    """Where a segment lies: ``segments/<tenant>/<conversation>/<first id>-<sha256>.jsonl.zst``.

    Its name says what it holds to whoever reads the bucket without us (DuckDB and Athena go by the ending).
    """
    return f"{SEGMENTS_PREFIX}{_place(key)}{first}-{digest}.jsonl.zst"


def export(tenant: str, identifier: str) -> str:
    """Where the file of an export lies until it expires: ``exports/<tenant>/<export>``."""
    return f"{EXPORTS_PREFIX}{encode_name(tenant)}/{identifier}"


def export_notes(tenant: str, identifier: str, name: str) -> str:
    """Where the notes lie that a run of an export goes on from: ``exports/<tenant>/<export>/notes/<name>``."""
    return f"{export(tenant, identifier)}/notes/{name}"


def prefixes(key: ConversationKey) -> tuple[str, ...]:
    """Under which everything lies that a bucket holds of a conversation. Exports expire by themselves."""
    return tuple(kind + _place(key) for kind in (BODIES_PREFIX, BLOBS_PREFIX, SEGMENTS_PREFIX, UPLOADS_PREFIX))


def _place(key: ConversationKey) -> str:
    return f"{encode_name(key.tenant)}/{key.conversation}/"


def upload_headers(upload: Upload, media_type: str | None) -> dict[str, str]:
    """What a client's PUT must say of its content, for S3 to hold it to it."""
    headers = {
        "content-length": str(upload.size_bytes),
        "x-amz-checksum-sha256": base64.b64encode(bytes.fromhex(upload.sha256)).decode("ascii"),
    }
    return headers if media_type is None else headers | {"content-type": media_type}


def sha256(content: bytes) -> str:
    """The hash as keys carry it, in lower-case hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


class BodyKey(msgspec.Struct, frozen=True):
    """What a body's key names."""

    conversation: str
    message: str
    sha256: str

    @classmethod
    def from_key(cls, object_key: str) -> BodyKey:
        """Read what `body` built."""
        _bodies, _tenant, conversation, message, digest = object_key.split("/")
        return cls(conversation, message, digest)


def check_body(object_key: str, content: bytes | None) -> bytes:
    """A body as it was found (None: there is none), if it is the one that its key names.

    Raises:
        Unreadable: it is missing, or another.
    """
    named = BodyKey.from_key(object_key)
    if content is None:
        raise Unreadable(named.conversation, named.message, "its body is not in the bucket")
    if sha256(content) != named.sha256:
        raise Unreadable(named.conversation, named.message, "its body in the bucket does not match its hash")
    return content
