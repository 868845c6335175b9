"""What a presigned URL holds its bearer to, and what S3's refusals mean."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from tests.support.conversations import NOW_MS
from tests.support.moto_table import REGION, buckets_of, moto_clients
from threadkeep.domain import ids
from threadkeep.domain.errors import WarmUnavailable
from threadkeep.domain.model import ConversationKey
from threadkeep.domain.uploads import Upload
from threadkeep.stores import aws_config
from threadkeep.stores.buckets_s3 import Bucket
from threadkeep.stores.uploads_s3 import UploadsS3

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

KEY = ConversationKey("acme", ids.mint(NOW_MS))
UPLOAD = Upload(4, hashlib.sha256(b"body").hexdigest())


@pytest.fixture
def bucket() -> Iterator[S3Client]:
    with moto_clients() as (_, client):
        yield client


def query_of(url: str) -> dict[str, list[str]]:
    return parse_qs(urlsplit(url).query)


@pytest.mark.parametrize("media_type", [None, "image/png"])
def test_every_header_that_the_client_is_told_is_signed(bucket: S3Client, media_type: str | None) -> None:
    put = UploadsS3(buckets_of(bucket), REGION).presign(KEY, UPLOAD, media_type=media_type, lives_s=900)
    query = query_of(put.url)
    assert query["X-Amz-Algorithm"] == ["AWS4-HMAC-SHA256"]
    assert query["X-Amz-SignedHeaders"] == [";".join(sorted({*put.headers, "host"}))]
    assert query["X-Amz-Expires"] == ["900"]


def test_another_size_digest_or_place_is_another_signature(bucket: S3Client) -> None:
    store = UploadsS3(buckets_of(bucket), REGION)
    uploads = [UPLOAD, Upload(5, UPLOAD.sha256), Upload(4, "0" * 64)]
    places = [(KEY, upload) for upload in uploads] + [(ConversationKey("other", KEY.conversation), UPLOAD)]
    urls = [store.presign(key, upload, media_type=None, lives_s=900).url for key, upload in places]
    assert len({query_of(url)["X-Amz-Signature"][0] for url in urls}) == len(places)


@pytest.mark.parametrize("region", ["us-east-1", "eu-central-1"])
def test_the_url_is_of_the_bucket_in_its_region(monkeypatch: pytest.MonkeyPatch, region: str) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    client = boto3.client(
        "s3",
        region_name=region,
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
        config=aws_config.BUCKET,
    )
    put = UploadsS3({region: Bucket(client, "threadkeep-prod")}, region).presign(
        KEY, UPLOAD, media_type=None, lives_s=900
    )
    assert put.url.startswith(
        f"https://threadkeep-prod.s3.{region}.amazonaws.com/uploads/acme/{KEY.conversation}/{UPLOAD.sha256}?"
    )


@pytest.mark.parametrize("operation", ["get_object", "head_object"])
def test_an_s3_that_has_no_time_is_unavailable_and_one_that_refuses_is_a_fault(
    bucket: S3Client, operation: str
) -> None:
    uploads = UploadsS3(buckets_of(bucket), REGION)
    ask = uploads.read if operation == "get_object" else uploads.keep
    with Stubber(bucket) as stub:
        stub.add_client_error(operation, "SlowDown", http_status_code=503)
        stub.add_client_error(operation, "AccessDenied", http_status_code=403)
        with pytest.raises(WarmUnavailable):
            ask(KEY, UPLOAD)
        with pytest.raises(ClientError, match="AccessDenied"):
            ask(KEY, UPLOAD)
