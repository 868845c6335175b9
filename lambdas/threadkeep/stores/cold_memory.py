"""Segments in memory: the reference, and a fake for tests."""

from __future__ import annotations

from threadkeep.domain.model import ConversationKey
from threadkeep.stores import object_keys
from threadkeep.stores.buckets_memory import ObjectsMemory
from threadkeep.stores.cold_segments import ColdSegments


class ColdMemory(ColdSegments):
    """`threadkeep.ports.ColdStore` and `ObjectSweep` on dictionaries: one for each region's bucket.

    Args:
        regions: the own one first.

    Attributes:
        buckets: by region; tests take objects away, damage them, or make a bucket unavailable.
    """

    def __init__(self, *regions: str) -> None:
        self.buckets = {region: ObjectsMemory() for region in regions}
        super().__init__(self.buckets, regions[0])

    @property
    def reads(self) -> int:
        """Ranged reads so far, of every bucket."""
        return sum(bucket.ranged_reads for bucket in self.buckets.values())

    def remove(self, key: ConversationKey) -> int:
        """See `ObjectSweep`; of every region at once."""
        count = 0
        for bucket in self.buckets.values():
            for name in [name for name in bucket.objects if name.startswith(object_keys.prefixes(key))]:
                del bucket.objects[name]
                count += 1
        return count
