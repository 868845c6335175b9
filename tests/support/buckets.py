"""Buckets of two regions, in memory and in moto, and what a test does to them past the stores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol

import boto3
import msgspec

from threadkeep.stores import aws_config
from threadkeep.stores.buckets_memory import ObjectsMemory
from threadkeep.stores.buckets_s3 import Bucket

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

HOME: Final = "eu-central-1"
ELSEWHERE: Final = "us-east-1"
REGIONS: Final = (HOME, ELSEWHERE)


class Peek(Protocol):
    """A bucket as a test sees it."""

    def listed(self, prefix: str = "") -> list[str]:
        """What lies there."""
        ...

    def get(self, object_key: str) -> bytes:
        """An object that is there."""
        ...

    def put(self, object_key: str, content: bytes) -> None:
        """Let that lie there."""
        ...

    def delete(self, object_key: str) -> None:
        """Take it away."""
        ...

    @contextmanager
    def away(self) -> Iterator[None]:
        """Meanwhile it answers nobody."""
        ...

    @contextmanager
    def counted(self) -> Iterator[Calls]:
        """What it is asked meanwhile."""
        ...


class Calls(msgspec.Struct):
    """Requests to a bucket."""

    puts: int = 0
    ranged_reads: int = 0
    whole_reads: int = 0


class MemoryPeek:
    """`Peek` on a bucket in memory."""

    def __init__(self, bucket: ObjectsMemory) -> None:
        self._bucket = bucket

    def listed(self, prefix: str = "") -> list[str]:
        return sorted(key for key in self._bucket.objects if key.startswith(prefix))

    def get(self, object_key: str) -> bytes:
        return self._bucket.objects[object_key]

    def put(self, object_key: str, content: bytes) -> None:
        self._bucket.objects[object_key] = content

    def delete(self, object_key: str) -> None:
        del self._bucket.objects[object_key]

    @contextmanager
    def away(self) -> Iterator[None]:
        self._bucket.unavailable = True
        yield
        self._bucket.unavailable = False

    @contextmanager
    def counted(self) -> Iterator[Calls]:
        bucket, calls = self._bucket, Calls()
        before = (bucket.puts, bucket.ranged_reads, bucket.whole_reads)
        yield calls
        calls.puts, calls.ranged_reads, calls.whole_reads = (
            now - then for now, then in zip((bucket.puts, bucket.ranged_reads, bucket.whole_reads), before, strict=True)
        )


class S3Peek:
    """`Peek` on a bucket of S3's API."""

    def __init__(self, bucket: Bucket) -> None:
        self.bucket = bucket

    def listed(self, prefix: str = "") -> list[str]:
        pages = self.bucket.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket.name, Prefix=prefix)
        return [entry["Key"] for page in pages for entry in page.get("Contents", [])]

    def get(self, object_key: str) -> bytes:
        return self.bucket.client.get_object(Bucket=self.bucket.name, Key=object_key)["Body"].read()

    def put(self, object_key: str, content: bytes) -> None:
        self.bucket.client.put_object(Bucket=self.bucket.name, Key=object_key, Body=content)

    def delete(self, object_key: str) -> None:
        self.bucket.client.delete_object(Bucket=self.bucket.name, Key=object_key)

    @contextmanager
    def away(self) -> Iterator[None]:
        class Busy:
            status_code = 503

        def refuse(**_: Any) -> tuple[Busy, dict[str, Any]]:
            told = {"Error": {"Code": "SlowDown"}, "ResponseMetadata": {"HTTPStatusCode": 503}}
            return Busy(), told

        events: Any = self.bucket.client.meta.events
        events.register("before-call.s3", refuse)
        yield
        events.unregister("before-call.s3", refuse)

    @contextmanager
    def counted(self) -> Iterator[Calls]:
        calls = Calls()

        def note(params: dict[str, Any], model: Any, **_: Any) -> None:
            if model.name == "PutObject":
                calls.puts += 1
            elif model.name == "GetObject" and "Range" in params["headers"]:
                calls.ranged_reads += 1
            elif model.name == "GetObject":
                calls.whole_reads += 1

        events: Any = self.bucket.client.meta.events
        events.register("before-call.s3", note)
        yield calls
        events.unregister("before-call.s3", note)


def moto_buckets(name: str = "threadkeep-cold") -> dict[str, Bucket]:
    """Empty buckets of both regions; to be called while moto answers for AWS."""
    buckets = {region: Bucket(_client(region), f"{name}-{region}") for region in REGIONS}
    for region, (client, bucket) in buckets.items():
        if region == "us-east-1":  # S3 takes no constraint for the region that it began in
            client.create_bucket(Bucket=bucket)
        else:
            client.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": region})  # type: ignore[typeddict-item]
    return buckets


def _client(region: str) -> S3Client:
    return boto3.client("s3", region_name=region, config=aws_config.BUCKET)
