"""Large bodies in the region's bucket."""

from __future__ import annotations

from collections.abc import Mapping

from threadkeep.domain.errors import Unreadable, WarmUnavailable
from threadkeep.domain.model import ConversationKey
from threadkeep.stores import object_keys
from threadkeep.stores.buckets_s3 import Bucket, ObjectsS3


class BodiesS3:
    """`threadkeep.ports.BodyStore` on the regions' buckets; objects are written once and never changed.

    A body lies in the bucket of the region that its message was written in, until the archive puts it everywhere.

    Args:
        buckets: of all regions.
        region: the own one, whose bucket is written, and read first.
    """

    def __init__(self, buckets: Mapping[str, Bucket], region: str) -> None:
        self._buckets = buckets
        self._region = region

    def put(self, key: ConversationKey, message: str, body: bytes) -> str:
        """See `BodyStore`. What is there already is the same content, unless it is damaged, and then `get` says so."""
        object_key = object_keys.body(key, message, body)
        ObjectsS3(self._buckets[self._region]).put_once(object_key, body)
        return object_key

    def get(self, pointer: str) -> bytes:
        """See `BodyStore`.

        Raises:
            Unreadable: no region has the object as it was put.
        """
        unreadable: Unreadable | None = None
        unanswered: WarmUnavailable | None = None
        for region in sorted(self._buckets, key=lambda region: region != self._region):
            try:
                content = ObjectsS3(self._buckets[region]).read(pointer)
                return object_keys.check_body(pointer, content)
            except Unreadable as found:
                unreadable = unreadable or found
            except WarmUnavailable as unavailable:
                unanswered = unanswered or unavailable
        # While a region does not answer, nobody knows that the body is lost.
        raise unanswered or unreadable or ValueError("a body store needs its own region's bucket")
