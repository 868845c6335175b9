"""Reading the segments of one conversation for one request: by id, and downwards, as little of them as that takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from threadkeep import telemetry
from threadkeep.domain.archive import Manifest, Member, SegmentDamaged
from threadkeep.domain.bounds import COLD_READ_BYTES_MAX
from threadkeep.domain.model import ConversationKey, StoredMessage
from threadkeep.ports import ColdStore


class Place(NamedTuple):
    """A member of a segment: its segment's manifest, and which of its members it is."""

    manifest: Manifest
    number: int

    @property
    def member(self) -> Member:
        """The member itself."""
        return self.manifest.members[self.number]


class Segments:
    """What a conversation's manifests tell of, read member by member; each is read at most once.

    Members that lie next to each other come in one ranged read. What a member cannot give any more is remembered as
    lost, and counted and logged once.

    Args:
        cold: where the segments lie.
        key: whose they are.
        manifests: all of the conversation's.
        batch: how many messages the reader is going to want; so many more are read along where that costs no call.
    """

    def __init__(self, cold: ColdStore, key: ConversationKey, manifests: Sequence[Manifest], *, batch: int) -> None:
        self._cold = cold
        self._key = key
        # What was archived first stands.
        self._manifests = sorted(manifests, key=lambda manifest: (manifest.archived_ms, manifest.first))
        self._batch = batch
        self._read: dict[tuple[str, int], tuple[StoredMessage, ...]] = {}
        self.lost: dict[tuple[str, int], Place] = {}

    @property
    def newest(self) -> str | None:
        """The greatest id of them all."""
        return max((manifest.last for manifest in self._manifests), default=None)

    @property
    def oldest(self) -> str | None:
        """The least id of them all."""
        return min((manifest.first for manifest in self._manifests), default=None)

    def read_oldest(self) -> StoredMessage | None:
        """The message of that id, in page form; None where no bucket gives it."""
        manifest = min(self._manifests, key=lambda manifest: manifest.first)
        return next(iter(self._messages(Place(manifest, 0))), None)

    @property
    def read(self) -> Iterator[StoredMessage]:
        """All that was read so far."""
        return (stored for messages in self._read.values() for stored in messages)

    def places_of(self, message: str) -> list[Place]:
        """The members that a message lies in if it has been archived, at most one of each segment."""
        return [
            Place(manifest, number)
            for manifest in self._manifests
            if manifest.first <= message <= manifest.last
            for number, member in enumerate(manifest.members)
            if member.first <= message <= member.last
        ]

    def find(self, message: str) -> tuple[StoredMessage, ...]:
        """A message in page form, and behind it those read along that are older; empty where no segment gives it."""
        for place in self.places_of(message):
            found = self._messages(place)
            if any(stored.message.id == message for stored in found):
                return tuple(
                    stored
                    for read in self._run(place)
                    for stored in reversed(self._read.get(_name(read), ()))
                    if stored.message.id <= message
                )
        return ()

    def downwards(self, *, before: str | None, after: str | None, floor: str | None) -> Iterator[StoredMessage]:
        """Newest first, between the two bounds (both exclusive) and not below the floor; some may come twice."""
        places = sorted(
            (
                Place(manifest, number)
                for manifest in self._manifests
                for number, member in enumerate(manifest.members)
                if (before is None or member.first < before)
                and (after is None or member.last > after)
                and (floor is None or member.last >= floor)
            ),
            key=lambda place: place.member.last,
        )
        # Of all that was read, the newest comes next once no member that is still to be read could hold a newer one.
        waiting: list[StoredMessage] = []
        while places or waiting:
            if places and (not waiting or waiting[-1].message.id <= places[-1].member.last):
                waiting = sorted([*waiting, *self._messages(places.pop())], key=_id)
                continue
            stored = waiting.pop()
            message = stored.message.id
            if (after is not None and message <= after) or (floor is not None and message < floor):
                return
            if before is None or message < before:
                yield stored

    def _messages(self, place: Place) -> tuple[StoredMessage, ...]:
        if not self._is_known(place):
            self._fetch([unread for unread in self._run(place) if not self._is_known(unread)])
        return self._read.get(_name(place), ())

    def _is_known(self, place: Place) -> bool:
        return _name(place) in self._read or _name(place) in self.lost

    def _run(self, place: Place) -> list[Place]:
        """The member and those below it that are read along: where in it one begins to read is not known."""
        run, messages, size_bytes = [place], 0, place.member.size_bytes
        for number in range(place.number - 1, -1, -1):
            below = Place(place.manifest, number)
            size_bytes += below.member.size_bytes
            if messages >= self._batch or size_bytes > COLD_READ_BYTES_MAX:
                break
            messages += below.member.count
            run.append(below)
        return run

    def _fetch(self, places: Sequence[Place]) -> None:
        """Read neighbours, in one call; where some of them are damaged the others are read by themselves."""
        for run in _neighbours(sorted(places, key=lambda place: place.number)):
            members = [place.member for place in run]
            try:
                found = self._cold.read(self._key, run[0].manifest, members)
            except SegmentDamaged as damaged:
                lost = [place for place in run if place.member in damaged.members] or run
                self._lose(lost)
                self._fetch([place for place in run if place not in lost])
                continue
            for place in run:
                member = place.member
                self._read[_name(place)] = tuple(
                    stored for stored in found if member.first <= stored.message.id <= member.last
                )

    def _lose(self, places: Sequence[Place]) -> None:
        for place in places:
            self.lost[_name(place)] = place
        telemetry.count("SegmentsDamaged", len(places))
        telemetry.logger().error(
            "Members of a segment cannot be read in any region",
            conversation=self._key.conversation,
            members=[[place.member.first, place.member.last] for place in places],
        )


def _id(stored: StoredMessage) -> str:
    return stored.message.id


def _name(place: Place) -> tuple[str, int]:
    return place.manifest.object_key, place.number


def _neighbours(places: Sequence[Place]) -> Iterator[list[Place]]:
    """Runs of places that follow each other, in order; all are of one segment."""
    run = list(places[:1])
    for one, other in pairwise(places):
        if other.number != one.number + 1:
            yield run
            run = []
        run.append(other)
    if run:
        yield run
