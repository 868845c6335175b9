"""What every `threadkeep.ports.ObjectSweep` does alike: in memory, and on S3's API, with and without versions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.support.buckets import HOME, MemoryPeek, Peek, S3Peek, moto_buckets
from tests.support.conversations import NOW_MS
from tests.support.moto_table import moto_clients
from threadkeep.domain import ids
from threadkeep.domain.model import ConversationKey
from threadkeep.ports import ObjectSweep
from threadkeep.stores import object_keys, sweep_s3
from threadkeep.stores.buckets_s3 import Bucket
from threadkeep.stores.cold_memory import ColdMemory
from threadkeep.stores.sweep_s3 import SweepS3

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class Swept(msgspec.Struct, frozen=True):
    """A sweep, and the bucket that it sweeps."""

    sweep: ObjectSweep
    bucket: Peek


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, Bucket]]:
    with moto_clients():
        buckets = {"plain": moto_buckets("plain")[HOME], "versioned": moto_buckets("versioned")[HOME]}
        client, name = buckets["versioned"]
        client.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
        yield buckets


@pytest.fixture(params=["memory", "plain", "versioned"])
def swept(request: pytest.FixtureRequest) -> Swept:
    if request.param == "memory":
        memory = ColdMemory(HOME)
        return Swept(memory, MemoryPeek(memory.buckets[HOME]))
    bucket = request.getfixturevalue("s3")[request.param]
    return Swept(SweepS3(bucket), S3Peek(bucket))


def objects_of(key: ConversationKey, count: int = 1) -> list[str]:
    """Object keys of every kind that a conversation has."""
    digests = [f"{number:064x}" for number in range(count)]
    return sorted(
        object_key
        for digest in digests
        for object_key in (
            object_keys.body(key, ids.mint(NOW_MS), digest.encode()),
            object_keys.blob(key, digest),
            object_keys.upload(key, digest),
            object_keys.segment(key, ids.mint(NOW_MS), digest),
        )
    )


def test_every_kind_of_a_conversations_objects_goes_and_is_counted(swept: Swept) -> None:
    key = ConversationKey("a/b", ids.mint(NOW_MS))
    for object_key in objects_of(key, 3):
        swept.bucket.put(object_key, b"content")
    assert swept.sweep.remove(key) == 12
    assert not [object_key for object_key in swept.bucket.listed() if key.conversation in object_key]
    assert swept.sweep.remove(key) == 0


@pytest.mark.usefixtures("keys_of_no_tenant")
def test_other_conversations_and_tenants_and_the_exports_stay(swept: Swept) -> None:
    conversation = ids.mint(NOW_MS)
    key = ConversationKey("a", conversation)
    others = [
        *(ConversationKey(tenant, conversation) for tenant in ("a/b", "aa", "A", "", "b/a", "segments/a")),
        ConversationKey("a", ids.mint(NOW_MS)),
        ConversationKey("a", conversation + "0"),
    ]
    kept = sorted([object_keys.export("a", conversation), *(name for other in others for name in objects_of(other))])
    for object_key in (*kept, *objects_of(key)):
        swept.bucket.put(object_key, b"content")
    assert swept.sweep.remove(key) == 4
    assert [object_key for object_key in kept if object_key not in swept.bucket.listed()] == []


def test_more_than_one_request_lists_or_deletes_all_go(swept: Swept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep_s3, "_BATCH_MAX", 10)  # of 1,000, which take moto half a minute
    key = ConversationKey("a", ids.mint(NOW_MS))
    for number in range(25):
        swept.bucket.put(object_keys.blob(key, f"{number:064x}"), b"")
    assert swept.sweep.remove(key) == 25
    assert swept.sweep.remove(key) == 0


def test_of_a_versioned_bucket_every_version_and_every_delete_marker_goes(
    s3: dict[str, Bucket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version would outlive the erasure, and be there for whoever lists versions."""
    monkeypatch.setattr(sweep_s3, "_BATCHES_MAX", 5)
    client: S3Client
    client, name = s3["versioned"]
    key = ConversationKey("a", ids.mint(NOW_MS))
    object_key, deleted = object_keys.blob(key, "0" * 64), object_keys.blob(key, "1" * 64)
    for content in (b"one", b"two", b"three"):
        client.put_object(Bucket=name, Key=object_key, Body=content)
    client.put_object(Bucket=name, Key=deleted, Body=b"content")
    client.delete_object(Bucket=name, Key=deleted)
    assert SweepS3(s3["versioned"]).remove(key) == 4
    left = client.list_object_versions(Bucket=name, Prefix=f"blobs/a/{key.conversation}/")
    assert (left.get("Versions", []), left.get("DeleteMarkers", [])) == ([], [])
