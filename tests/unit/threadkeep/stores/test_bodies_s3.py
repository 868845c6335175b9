"""What is told to S3 with a body."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from tests.support.conversations import NOW_MS
from tests.support.moto_table import BUCKET, REGION, buckets_of, moto_clients
from threadkeep.domain import ids
from threadkeep.domain.errors import WarmUnavailable
from threadkeep.domain.model import ConversationKey
from threadkeep.stores.bodies_s3 import BodiesS3

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

KEY = ConversationKey("acme", ids.mint(NOW_MS))
MESSAGE = ids.mint(NOW_MS)


@pytest.fixture
def bucket() -> Iterator[S3Client]:
    with moto_clients() as (_, client):
        yield client


def test_s3_checks_the_hash_and_overwrites_nothing(bucket: S3Client) -> None:
    digest = hashlib.sha256(b"body")
    with Stubber(bucket) as stub:
        expected: dict[str, Any] = {
            "Bucket": BUCKET,
            "Key": f"bodies/acme/{KEY.conversation}/{MESSAGE}/{digest.hexdigest()}",
            "Body": b"body",
            "ChecksumSHA256": base64.b64encode(digest.digest()).decode(),
            "IfNoneMatch": "*",
        }
        stub.add_response("put_object", {}, expected)
        BodiesS3(buckets_of(bucket), REGION).put(KEY, MESSAGE, b"body")
        stub.assert_no_pending_responses()


@pytest.mark.parametrize("operation", ["put_object", "get_object"])
def test_an_s3_that_has_no_time_is_unavailable_and_one_that_refuses_is_a_fault(
    bucket: S3Client, operation: str
) -> None:
    bodies = BodiesS3(buckets_of(bucket), REGION)
    pointer = bodies.put(KEY, MESSAGE, b"body")

    def ask() -> None:
        if operation == "put_object":
            bodies.put(KEY, MESSAGE, b"other")
        else:
            bodies.get(pointer)

    with Stubber(bucket) as stub:
        stub.add_client_error(operation, "SlowDown", http_status_code=503)
        stub.add_client_error(operation, "AccessDenied", http_status_code=403)
        with pytest.raises(WarmUnavailable):
            ask()
        with pytest.raises(ClientError, match="AccessDenied"):
            ask()
