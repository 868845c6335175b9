"""A region's bucket in memory, for the stores in memory that lie in one bucket together."""

from __future__ import annotations

from threadkeep.domain.errors import WarmUnavailable


class ObjectsMemory:
    """`threadkeep.stores.cold_segments.RegionObjects` on a dictionary.

    Attributes:
        objects: content by object key.
        unavailable: while set, every call raises `WarmUnavailable`.
        ranged_reads: how often a part of an object was asked for.
        whole_reads: how often all of one.
        puts: how often some was written.
    """

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.unavailable = False
        self.ranged_reads = self.whole_reads = 0
        self.puts = 0

    def put_once(self, object_key: str, content: bytes) -> None:
        """See `RegionObjects`."""
        self._check_available()
        self.puts += 1
        self.objects.setdefault(object_key, content)

    def replace(self, object_key: str, content: bytes) -> None:
        """See `RegionObjects`."""
        self._check_available()
        self.puts += 1
        self.objects[object_key] = content

    def read(self, object_key: str, *, offset: int = 0, size_bytes: int | None = None) -> bytes | None:
        """See `RegionObjects`."""
        self._check_available()
        self.ranged_reads += size_bytes is not None
        self.whole_reads += size_bytes is None
        content = self.objects.get(object_key)
        return None if content is None else content[offset : None if size_bytes is None else offset + size_bytes]

    def holds(self, object_key: str) -> bool:
        """See `RegionObjects`."""
        self._check_available()
        return object_key in self.objects

    def _check_available(self) -> None:
        if self.unavailable:
            raise WarmUnavailable("the bucket in memory is told to be unavailable")
