"""Uploads in the region's bucket, by presigned URL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from threadkeep.domain.model import ConversationKey
from threadkeep.domain.uploads import Upload
from threadkeep.ports import PresignedPut
from threadkeep.stores import object_keys
from threadkeep.stores.aws_faults import code_of, warm_unavailable

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_NOT_THERE: Final = frozenset({"404", "NoSuchKey"})
"""An answer to HEAD has no body, so that its status stands for the code."""


class UploadsS3:
    """`threadkeep.ports.UploadStore` on a bucket.

    Size and SHA-256 are signed, so S3 takes these bytes and no others (S3 user guide, "Checking object integrity" and
    "Uploading objects with presigned URLs", recalled 2026-11-29), and an object that lies here is what its key says.
    It is checked again when it is read all the same.

    Args:
        client: an S3 client, built with `threadkeep.stores.aws_config.BUCKET`.
        bucket: the bucket's name.
    """

    def __init__(self, client: S3Client, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def presign(self, key: ConversationKey, upload: Upload, *, media_type: str | None, lives_s: int) -> PresignedPut:
        """See `UploadStore`. Signed here, with the function's own rights; S3 is not asked."""
        headers = object_keys.upload_headers(upload, media_type)
        signed: dict[str, Any] = {
            "Bucket": self._bucket,
            "Key": object_keys.upload(key, upload.sha256),
            "ContentLength": upload.size_bytes,
            "ChecksumSHA256": headers["x-amz-checksum-sha256"],
        }
        if media_type is not None:
            signed["ContentType"] = media_type
        url = self._client.generate_presigned_url("put_object", Params=signed, ExpiresIn=lives_s, HttpMethod="PUT")
        return PresignedPut(url, headers)

    @warm_unavailable()
    def read(self, key: ConversationKey, upload: Upload) -> bytes | None:
        """See `UploadStore`."""
        try:
            found = self._client.get_object(Bucket=self._bucket, Key=object_keys.upload(key, upload.sha256))
        except ClientError as error:
            if code_of(error) != "NoSuchKey":
                raise
            return None
        with found["Body"] as body:
            return body.read(upload.size_bytes + 1)

    @warm_unavailable()
    def keep(self, key: ConversationKey, upload: Upload) -> bool:
        """See `UploadStore`. Copied within S3, with its checksum; what was kept before is not copied again."""
        kept, source = object_keys.blob(key, upload.sha256), object_keys.upload(key, upload.sha256)
        if self._size_bytes(kept) == upload.size_bytes:
            return True
        if self._size_bytes(source) != upload.size_bytes:
            return False
        self._client.copy_object(Bucket=self._bucket, Key=kept, CopySource={"Bucket": self._bucket, "Key": source})
        return True

    def _size_bytes(self, object_key: str) -> int | None:
        try:
            return self._client.head_object(Bucket=self._bucket, Key=object_key)["ContentLength"]
        except ClientError as error:
            if code_of(error) not in _NOT_THERE:
                raise
            return None
