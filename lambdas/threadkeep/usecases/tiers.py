"""Settled messages, wherever they lie: what the table holds and what the segments hold, as one history.

The only place that reads them for use cases. The manifests are read before the table: a message leaves the table only
long after the manifest of the segment that has it was put, so between them the two show each message at least once.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import islice
from typing import Literal

from threadkeep.domain.archive import Damaged, SegmentDamaged, unarchived_until_ms
from threadkeep.domain.bounds import PAGE_ITEMS_MAX
from threadkeep.domain.errors import ArchiveDamaged
from threadkeep.domain.model import ConversationKey, Message, StoredMessage
from threadkeep.domain.tail import Several
from threadkeep.ports import Clock, ColdStore, ManifestStore, MessagePage, WarmStore
from threadkeep.usecases.gaps import Gaps
from threadkeep.usecases.segment_reading import Place, Segments
from threadkeep.usecases.services import Services

Tier = Literal["hot", "warm", "cold"]


class Tiers:
    """Where settled messages lie.

    Args:
        warm, manifests, cold: the stores.
        clock: the time.
        archive_idle_ms: how long a conversation is idle before it is archived.
        gaps: makes what one request looks for in other regions.
    """

    def __init__(
        self,
        *,
        warm: WarmStore,
        manifests: ManifestStore,
        cold: ColdStore,
        clock: Clock,
        archive_idle_ms: int,
        gaps: Callable[[], Gaps],
    ) -> None:
        self.warm = warm
        self.manifests = manifests
        self.cold = cold
        self.gaps = gaps
        self._clock = clock
        self._archive_idle_ms = archive_idle_ms

    @classmethod
    def of(cls, services: Services) -> Tiers:
        """Those of the services."""
        return cls(
            warm=services.warm,
            manifests=services.manifests,
            cold=services.cold,
            clock=services.clock,
            archive_idle_ms=services.archive_idle_ms,
            gaps=partial(Gaps.of, services),
        )

    def is_fresh(self, identifier: str) -> bool:
        """Whether a message, or all of a conversation, of that id is too young to be in any segment."""
        return self._clock.now_ms() < unarchived_until_ms(identifier, idle_ms=self._archive_idle_ms)

    def read_message(self, key: ConversationKey, message: str) -> StoredMessage | None:
        """One message with all its parts.

        Raises:
            ArchiveDamaged: it may be there, and cannot be read.
        """
        return self.warm.read_message(key, message) or self.read_archived(key, message)

    def read_archived(self, key: ConversationKey, message: str) -> StoredMessage | None:
        """One message with all its parts, where a segment holds it. Raises as `read_message`."""
        is_damaged = False
        for place in self._places_of(key, message):
            try:
                stored = self.cold.read_whole(key, place.manifest, place.member, message)
            except SegmentDamaged:
                is_damaged = True
                continue
            if stored is not None:
                return stored
        if is_damaged:
            raise ArchiveDamaged("a segment that may hold the message cannot be read in any region")
        return None

    def has_message(self, key: ConversationKey, message: str) -> bool:
        """Whether it is stored. Raises as `read_message`."""
        if self.warm.has_message(key, message):
            return True
        places = self._places_of(key, message)
        ends = {end for place in places for end in (place.member.first, place.member.last)}
        return message in ends or (bool(places) and self.read_archived(key, message) is not None)

    def newest_id(self, key: ConversationKey) -> str | None:
        """Id of the newest settled message."""
        newest = self.warm.newest_id(key)
        # What was archived is old. Where nothing is warm, all of the conversation may be.
        if self.is_fresh(key.conversation) or (newest is not None and self.is_fresh(newest)):
            return newest
        archived = (manifest.last for manifest in self.manifests.read(key))
        return max([*archived, *([] if newest is None else [newest])], default=None)

    def _places_of(self, key: ConversationKey, message: str) -> list[Place]:
        if self.is_fresh(message) or self.is_fresh(key.conversation):
            return []
        return Segments(self.cold, key, self.manifests.read(key), batch=1).places_of(message)


class History:
    """What one request reads of a conversation's settled messages, in page form; not to be kept beyond it.

    Args:
        tiers: where they lie.
        key: whose they are.
        batch: how many messages the first read of the table or of a segment asks for.

    Attributes:
        tier: the coldest that was read from.
        missing: where a path came to an end before its time: a message that no other region has given us yet.
    """

    def __init__(self, tiers: Tiers, key: ConversationKey, *, batch: int) -> None:
        self.key = key
        self.tier: Tier = "hot"
        self.missing: str | None = None
        self._gaps = tiers.gaps()
        self._tiers = tiers
        self._batch = batch
        self._known: dict[str, StoredMessage] = {}
        self._passed: dict[Damaged, str | None] = {}
        """Stretches that a path was led past, each with the message that it went on with."""
        self._is_root_hidden = False

    def is_fresh(self, message: str) -> bool:
        """See `Tiers.is_fresh`."""
        return self._tiers.is_fresh(message)

    def note(self, messages: Iterable[StoredMessage]) -> None:
        """These need not be read."""
        for stored in messages:
            self._known.setdefault(stored.message.id, stored)

    def page(self, *, before: str | None = None, after: str | None = None, limit: int) -> MessagePage:
        """Messages of every branch with ids between the two bounds (both exclusive), newest first. Strongly consistent.

        Stretches of it that no bucket can give are left out; `damaged_in` tells of them.
        """
        segments = self._segments
        warm = self._tiers.warm.read_messages(self.key, before=before, after=after, limit=limit)
        self._read_from("warm")
        # Where the table has more than it was asked for, older messages of the segments are for the next page.
        floor = warm.messages[-1].message.id if warm.more and warm.messages else None
        cold = segments.downwards(before=before, after=after, floor=floor)
        found = list(islice(_merged(iter(warm.messages), self._from_segments(cold)), limit + 1))
        self.note(found)
        return MessagePage(tuple(found[:limit]), more=len(found) > limit or (warm.more and bool(found)))

    def newest_id(self) -> str | None:
        """Id of the newest settled message, strongly consistent; the newest page is read with it."""
        newest = [stored.message.id for stored in self.page(limit=self._batch).messages[:1]]
        return max([*newest, *([self._segments.newest] if self._segments.newest else [])], default=None)

    def path(self, start: str | None, *, after: str | None = None) -> Iterator[StoredMessage]:
        """From a message to its root, newest first, as far as the bound (exclusive); read as it is asked for.

        It ends where it names a message that is not here (yet), nor in any other region. Where that message may lie in
        a stretch that no bucket can give, it goes on with the newest message before that one, even where the stretch
        reaches around it: without branches, that is right.
        """
        wanted = start
        while wanted is not None and (after is None or wanted > after):
            stored = self.seek(wanted, after=after)
            if stored is not None:
                yield stored
                wanted = stored.message.parent
                continue
            if not self.is_lost(wanted):
                self.missing = wanted if self._gaps.are_possible else None
                return
            below = self.page(before=wanted, after=after, limit=self._batch)
            following = below.messages[0].message.id if below.messages else None
            for stretch in self._lost_between(wanted, following or after or ""):
                self._passed.setdefault(stretch, following)
            wanted = following

    def known_path(self, start: str | None) -> Iterator[StoredMessage]:
        """The path as far as it has been read already, or read along."""
        self.note(self._segments.read if "_segments" in vars(self) else ())
        while start is not None and start in self._known:
            yield self._known[start]
            start = self._known[start].message.parent

    def newest_beside(self, message: str) -> str | None:
        """Id of a newer message, the newest as far as the table tells along with that one; None where it is that one.

        Eventually consistent, in the one query that `find` would make for it.
        """
        if self.is_fresh(message):
            page = self._tiers.warm.read_messages(self.key, limit=self._batch, consistent=False)
            self._read_from("warm")
            self.note(page.messages)
            if page.messages and page.messages[0].message.id > message:
                return page.messages[0].message.id
        return None

    def find(self, message: str, *, after: str | None = None) -> StoredMessage | None:
        """One message; those before it are read along, down to the bound (exclusive).

        A message that is spoken of is there, or almost: so the table is read eventually consistent, for half the
        price, and only where it then lacks the message once more strongly. Each reading on asks for twice as many: who
        goes far beyond what was wanted goes on, as a rule.
        """
        if message in self._known:
            return self._known[message]
        archived = self._segments.find(message)
        if archived:
            self._read_from("cold")
            self.note(archived)
            return self._known[message]
        for is_consistent in (False, True):
            page = self._tiers.warm.read_messages(
                self.key, before=_behind(message), after=after, limit=self._batch, consistent=is_consistent
            )
            self._read_from("warm")
            self.note(page.messages)
            if message in self._known:
                self._batch = min(2 * self._batch, max(self._batch, PAGE_ITEMS_MAX))
                return self._known[message]
        return None

    def seek(self, message: str, *, after: str | None = None) -> StoredMessage | None:
        """As `find`; and where there are other regions, whatever has not come from them yet."""
        stored = self.find(message, after=after)
        if stored is not None or self.is_lost(message):
            return stored
        stored = self._gaps.find(self.key, message)
        if stored is not None:
            self._read_from("warm")
            self.note([stored])
        return stored

    def is_lost(self, message: str) -> bool:
        """Whether one that was looked for may lie in a stretch that no bucket can give."""
        return bool(self._lost_places(message))

    def root_above(self, message: Message) -> StoredMessage | None:
        """The root of a path that was read down to that message; all the way is read, as `path` reads it.

        None where it has not come from another region yet, and where damage lies before it: the path may have gone on
        another branch there. That is told of as what the page is led past (`damaged_down_to`).
        """
        root: StoredMessage | None = None
        if not self._passed and self.missing is None:
            for stored in self.path(message.parent):
                if self._passed:
                    break
                root = stored
        self._is_root_hidden = bool(self._passed)
        return root if root is not None and root.message.parent is None and not self._is_root_hidden else None

    def first(self) -> StoredMessage | Several | None:
        """The conversation's first message, that of the oldest id; None where there is none, or no bucket gives it.

        `SEVERAL` where it is only the first of several roots, one of which is a prompt: then see `root_above`.
        Strongly consistent: what is taken for the first is kept as such.
        """
        archived = None if self.is_fresh(self.key.conversation) else self._segments.oldest
        warm = self._tiers.warm.read_first(self.key)
        self._read_from("warm")
        if isinstance(warm, Several):
            return warm
        if archived is None or (warm is not None and warm.message.id <= archived):
            return warm
        self._read_from("cold")
        return self._segments.read_oldest()

    def damaged_in(
        self, *, before: str | None, down_to: str | None, between: Sequence[str] | None = None
    ) -> list[Damaged]:
        """Stretches that the pages so far could not give, whose ends lie between (``down_to`` included).

        A page tells of those that end in it, so that of all pages one tells of each. Where the messages ``between`` are
        given, those that end with none of them in between are one: no more are told than there are messages, and one.
        """
        told: dict[int, Damaged] = {}
        places = None if between is None else sorted(between)
        for member in sorted((place.member for place in self._segments.lost.values()), key=lambda one: one.last):
            if (before is None or member.last < before) and (down_to is None or member.last >= down_to):
                gap = len(told) if places is None else bisect(places, member.last)
                one = told.get(gap, Damaged(member.first, member.last, 0))
                told[gap] = Damaged(min(one.first, member.first), member.last, one.count + member.count)
        return list(told.values())

    def damaged_down_to(self, following: str | None) -> list[Damaged]:
        """Stretches that a page of a path was led past which ends before that message, or that hide the path's root."""
        return [
            stretch
            for stretch, below in self._passed.items()
            if following is None or (below is not None and following <= below) or self._is_root_hidden
        ]

    @cached_property
    def _segments(self) -> Segments:
        manifests = self._tiers.manifests.read(self.key)
        return Segments(self._tiers.cold, self.key, manifests, batch=self._batch)

    def _lost_places(self, message: str) -> list[Place]:
        lost = self._segments.lost.values()
        return [place for place in self._segments.places_of(message) if place in lost]

    def _lost_between(self, message: str, floor: str) -> list[Damaged]:
        """What is lost of the way from a message (inclusive) down to another (exclusive), or may be.

        As one, but for what reaches beyond that way: that may be met again, by a later page too, which then says the
        same of it.
        """
        lost = [place.member for place in self._segments.lost.values()]
        met = [member for member in lost if member.first <= message and member.last > floor]
        within = [member for member in met if member.first > floor and member.last <= message]
        beyond = [Damaged(member.first, member.last, member.count) for member in met if member not in within]
        if not within:
            return beyond
        first, last = min(member.first for member in within), max(member.last for member in within)
        return [*beyond, Damaged(first, last, sum(member.count for member in within))]

    def _from_segments(self, found: Iterator[StoredMessage]) -> Iterator[StoredMessage]:
        for stored in found:
            self._read_from("cold")
            yield stored

    def _read_from(self, tier: Tier) -> None:
        order: tuple[Tier, ...] = ("hot", "warm", "cold")
        self.tier = max(self.tier, tier, key=order.index)


def _merged(*sources: Iterator[StoredMessage]) -> Iterator[StoredMessage]:
    """All of them, newest first, each id once; each source is newest first."""
    heads = [(next(source, None), source) for source in sources]
    while any(head is not None for head, _ in heads):
        newest = max(head.message.id for head, _ in heads if head is not None)
        yield next(head for head, _ in heads if head is not None and head.message.id == newest)
        heads = [(_past(head, source, newest), source) for head, source in heads]


def _past(head: StoredMessage | None, source: Iterator[StoredMessage], message: str) -> StoredMessage | None:
    while head is not None and head.message.id == message:
        head = next(source, None)
    return head


def _behind(identifier: str) -> str:
    """The smallest text that sorts behind an id: an exclusive bound that includes it."""
    return identifier + "~"
