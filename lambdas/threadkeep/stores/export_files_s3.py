"""The files of exports, each in the bucket of the region that wrote it, and the notes of those under way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import quote

from botocore.exceptions import ClientError

from threadkeep.domain.errors import ExportFileGone
from threadkeep.stores import object_keys
from threadkeep.stores.aws_faults import code_of, warm_unavailable
from threadkeep.stores.buckets_s3 import Bucket

if TYPE_CHECKING:
    from mypy_boto3_s3.type_defs import CompletedPartTypeDef


class ExportFilesS3:
    """`threadkeep.ports.ExportFiles` on the buckets, whose own rules delete them within two days.

    Args:
        buckets: of all regions.
        region: the own one, where files are written.
    """

    def __init__(self, buckets: Mapping[str, Bucket], region: str) -> None:
        self._buckets = buckets
        self._client, self._bucket = buckets[region]

    @warm_unavailable()
    def begin(self, tenant: str, export: str) -> str:
        """See `ExportFiles`."""
        return self._client.create_multipart_upload(Bucket=self._bucket, Key=object_keys.export(tenant, export))[
            "UploadId"
        ]

    @warm_unavailable()
    def add(self, tenant: str, export: str, upload: str, *, number: int, content: bytes) -> str:
        """See `ExportFiles`."""
        with _gone():
            return self._client.upload_part(
                Bucket=self._bucket,
                Key=object_keys.export(tenant, export),
                UploadId=upload,
                PartNumber=number,
                Body=content,
            )["ETag"]

    @warm_unavailable()
    def finish(self, tenant: str, export: str, upload: str, parts: Sequence[str]) -> None:
        """See `ExportFiles`. An attempt whose answer was lost finds no upload the second time, although all is well."""
        named: list[CompletedPartTypeDef] = [
            {"PartNumber": number, "ETag": tag} for number, tag in enumerate(parts, start=1)
        ]
        with _gone():
            self._client.complete_multipart_upload(
                Bucket=self._bucket,
                Key=object_keys.export(tenant, export),
                UploadId=upload,
                MultipartUpload={"Parts": named},
            )

    @warm_unavailable()
    def abort(self, tenant: str, export: str, upload: str) -> None:
        """See `ExportFiles`. What nobody aborts the bucket's own rule takes within two days."""
        with suppress(ExportFileGone), _gone():
            self._client.abort_multipart_upload(
                Bucket=self._bucket, Key=object_keys.export(tenant, export), UploadId=upload
            )

    @warm_unavailable()
    def note(self, tenant: str, export: str, name: str, content: bytes) -> None:
        """See `ExportFiles`. The same rule deletes them as the files."""
        self._client.put_object(Bucket=self._bucket, Key=object_keys.export_notes(tenant, export, name), Body=content)

    @warm_unavailable()
    def noted(self, tenant: str, export: str, name: str) -> bytes | None:
        """See `ExportFiles`."""
        try:
            found = self._client.get_object(Bucket=self._bucket, Key=object_keys.export_notes(tenant, export, name))
        except ClientError as error:
            if code_of(error) != "NoSuchKey":
                raise
            return None
        with found["Body"] as body:
            return body.read()

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


@contextmanager
def _gone() -> Iterator[None]:
    """Turn what S3 says of an upload, or of a part of it, that is not as it was into `ExportFileGone`.

    A part that has another tag than the one that was named is ``InvalidPart`` (S3 API reference,
    "CompleteMultipartUpload", recalled 2026-11-30).
    """
    try:
        yield
    except ClientError as error:
        if code_of(error) in {"NoSuchUpload", "InvalidPart"}:
            raise ExportFileGone(f"{error.operation_name}: {code_of(error)}") from error
        raise
