"""What is told to S3 with an object, what its refusals mean, and when a region's client is built."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from tests.support.buckets import ELSEWHERE, HOME, REGIONS, S3Peek, moto_buckets
from tests.support.conversations import NOW_MS, message
from tests.support.moto_table import moto_clients
from threadkeep.domain import ids
from threadkeep.domain.errors import WarmUnavailable
from threadkeep.domain.model import ConversationKey, StoredMessage
from threadkeep.stores import object_keys
from threadkeep.stores.buckets_s3 import Bucket, Buckets, ObjectsS3
from threadkeep.stores.cold_s3 import ColdS3
from threadkeep.stores.sweep_s3 import SweepS3

KEY = ConversationKey("acme", ids.mint(NOW_MS))


@pytest.fixture
def buckets() -> Iterator[dict[str, Bucket]]:
    with moto_clients():
        yield moto_buckets()


def put(**more: Any) -> dict[str, Any]:
    digest = base64.b64encode(hashlib.sha256(b"content").digest()).decode()
    return {
        "Bucket": f"threadkeep-cold-{HOME}",
        "Key": "segments/x",
        "Body": b"content",
        "ChecksumSHA256": digest,
        **more,
    }


@pytest.mark.usefixtures("keys_of_no_tenant")
def test_s3_checks_the_hash_and_overwrites_nothing_unless_it_is_told_to(buckets: dict[str, Bucket]) -> None:
    objects = ObjectsS3(buckets[HOME])
    with Stubber(buckets[HOME].client) as stub:
        stub.add_response("put_object", {}, put(IfNoneMatch="*"))
        objects.put_once("segments/x", b"content")
        stub.add_client_error("put_object", "PreconditionFailed", http_status_code=412)
        objects.put_once("segments/x", b"content")
        stub.add_response("put_object", {}, put())
        objects.replace("segments/x", b"content")
        stub.assert_no_pending_responses()


@pytest.mark.usefixtures("keys_of_no_tenant")
@pytest.mark.parametrize("operation", ["put_object", "get_object", "head_object"])
def test_an_s3_that_has_no_time_is_unavailable_and_one_that_refuses_is_a_fault(
    buckets: dict[str, Bucket], operation: str
) -> None:
    objects = ObjectsS3(buckets[HOME])
    asks: dict[str, Callable[[], object]] = {
        "put_object": lambda: objects.put_once("x", b""),
        "get_object": lambda: objects.read("x"),
        "head_object": lambda: objects.holds("x"),
    }
    ask = asks[operation]
    with Stubber(buckets[HOME].client) as stub:
        stub.add_client_error(operation, "SlowDown", http_status_code=503)
        with pytest.raises(WarmUnavailable):
            ask()
        for refusal in ("AccessDenied", "NoSuchBucket"):  # never "it is not there": that would be called damage
            stub.add_client_error(operation, refusal, http_status_code=403)
            with pytest.raises(ClientError, match=refusal):
                ask()


@pytest.mark.usefixtures("keys_of_no_tenant")
def test_a_part_is_asked_for_by_its_bytes(buckets: dict[str, Bucket]) -> None:
    home = ObjectsS3(buckets[HOME])
    S3Peek(buckets[HOME]).put("x", b"0123456789")
    assert home.read("x", offset=2, size_bytes=3) == b"234"
    assert home.read("x", offset=8, size_bytes=5) == b"89"
    assert home.read("x", offset=10, size_bytes=5) == b""
    assert home.read("x") == b"0123456789"
    assert home.read("y", offset=2, size_bytes=3) is None


def test_a_regions_client_is_built_when_it_is_first_wanted_and_once(buckets: dict[str, Bucket]) -> None:
    built: list[str] = []

    def connect(region: str) -> Any:
        built.append(region)
        return buckets[region].client

    lazily = Buckets({region: bucket.name for region, bucket in buckets.items()}, connect)
    cold = ColdS3(lazily, HOME)
    assert (len(lazily), tuple(lazily), built) == (2, REGIONS, [])
    said = [StoredMessage(message(KEY))]
    manifest = ColdS3(buckets, HOME).write(KEY, said, now_ms=NOW_MS)
    for _ in range(2):
        assert list(cold.read(KEY, manifest, manifest.members)) == said
    assert built == [HOME]
    S3Peek(buckets[HOME]).delete(manifest.object_key)
    assert list(cold.read(KEY, manifest, manifest.members)) == said
    assert built == [HOME, ELSEWHERE]


def test_a_sweep_that_s3_did_not_finish_is_not_called_done(buckets: dict[str, Bucket]) -> None:
    bucket = buckets[HOME]
    S3Peek(bucket).put(object_keys.blob(KEY, "0" * 64), b"content")
    told = {"Errors": [{"Key": "k", "Code": "InternalError", "Message": "We encountered an internal error."}]}
    events: Any = bucket.client.meta.events
    events.register("after-call.s3.DeleteObjects", lambda parsed, **_: parsed.update(told))
    with pytest.raises(WarmUnavailable, match="1 objects were kept: InternalError"):
        SweepS3(bucket).remove(KEY)


def test_a_bucket_that_never_gets_empty_ends_the_sweep_loudly(
    buckets: dict[str, Bucket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deletions that are confirmed and do nothing: a loop until it is empty would have no end."""
    monkeypatch.setattr("threadkeep.stores.sweep_s3._BATCHES_MAX", 3)
    bucket = buckets[HOME]
    S3Peek(bucket).put(object_keys.blob(KEY, "0" * 64), b"content")
    events: Any = bucket.client.meta.events

    class Done:
        status_code = 200

    events.register("before-call.s3.DeleteObjects", lambda **_: (Done(), {}))
    with pytest.raises(WarmUnavailable, match="not empty after 3"):
        SweepS3(bucket).remove(KEY)
