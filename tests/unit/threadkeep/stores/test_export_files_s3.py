"""Files of exports when S3 answers oddly."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from threadkeep.domain.errors import ExportFileGone, WarmUnavailable
from threadkeep.stores.buckets_s3 import Bucket
from threadkeep.stores.export_files_s3 import ExportFilesS3


class OddS3:
    """Raises whatever it is asked."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Any:
        def refuse(**_: Any) -> None:
            raise self._error

        return refuse


def refusal(code: str, status: int) -> ClientError:
    said: Any = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(said, "Whatever")


def ask(error: Exception, method: str) -> Any:
    bucket: Any = OddS3(error)
    store = ExportFilesS3({"eu-central-1": Bucket(bucket, "bucket")}, "eu-central-1")
    arguments: dict[str, dict[str, Any]] = {
        "begin": {},
        "add": {"upload": "upload", "number": 1, "content": b""},
        "finish": {"upload": "upload", "parts": ["tag"]},
        "abort": {"upload": "upload"},
        "note": {"name": "one", "content": b""},
        "noted": {"name": "one"},
    }
    return getattr(store, method)("acme", "export", **arguments[method])


ALL = ("begin", "add", "finish", "abort", "note", "noted")


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize(
    "error", [refusal("SlowDown", 503), EndpointConnectionError(endpoint_url="https://s3.example")]
)
def test_what_passes_by_itself_is_tried_again(method: str, error: Exception) -> None:
    with pytest.raises(WarmUnavailable):
        ask(error, method)


@pytest.mark.parametrize("method", ALL)
def test_a_right_that_is_missing_is_a_fault(method: str) -> None:
    with pytest.raises(ClientError, match="AccessDenied"):
        ask(refusal("AccessDenied", 403), method)


@pytest.mark.parametrize(
    ("method", "code"), [("add", "NoSuchUpload"), ("finish", "NoSuchUpload"), ("finish", "InvalidPart")]
)
def test_an_upload_that_is_not_as_it_was_is_gone(method: str, code: str) -> None:
    """Also the client's own second attempt at an end whose answer was lost meets an upload that is no more."""
    with pytest.raises(ExportFileGone, match=code):
        ask(refusal(code, 404 if code == "NoSuchUpload" else 400), method)


def test_of_an_upload_that_is_gone_nothing_is_left_to_abort() -> None:
    assert ask(refusal("NoSuchUpload", 404), "abort") is None
