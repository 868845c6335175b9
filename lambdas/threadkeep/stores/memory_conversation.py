"""What the hot tier in memory holds, and the two sides of it that stand by themselves: viewers, and deadlines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from threadkeep.domain.bounds import LEAF_MS, LEASE_MS, VIEWERS_MAX
from threadkeep.domain.errors import HotUnavailable
from threadkeep.domain.leaf import Register
from threadkeep.domain.model import ConversationKey
from threadkeep.domain.streams import Due, Full, Limits, Seal, Stream
from threadkeep.ports import Clock


class Conversation(msgspec.Struct):
    """What the tier holds of a conversation.

    Attributes:
        streams: by id, the live ones and those that settled lately.
        forgotten_ms: when a settled stream's state goes.
        stopped: seals of streams that were never opened, and when each goes (ms).
        register: the leaf, and when it is forgotten (ms).
        leases: each viewer's connection, and when its lease ends (ms).
        lagging: so of viewers that lag.
    """

    streams: dict[str, Stream] = {}
    forgotten_ms: dict[str, int] = {}
    stopped: dict[str, tuple[Seal, int]] = {}
    register: Register = msgspec.field(default_factory=Register)
    register_ends_ms: int = 0
    leases: dict[str, int] = {}
    lagging: dict[str, int] = {}

    @property
    def live(self) -> tuple[str, ...]:
        """Ids of the streams that have not settled."""
        return tuple(stream for stream, record in self.streams.items() if not record.settled)

    def forget(self, now_ms: int) -> None:
        """Drop what has run out."""
        for leases in (self.leases, self.lagging):
            for connection in [name for name, end_ms in leases.items() if end_ms <= now_ms]:
                del leases[connection]
        for stream in [name for name, end_ms in self.forgotten_ms.items() if end_ms <= now_ms]:
            del self.forgotten_ms[stream], self.streams[stream]
        for stream in [name for name, (_, end_ms) in self.stopped.items() if end_ms <= now_ms]:
            del self.stopped[stream]
        if self.register_ends_ms <= now_ms:
            self.register = Register()

    def keep_register(self, now_ms: int) -> Register:
        """The register, about to be changed: it stays a while longer."""
        self.register_ends_ms = now_ms + LEAF_MS
        return self.register


class MemoryTier:
    """Conversations in memory, by a clock.

    Attributes:
        unavailable: while set, every call raises `HotUnavailable`.
    """

    def __init__(self, clock: Clock, *, region: str, limits: Limits | None = None) -> None:
        self.unavailable = False
        self._clock = clock
        self._region = region
        self._limits = limits or Limits()
        self._conversations: dict[ConversationKey, Conversation] = {}
        self._deadlines: dict[tuple[ConversationKey, str], int] = {}

    def _check(self) -> None:
        if self.unavailable:
            raise HotUnavailable("the hot tier in memory is told to be unavailable")

    def _conversation(self, key: ConversationKey) -> Conversation:
        """The conversation as it stands now. Every call about one goes through here."""
        self._check()
        conversation = self._conversations.setdefault(key, Conversation())
        conversation.forget(self._clock.now_ms())
        return conversation


class ViewersInMemory(MemoryTier):
    """The viewers of `HotStore`."""

    def subscribe(self, key: ConversationKey, connection: str, *, lease_ms: int) -> Full | None:
        """See `HotStore.subscribe`."""
        conversation = self._conversation(key)
        known = conversation.leases.keys() | conversation.lagging.keys()
        if connection not in known and len(known) >= VIEWERS_MAX:
            return Full()
        conversation.lagging.pop(connection, None)
        conversation.leases[connection] = self._clock.now_ms() + lease_ms
        return None

    def unsubscribe(self, key: ConversationKey, connections: Sequence[str]) -> None:
        """See `HotStore.unsubscribe`."""
        conversation = self._conversation(key)
        for connection in connections:
            conversation.leases.pop(connection, None)
            conversation.lagging.pop(connection, None)

    def mark_lagging(self, key: ConversationKey, connections: Sequence[str]) -> None:
        """See `HotStore.mark_lagging`."""
        conversation = self._conversation(key)
        for connection in connections:
            if connection in conversation.leases:
                conversation.lagging[connection] = conversation.leases.pop(connection)

    def viewers(self, key: ConversationKey) -> tuple[str, ...]:
        """See `HotStore.viewers`."""
        return tuple(self._conversation(key).leases)


class DeadlinesInMemory(MemoryTier):
    """The deadline index of `HotStore`: one set, where nothing is sharded."""

    def file(self, key: ConversationKey, stream: str) -> None:
        """See `HotStore.file`."""
        self._check()
        now_ms = self._clock.now_ms()
        if self._deadlines.get((key, stream), 0) <= now_ms:
            self._deadlines[key, stream] = now_ms + LEASE_MS

    def due(self, limit: int) -> tuple[Due, ...]:
        """See `HotStore.due`."""
        self._check()
        now_ms = self._clock.now_ms()
        found = [Due(key, stream, at_ms) for (key, stream), at_ms in self._deadlines.items() if at_ms <= now_ms]
        return tuple(sorted(found, key=lambda due: due.at_ms)[:limit])

    def refile(self, due: Due, until_ms: int) -> None:
        """See `HotStore.refile`."""
        self._check()
        self._deadlines[due.key, due.stream] = until_ms

    def unfile(self, due: Due) -> None:
        """See `HotStore.unfile`."""
        self._check()
        if self._deadlines.get((due.key, due.stream)) == due.at_ms:
            del self._deadlines[due.key, due.stream]

    def scan_live(self) -> Iterator[tuple[ConversationKey, str]]:
        """See `HotStore.scan_live`."""
        self._check()
        for key, conversation in list(self._conversations.items()):
            for stream in conversation.live:
                yield key, stream
