"""Segments on S3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from threadkeep.stores.buckets_s3 import Bucket, ObjectsS3
from threadkeep.stores.cold_segments import ColdSegments, RegionObjects


class ColdS3(ColdSegments):
    """`threadkeep.ports.ColdStore` on the regions' buckets.

    Args:
        buckets: of all regions.
        region: the own one.
    """

    def __init__(self, buckets: Mapping[str, Bucket], region: str) -> None:
        super().__init__(_Objects(buckets), region)


class _Objects(Mapping[str, RegionObjects]):
    """Wraps each bucket when it is wanted, and so builds no client before."""

    def __init__(self, buckets: Mapping[str, Bucket]) -> None:
        self._buckets = buckets

    def __getitem__(self, region: str) -> RegionObjects:
        return ObjectsS3(self._buckets[region])

    def __iter__(self) -> Iterator[str]:
        return iter(self._buckets)

    def __len__(self) -> int:
        return len(self._buckets)
