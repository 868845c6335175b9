"""Large bodies in the region's bucket."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from threadkeep.domain.model import ConversationKey
from threadkeep.stores import object_keys
from threadkeep.stores.aws_faults import code_of, warm_unavailable

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class BodiesS3:
    """`threadkeep.ports.BodyStore` on a bucket; objects are written once and never changed.

    Args:
        client: an S3 client, built with `threadkeep.stores.aws_config.BUCKET`.
        bucket: the bucket's name.
    """

    def __init__(self, client: S3Client, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    @warm_unavailable()
    def put(self, key: ConversationKey, message: str, body: bytes) -> str:
        """See `BodyStore`. S3 checks the hash before it keeps anything; what is there already is the same content."""
        object_key = object_keys.body(key, message, body)
        digest = bytes.fromhex(object_keys.sha256(body))
        try:
            self._client.put_object(
                Bucket=self._bucket,
                Key=object_key,
                Body=body,
                ChecksumSHA256=base64.b64encode(digest).decode("ascii"),
                IfNoneMatch="*",
            )
        except ClientError as error:
            if code_of(error) != "PreconditionFailed":
                raise
        return object_key

    @warm_unavailable()
    def get(self, pointer: str) -> bytes:
        """See `BodyStore`.

        Raises:
            Unreadable: the object is missing, or not what was put.
        """
        try:
            content = self._client.get_object(Bucket=self._bucket, Key=pointer)["Body"].read()
        except ClientError as error:
            if code_of(error) != "NoSuchKey":
                raise
            return object_keys.check_body(pointer, None)
        return object_keys.check_body(pointer, content)
