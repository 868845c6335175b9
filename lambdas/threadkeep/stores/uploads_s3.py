"""Uploads in the region's bucket, by presigned URL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from threadkeep.domain.model import ConversationKey
from threadkeep.domain.uploads import Upload
from threadkeep.ports import PresignedPut
from threadkeep.stores import object_keys
from threadkeep.stores.aws_faults import code_of, warm_unavailable
from threadkeep.stores.buckets_s3 import Bucket, size_of


class UploadsS3:
    """`threadkeep.ports.UploadStore` on a bucket.

    Size and SHA-256 are signed, so S3 takes these bytes and no others (S3 user guide, "Checking object integrity" and
    "Uploading objects with presigned URLs", recalled 2026-11-29), and an object that lies here is what its key says.
    It is checked again when it is read all the same.

    Args:
        buckets: of all regions.
        region: the own one. All is written there; what was kept elsewhere is downloaded from there.
    """

    def __init__(self, buckets: Mapping[str, Bucket], region: str) -> None:
        self._buckets = buckets
        self._region = region
        self._client, self._bucket = buckets[region]

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

    @warm_unavailable()
    def presign_get(self, key: ConversationKey, upload: Upload, *, lives_s: int) -> str | None:
        """See `UploadStore`. Signed here; S3 is asked only which region's bucket it lies in."""
        kept = object_keys.blob(key, upload.sha256)
        for region in sorted(self._buckets, key=lambda region: region != self._region):
            bucket = self._buckets[region]
            if size_of(bucket, kept) == upload.size_bytes:
                return bucket.client.generate_presigned_url(
                    "get_object", Params={"Bucket": bucket.name, "Key": kept}, ExpiresIn=lives_s, HttpMethod="GET"
                )
        return None

    def _size_bytes(self, object_key: str) -> int | None:
        return size_of(self._buckets[self._region], object_key)
