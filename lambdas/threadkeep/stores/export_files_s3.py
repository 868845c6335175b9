"""The files of exports, each in the bucket of the region that wrote it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from botocore.exceptions import BotoCoreError, ClientError

from threadkeep.domain.errors import WarmUnavailable
from threadkeep.stores import object_keys
from threadkeep.stores.aws_faults import code_of, warm_unavailable
from threadkeep.stores.buckets_s3 import Bucket

if TYPE_CHECKING:
    from mypy_boto3_s3.type_defs import CompletedPartTypeDef

_PIECE_BYTES: Final = 8 * 1024 * 1024
"""What is held of a file at a time. S3 takes 10,000 parts of 5 MiB and more, but for the last (S3 user guide,
"Multipart upload limits", recalled 2026-11-29): so a file may have some 80 GB."""


class ExportFilesS3:
    """`threadkeep.ports.ExportFiles` on the buckets, whose own rules delete them after a day.

    Args:
        buckets: of all regions.
        region: the own one, where files are written.
    """

    def __init__(self, buckets: Mapping[str, Bucket], region: str) -> None:
        self._buckets = buckets
        self._client, self._bucket = buckets[region]

    @warm_unavailable()
    def write(self, tenant: str, export: str, pieces: Iterable[bytes]) -> int:
        """See `ExportFiles`. In parts; a file that breaks off is not there, and neither are its parts."""
        object_key = object_keys.export(tenant, export)
        upload = self._client.create_multipart_upload(Bucket=self._bucket, Key=object_key)["UploadId"]
        size = 0
        parts: list[CompletedPartTypeDef] = []
        try:
            for number, content in enumerate(gathered(pieces), start=1):
                answer = self._client.upload_part(
                    Bucket=self._bucket, Key=object_key, UploadId=upload, PartNumber=number, Body=content
                )
                parts.append({"PartNumber": number, "ETag": answer["ETag"]})
                size += len(content)
            self._complete(object_key, upload, parts)
        except BaseException:
            # What broke off is told, not that clearing up did too: the bucket's own rule takes the parts within a day.
            with suppress(BotoCoreError, ClientError):
                self._client.abort_multipart_upload(Bucket=self._bucket, Key=object_key, UploadId=upload)
            raise
        return size

    def _complete(self, object_key: str, upload: str, parts: list[CompletedPartTypeDef]) -> None:
        try:
            self._client.complete_multipart_upload(
                Bucket=self._bucket, Key=object_key, UploadId=upload, MultipartUpload={"Parts": parts}
            )
        except ClientError as error:
            if code_of(error) == "NoSuchUpload":  # of an attempt whose answer was lost: it may be there, or not
                raise WarmUnavailable("CompleteMultipartUpload: its outcome is not known") from error
            raise

    def presign_get(self, tenant: str, export: str, *, region: str, name: str, lives_s: int) -> str:
        """See `ExportFiles`. Signed here, with the function's own rights; S3 is not asked."""
        client, bucket = self._buckets[region]
        return client.generate_presigned_url(
            "get_object",
            Params={
                "Bucket": bucket,
                "Key": object_keys.export(tenant, export),
                "ResponseContentDisposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
            },
            ExpiresIn=lives_s,
            HttpMethod="GET",
        )


def gathered(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces that make a part, at least one."""
    held = bytearray()
    is_first = True
    for piece in pieces:
        held += piece
        while len(held) >= _PIECE_BYTES:
            yield bytes(held[:_PIECE_BYTES])
            del held[:_PIECE_BYTES]
            is_first = False
    if held or is_first:
        yield bytes(held)
