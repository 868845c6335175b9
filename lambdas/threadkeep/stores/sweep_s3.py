"""Everything that a bucket holds of a conversation, deleted."""

from __future__ import annotations

from collections.abc import Sequence
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

_BATCHES_MAX: Final = 1_000


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
        """Delete what the listing begins with until it is empty: so there is no place in it that a deletion moves."""
        count = 0
        for _ in range(_BATCHES_MAX):
            page = self._client.list_object_versions(Bucket=self._bucket, Prefix=prefix, MaxKeys=_BATCH_MAX)
            versions = page.get("Versions", [])
            found: list[ObjectIdentifierTypeDef] = [
                {"Key": entry["Key"], "VersionId": entry["VersionId"]}
                for entry in (*versions, *page.get("DeleteMarkers", []))
            ]
            if not found:
                return count
            self._delete(found)
            count += len(versions)
        raise WarmUnavailable(f"ListObjectVersions: still not empty after {_BATCHES_MAX} times {_BATCH_MAX} objects")

    def _delete(self, batch: Sequence[ObjectIdentifierTypeDef]) -> None:
        answer = self._client.delete_objects(Bucket=self._bucket, Delete={"Objects": batch, "Quiet": True})
        if errors := answer.get("Errors", []):
            codes = sorted({error.get("Code", "") for error in errors})
            raise WarmUnavailable(f"DeleteObjects: {len(errors)} objects were kept: {', '.join(codes)}")
