"""Files of exports when S3 answers oddly."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from threadkeep.domain.errors import WarmUnavailable
from threadkeep.stores.buckets_s3 import Bucket
from threadkeep.stores.export_files_s3 import ExportFilesS3


class OddS3:
    """Takes parts, and fails where it is told to.

    Attributes:
        aborted: uploads that were aborted.
    """

    def __init__(self, *, complete: Exception | None = None, abort: Exception | None = None) -> None:
        self.aborted: list[str] = []
        self._complete = complete
        self._abort = abort

    def create_multipart_upload(self, **_: Any) -> dict[str, Any]:
        return {"UploadId": "upload-1"}

    def upload_part(self, **_: Any) -> dict[str, Any]:
        return {"ETag": "etag"}

    def complete_multipart_upload(self, **_: Any) -> None:
        if self._complete is not None:
            raise self._complete

    def abort_multipart_upload(self, **said: Any) -> None:
        self.aborted.append(said["UploadId"])
        if self._abort is not None:
            raise self._abort


def refusal(code: str, status: int, operation: str = "CompleteMultipartUpload") -> ClientError:
    said: Any = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(said, operation)


def write(s3: OddS3) -> int:
    bucket: Any = s3
    return ExportFilesS3({"eu-central-1": Bucket(bucket, "bucket")}, "eu-central-1").write("acme", "export", [b"abc"])


def test_a_file_is_written() -> None:
    s3 = OddS3()
    assert (write(s3), s3.aborted) == (3, [])


def test_an_end_whose_first_answer_was_lost_is_not_taken_for_a_fault() -> None:
    """The client's own second attempt meets an upload that is no more: completed, or not."""
    s3 = OddS3(complete=refusal("NoSuchUpload", 404), abort=refusal("NoSuchUpload", 404, "AbortMultipartUpload"))
    with pytest.raises(WarmUnavailable, match="not known"):
        write(s3)
    assert s3.aborted == ["upload-1"]


def test_what_broke_off_is_told_although_clearing_up_broke_off_too() -> None:
    s3 = OddS3(complete=refusal("SlowDown", 503), abort=EndpointConnectionError(endpoint_url="https://s3.example"))
    with pytest.raises(WarmUnavailable, match="SlowDown"):
        write(s3)


def test_a_right_that_is_missing_is_a_fault() -> None:
    with pytest.raises(ClientError, match="AccessDenied"):
        write(OddS3(complete=refusal("AccessDenied", 403)))
