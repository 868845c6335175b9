"""Which segments hold which messages of a conversation: exactly, by reading the members that might."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise

from threadkeep.domain.archive import Manifest, Member, SegmentDamaged
from threadkeep.domain.model import ConversationKey
from threadkeep.ports import ColdStore


class Holdings:
    """What a conversation's segments hold, by ids alone; each member is read at most once.

    Args:
        cold: where the segments lie.
        key: whose they are.
        manifests: all of the conversation's.
    """

    def __init__(self, cold: ColdStore, key: ConversationKey, manifests: Sequence[Manifest]) -> None:
        self._cold = cold
        self._key = key
        self._manifests = list(manifests)
        self._ids: dict[tuple[str, int], frozenset[str]] = {}
        self._lost: dict[str, Manifest] = {}

    @property
    def damaged(self) -> tuple[Manifest, ...]:
        """Of what has been read so far, the segments of which no region gives all."""
        return tuple(self._lost.values())

    def holders(self, messages: Sequence[str]) -> dict[str, list[Manifest]]:
        """The segments that hold each of these messages (ids in rising order), as far as they can be read."""
        found: dict[str, list[Manifest]] = {message: [] for message in messages}
        for manifest in self._manifests:
            wanted = [index for index, member in enumerate(manifest.members) if _any_between(messages, member)]
            self._read(manifest, [index for index in wanted if (manifest.object_key, index) not in self._ids])
            for index in wanted:
                for message in self._ids[manifest.object_key, index].intersection(found):
                    found[message].append(manifest)
        return found

    def restored(self, manifest: Manifest) -> None:
        """The segment is as it was written again: read it anew."""
        self._lost.pop(manifest.object_key, None)
        for index in range(len(manifest.members)):
            self._ids.pop((manifest.object_key, index), None)

    def given_up(self, manifest: Manifest) -> None:
        """The segment can be relied upon no more: it holds nothing."""
        self.restored(manifest)
        self._manifests.remove(manifest)

    def _read(self, manifest: Manifest, indices: Sequence[int]) -> None:
        for run in _neighbours(indices):
            members = [manifest.members[index] for index in run]
            try:
                stored = self._cold.read(self._key, manifest, members)
            except SegmentDamaged as damaged:
                self._lost[manifest.object_key] = manifest
                lost = [index for index in run if manifest.members[index] in damaged.members] or run
                self._ids |= {(manifest.object_key, index): frozenset() for index in lost}
                self._read(manifest, [index for index in run if index not in lost])
                continue
            ids = [one.message.id for one in stored]
            for index, member in zip(run, members, strict=True):
                low, high = bisect_left(ids, member.first), bisect_left(ids, member.last)
                self._ids[manifest.object_key, index] = frozenset(ids[low : high + 1])


def _any_between(messages: Sequence[str], member: Member) -> bool:
    place = bisect_left(messages, member.first)
    return place < len(messages) and messages[place] <= member.last


def _neighbours(indices: Sequence[int]) -> Iterator[list[int]]:
    """Runs of indices that follow each other."""
    run = list(indices[:1])
    for one, other in pairwise(indices):
        if other != one + 1:
            yield run
            run = []
        run.append(other)
    if run:
        yield run
