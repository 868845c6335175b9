"""The regions' buckets on S3: which there are, and a region's objects."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from botocore.exceptions import ClientError

from threadkeep.stores import object_keys
from threadkeep.stores.aws_faults import code_of, warm_unavailable

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

NOT_THERE: Final = frozenset({"404", "NoSuchKey"})
"""An answer to HEAD has no body, so that its status stands for the code."""


class Bucket(NamedTuple):
    """A region's bucket, and a client of its region, built with `threadkeep.stores.aws_config.BUCKET`."""

    client: S3Client
    name: str


class Buckets(Mapping[str, Bucket]):
    """The buckets of all regions; each client is built when it is first wanted, since most calls stay at home.

    Args:
        names: bucket by region.
        connect: builds a client for a region.
    """

    def __init__(self, names: Mapping[str, str], connect: Callable[[str], S3Client]) -> None:
        self._names = names
        self._connect = connect
        self._built: dict[str, Bucket] = {}

    def __getitem__(self, region: str) -> Bucket:
        if region not in self._built:
            self._built[region] = Bucket(self._connect(region), self._names[region])
        return self._built[region]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class ObjectsS3:
    """`threadkeep.stores.cold_segments.RegionObjects` on a bucket."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    @warm_unavailable()
    def put_once(self, object_key: str, content: bytes) -> None:
        """See `RegionObjects`. S3 checks the hash before it keeps anything."""
        try:
            self._put(object_key, content, IfNoneMatch="*")
        except ClientError as error:
            if code_of(error) != "PreconditionFailed":
                raise

    @warm_unavailable()
    def replace(self, object_key: str, content: bytes) -> None:
        """See `RegionObjects`."""
        self._put(object_key, content)

    @warm_unavailable()
    def read(self, object_key: str, *, offset: int = 0, size_bytes: int | None = None) -> bytes | None:
        """See `RegionObjects`."""
        ranged: dict[str, Any] = {} if size_bytes is None else {"Range": f"bytes={offset}-{offset + size_bytes - 1}"}
        try:
            answer = self._bucket.client.get_object(Bucket=self._bucket.name, Key=object_key, **ranged)
        except ClientError as error:
            if code_of(error) == "InvalidRange":  # the object ends before it
                return b""
            if code_of(error) not in NOT_THERE:
                raise
            return None
        with answer["Body"] as body:
            return bytes(body.read())

    @warm_unavailable()
    def holds(self, object_key: str) -> bool:
        """See `RegionObjects`."""
        return size_of(self._bucket, object_key) is not None

    def _put(self, object_key: str, content: bytes, **conditions: Any) -> None:
        digest = bytes.fromhex(object_keys.sha256(content))
        self._bucket.client.put_object(
            Bucket=self._bucket.name,
            Key=object_key,
            Body=content,
            ChecksumSHA256=base64.b64encode(digest).decode("ascii"),
            **conditions,
        )


def size_of(bucket: Bucket, object_key: str) -> int | None:
    """An object's size in bytes, None if there is none."""
    try:
        return bucket.client.head_object(Bucket=bucket.name, Key=object_key)["ContentLength"]
    except ClientError as error:
        if code_of(error) not in NOT_THERE:
            raise
        return None
