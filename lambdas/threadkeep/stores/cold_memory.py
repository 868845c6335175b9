"""Segments in memory: the reference, and a fake for tests."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from threadkeep.domain.archive import Manifest, Member, SegmentDamaged
from threadkeep.domain.bounds import MEMBER_MESSAGES_MAX
from threadkeep.domain.json_values import encode
from threadkeep.domain.model import ConversationKey, StoredMessage
from threadkeep.stores.warm_items import in_page


class ColdMemory:
    """`threadkeep.ports.ColdStore` on dictionaries: one for each region's bucket.

    Attributes:
        buckets: segments by region and object key; tests take some away.
        reads: ranged reads so far.
    """

    def __init__(self, *regions: str) -> None:
        self.buckets: dict[str, dict[str, tuple[StoredMessage, ...]]] = {region: {} for region in regions}
        self.reads = 0

    def write(self, key: ConversationKey, messages: Sequence[StoredMessage], *, now_ms: int) -> Manifest:
        """See `ColdStore`."""
        held = tuple(messages)
        members: list[Member] = []
        offset = 0
        for start in range(0, len(held), MEMBER_MESSAGES_MAX):
            own = held[start : start + MEMBER_MESSAGES_MAX]
            size = sum(len(encode(stored)) for stored in own)
            members.append(
                Member(
                    first=own[0].message.id,
                    last=own[-1].message.id,
                    count=len(own),
                    offset=offset,
                    size_bytes=size,
                    digest=hashlib.sha256(encode(own)).hexdigest(),
                )
            )
            offset += size
        digest = hashlib.sha256(encode(held)).hexdigest()
        object_key = f"segments/{key.tenant}/{key.conversation}/{held[0].message.id}-{digest}"
        for bucket in self.buckets.values():
            bucket[object_key] = held
        return Manifest(
            first=held[0].message.id,
            last=held[-1].message.id,
            count=len(held),
            object_key=object_key,
            size_bytes=offset,
            digest=digest,
            regions=tuple(self.buckets),
            archived_ms=now_ms,
            members=tuple(members),
        )

    def read(self, key: ConversationKey, manifest: Manifest, members: Sequence[Member]) -> tuple[StoredMessage, ...]:
        """See `ColdStore`."""
        self.reads += 1
        return tuple(in_page(stored) for stored in self._held(key, manifest, members))

    def read_whole(
        self, key: ConversationKey, manifest: Manifest, member: Member, message: str
    ) -> StoredMessage | None:
        """See `ColdStore`."""
        self.reads += 1
        held = self._held(key, manifest, (member,))
        return next((stored for stored in held if stored.message.id == message), None)

    def missing_in(self, key: ConversationKey, manifest: Manifest) -> tuple[str, ...]:  # noqa: ARG002 -- in its object key
        """See `ColdStore`."""
        return tuple(region for region, bucket in self.buckets.items() if manifest.object_key not in bucket)

    def remove(self, key: ConversationKey) -> int:
        """See `ObjectSweep`; of every region at once."""
        prefix = f"segments/{key.tenant}/{key.conversation}/"
        count = 0
        for bucket in self.buckets.values():
            for name in [name for name in bucket if name.startswith(prefix)]:
                del bucket[name]
                count += 1
        return count

    def _held(self, key: ConversationKey, manifest: Manifest, members: Sequence[Member]) -> list[StoredMessage]:
        if not manifest.object_key.startswith(f"segments/{key.tenant}/{key.conversation}/"):
            raise ValueError("a manifest is read in its own conversation")
        for bucket in self.buckets.values():
            if (held := bucket.get(manifest.object_key)) is not None:
                low, high = members[0].first, members[-1].last
                return [stored for stored in held if low <= stored.message.id <= high]
        raise SegmentDamaged(tuple(members), "no bucket holds the segment")
