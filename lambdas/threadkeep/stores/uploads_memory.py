"""Uploads in memory: the reference, and a fake for tests."""

from __future__ import annotations

import base64
import hashlib
from urllib.parse import quote, unquote

from threadkeep.domain.errors import WarmUnavailable
from threadkeep.domain.model import ConversationKey
from threadkeep.domain.uploads import Upload
from threadkeep.ports import PresignedPut
from threadkeep.stores import object_keys

_SCHEME = "memory:"


class UploadsMemory:
    """`threadkeep.ports.UploadStore` on a dictionary.

    Args:
        objects: of a bucket that others share; without it, a bucket of its own.

    Attributes:
        objects: what was uploaded, by object key.
        unavailable: while set, every call raises `WarmUnavailable`.
    """

    def __init__(self, objects: dict[str, bytes] | None = None) -> None:
        self.objects: dict[str, bytes] = {} if objects is None else objects
        self.unavailable = False

    def presign(self, key: ConversationKey, upload: Upload, *, media_type: str | None, lives_s: int) -> PresignedPut:  # noqa: ARG002 -- nothing ends here by itself
        """See `UploadStore`."""
        self._check_available()
        return PresignedPut(
            _SCHEME + quote(object_keys.upload(key, upload.sha256)), object_keys.upload_headers(upload, media_type)
        )

    def put(self, url: str, headers: dict[str, str], content: bytes) -> bool:
        """A client's PUT, judged as S3 does by what is signed; whether it was taken."""
        digest = base64.b64encode(hashlib.sha256(content).digest()).decode()
        taken = (headers["content-length"], headers["x-amz-checksum-sha256"]) == (str(len(content)), digest)
        if taken:
            self.objects[unquote(url.removeprefix(_SCHEME))] = content
        return taken

    def read(self, key: ConversationKey, upload: Upload) -> bytes | None:
        """See `UploadStore`."""
        self._check_available()
        content = self.objects.get(object_keys.upload(key, upload.sha256))
        return None if content is None else content[: upload.size_bytes + 1]

    def keep(self, key: ConversationKey, upload: Upload) -> bool:
        """See `UploadStore`."""
        self._check_available()
        source, kept = object_keys.upload(key, upload.sha256), object_keys.blob(key, upload.sha256)
        content = self.objects.get(kept, self.objects.get(source))
        if content is None or len(content) != upload.size_bytes:
            return False
        self.objects[kept] = content
        return True

    def presign_get(self, key: ConversationKey, upload: Upload, *, lives_s: int) -> str | None:  # noqa: ARG002 -- nothing ends here by itself
        """See `UploadStore`. `objects` has the content under the key that the URL names."""
        self._check_available()
        kept = object_keys.blob(key, upload.sha256)
        content = self.objects.get(kept)
        return _SCHEME + quote(kept) if content is not None and len(content) == upload.size_bytes else None

    def _check_available(self) -> None:
        if self.unavailable:
            raise WarmUnavailable("the uploads in memory are told to be unavailable")
