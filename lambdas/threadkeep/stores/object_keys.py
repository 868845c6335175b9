"""The keys of the bucket: the one place that builds them, and always with the tenant in them."""

from __future__ import annotations

import base64
import hashlib

import msgspec

from threadkeep.domain.model import ConversationKey
from threadkeep.domain.uploads import Upload
from threadkeep.schema import UPLOADS_PREFIX
from threadkeep.stores.packing import Unreadable
from threadkeep.stores.table_keys import encode_name


def body(key: ConversationKey, message: str, content: bytes) -> str:
    """Where a large body lies: ``<tenant>/<conversation>/bodies/<message>/<sha256>``.

    With the hash in it, a retry meets its own object, and no two contents meet.
    """
    return f"{encode_name(key.tenant)}/{key.conversation}/bodies/{message}/{sha256(content)}"


def upload(key: ConversationKey, digest: str) -> str:
    """Where an upload lies until it expires: ``!uploads/<tenant>/<conversation>/<sha256>``.

    Under a prefix of its own, since that is all that a bucket's rules can tell objects by.
    """
    return f"{UPLOADS_PREFIX}{encode_name(key.tenant)}/{key.conversation}/{digest}"


def blob(key: ConversationKey, digest: str) -> str:
    """Where an upload lies for good that a message names: ``<tenant>/<conversation>/blobs/<sha256>``."""
    return f"{encode_name(key.tenant)}/{key.conversation}/blobs/{digest}"


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
        _tenant, conversation, _bodies, message, digest = object_key.split("/")
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
