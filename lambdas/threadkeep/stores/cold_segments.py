"""Segments in the buckets of all regions, whatever keeps those buckets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec
from msgspec import UNSET

from threadkeep.domain.archive import Manifest, Member, SegmentDamaged
from threadkeep.domain.errors import Unreadable, WarmUnavailable
from threadkeep.domain.model import ConversationKey, StoredMessage
from threadkeep.stores import object_keys
from threadkeep.stores.packing import pack, unpack
from threadkeep.stores.segments import Line, SegmentWriter, read_lines
from threadkeep.stores.warm_items import in_page


class RegionObjects(Protocol):
    """The objects of one region's bucket. Every method raises `WarmUnavailable`."""

    def put_once(self, object_key: str, content: bytes) -> None:
        """Write it where nothing lies; what lies there stays."""
        ...

    def replace(self, object_key: str, content: bytes) -> None:
        """Write it whatever lies there."""
        ...

    def read(self, object_key: str, *, offset: int = 0, size_bytes: int | None = None) -> bytes | None:
        """The object, or so much of it from there (less where it ends); None if there is none."""
        ...

    def holds(self, object_key: str) -> bool:
        """Whether there is one; reads nothing of it."""
        ...


class ColdSegments:
    """`threadkeep.ports.ColdStore` on the buckets of all regions.

    Every region is written, and read back whole: what was put there before and is not what its key says is replaced.
    Reads ask the own region first, and the others for what it cannot give.

    Args:
        buckets: by region.
        region: the own one.
    """

    def __init__(self, buckets: Mapping[str, RegionObjects], region: str) -> None:
        self._buckets = buckets
        self._region = region

    def write(self, key: ConversationKey, messages: Sequence[StoredMessage], *, now_ms: int) -> Manifest:
        """See `ColdStore`. A body is everywhere before the segment that points to it.

        Raises:
            ValueError: a message comes without its parts, or they make no segment (`SegmentWriter`).
        """
        writer = SegmentWriter(key)
        for stored in messages:
            writer.add(self._line(key, stored))
        segment = writer.finish()
        self._keep(self._buckets, segment.object_key, segment.content)
        return segment.manifest(regions=sorted(self._buckets), archived_ms=now_ms)

    def read(self, key: ConversationKey, manifest: Manifest, members: Sequence[Member]) -> tuple[StoredMessage, ...]:
        """See `ColdStore`."""
        return tuple(
            line.to_stored() for content in self._members(key, manifest, members) for line in read_lines(content)
        )

    def read_whole(
        self, key: ConversationKey, manifest: Manifest, member: Member, message: str
    ) -> StoredMessage | None:
        """See `ColdStore`."""
        lines = (line for content in self._members(key, manifest, (member,)) for line in read_lines(content))
        line = next((line for line in lines if line.id == message), None)
        if line is None or line.body is UNSET:
            return None if line is None else line.to_stored()
        packed = self._body(member, line.body)
        try:
            body = unpack(key.conversation, line.id, packed)
        except Unreadable as unreadable:
            raise SegmentDamaged((member,), str(unreadable)) from unreadable
        shown = line.to_stored()
        return StoredMessage(msgspec.structs.replace(shown.message, parts=body.parts, bytes=UNSET), shown.epoch)

    def missing_in(self, key: ConversationKey, manifest: Manifest) -> tuple[str, ...]:
        """See `ColdStore`. The segment is read whole; of the bodies it is asked only whether they lie there."""
        holding = {region: self._whole(key, manifest, bucket) for region, bucket in self._buckets.items()}
        content = next((found for found in holding.values() if found is not None), None)
        bodies = [] if content is None else _bodies(manifest, content)
        return tuple(
            region
            for region, found in holding.items()
            if found is None or not all(self._buckets[region].holds(body) for body in bodies)
        )

    def mend(self, key: ConversationKey, manifest: Manifest) -> None:
        """See `ColdStore`."""
        missing = {region: self._buckets[region] for region in self.missing_in(key, manifest)}
        if not missing:
            return
        whole = b"".join(self._members(key, manifest, manifest.members))
        for body in _bodies(manifest, whole):
            message = object_keys.BodyKey.from_key(body).message
            member = next(member for member in manifest.members if member.first <= message <= member.last)
            self._keep(missing, body, self._body(member, body))
        self._keep(missing, manifest.object_key, whole)

    # --- writing ----------------------------------------------------------------------------------------------

    def _line(self, key: ConversationKey, stored: StoredMessage) -> Line:
        if stored.message.parts is UNSET:
            raise ValueError(f"message {stored.message.id} must be archived with its parts")
        shown = in_page(stored)
        if shown is stored:
            return Line.of(stored)
        packed = pack(stored.message)
        object_key = object_keys.body(key, stored.message.id, packed)
        self._keep(self._buckets, object_key, packed)
        return Line.of(shown, object_key)

    def _keep(self, buckets: Mapping[str, RegionObjects], object_key: str, content: bytes) -> None:
        for region, bucket in buckets.items():
            bucket.put_once(object_key, content)
            if bucket.read(object_key) != content:
                bucket.replace(object_key, content)
                if bucket.read(object_key) != content:
                    raise WarmUnavailable(f"the bucket in {region} gave back other bytes than were written")

    # --- reading ----------------------------------------------------------------------------------------------

    def _nearest(self) -> list[str]:
        """The regions, the own one first. A bucket is taken out when it is asked: its client may be built then."""
        return sorted(self._buckets, key=lambda region: region != self._region)

    def _members(self, key: ConversationKey, manifest: Manifest, members: Sequence[Member]) -> list[bytes]:
        """Their bytes as they were written, from as few regions as can give them.

        Raises:
            SegmentDamaged: none can.
            WarmUnavailable: nobody knows, since a region did not answer.
        """
        _check_owner(key, manifest)
        ordered = sorted(members, key=lambda member: member.offset)
        found: dict[int, bytes] = {}
        unanswered: WarmUnavailable | None = None
        for region in self._nearest():
            wanted = [member for member in ordered if member.offset not in found]
            if not wanted:
                break
            start, end = wanted[0].offset, wanted[-1].offset + wanted[-1].size_bytes
            try:
                bucket = self._buckets[region]
                content = bucket.read(manifest.object_key, offset=start, size_bytes=end - start) or b""
            except WarmUnavailable as unavailable:
                unanswered = unavailable
                continue
            for member in wanted:
                piece = content[member.offset - start : member.offset - start + member.size_bytes]
                if object_keys.sha256(piece) == member.digest:
                    found[member.offset] = piece
        missing = tuple(member for member in ordered if member.offset not in found)
        if missing and unanswered is not None:
            raise unanswered
        if missing:
            raise SegmentDamaged(missing, "no region has them as they were written")
        return [found[member.offset] for member in ordered]

    def _body(self, member: Member, object_key: str) -> bytes:
        """A body as it was written. Raises as `_members`."""
        unanswered: WarmUnavailable | None = None
        for region in self._nearest():
            try:
                content = self._buckets[region].read(object_key)
                return object_keys.check_body(object_key, content)
            except WarmUnavailable as unavailable:
                unanswered = unavailable
            except Unreadable:
                continue
        if unanswered is not None:
            raise unanswered
        raise SegmentDamaged((member,), "no region has the body of one of its messages as it was written")

    def _whole(self, key: ConversationKey, manifest: Manifest, bucket: RegionObjects) -> bytes | None:
        """The segment in one bucket, None where it is missing or another."""
        _check_owner(key, manifest)
        content = bucket.read(manifest.object_key)
        return content if content is not None and object_keys.sha256(content) == manifest.digest else None


def _bodies(manifest: Manifest, content: bytes) -> list[str]:
    """The keys of the bodies that a whole segment points to."""
    pieces = (content[member.offset : member.offset + member.size_bytes] for member in manifest.members)
    return [line.body for piece in pieces for line in read_lines(piece) if line.body is not UNSET]


def _check_owner(key: ConversationKey, manifest: Manifest) -> None:
    if manifest.object_key != object_keys.segment(key, manifest.first, manifest.digest):
        raise ValueError(f"the manifest of {manifest.first} is not this conversation's")
