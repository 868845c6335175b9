"""Everything that a bucket holds of a conversation, deleted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from threadkeep.domain.errors import WarmUnavailable
from threadkeep.domain.model import ConversationKey
from threadkeep.stores import object_keys
from threadkeep.stores.aws_faults import warm_unavailable
from threadkeep.stores.buckets_s3 import Bucket

if TYPE_CHECKING:
    from mypy_boto3_s3.type_defs import ObjectIdentifierTypeDef

_BATCH_MAX: Final = 1_000
"""Keys of one DeleteObjects, and of one page of a listing (S3 API reference, recalled 2026-11-29)."""


class SweepS3:
    """`threadkeep.ports.ObjectSweep` on a bucket, versioned or not.

    Args:
        bucket: the own region's.
    """

    def __init__(self, bucket: Bucket) -> None:
        self._client, self._bucket = bucket

    @warm_unavailable()
    def remove(self, key: ConversationKey) -> int:
        """See `ObjectSweep`. Delete markers go too, uncounted.

        Raises:
            WarmUnavailable: S3 kept some of them. The others are gone.
        """
        return sum(self._remove(prefix) for prefix in object_keys.prefixes(key))

    def _remove(self, prefix: str) -> int:
        count = 0
        for found, batch in self._pages(prefix):
            self._delete(batch)
            count += found
        return count

    def _pages(self, prefix: str) -> Iterator[tuple[int, list[ObjectIdentifierTypeDef]]]:
        """Page by page, how many versions it lists, and all that is to be deleted to be rid of them."""
        pages = self._client.get_paginator("list_object_versions").paginate(
            Bucket=self._bucket, Prefix=prefix, PaginationConfig={"PageSize": _BATCH_MAX}
        )
        for page in pages:
            versions = page.get("Versions", [])
            batch: list[ObjectIdentifierTypeDef] = [
                {"Key": entry["Key"], "VersionId": entry["VersionId"]}
                for entry in (*versions, *page.get("DeleteMarkers", []))
            ]
            if batch:
                yield len(versions), batch

    def _delete(self, batch: Sequence[ObjectIdentifierTypeDef]) -> None:
        answer = self._client.delete_objects(Bucket=self._bucket, Delete={"Objects": batch, "Quiet": True})
        if errors := answer.get("Errors", []):
            codes = sorted({error.get("Code", "") for error in errors})
            raise WarmUnavailable(f"DeleteObjects: {len(errors)} objects were kept: {', '.join(codes)}")
