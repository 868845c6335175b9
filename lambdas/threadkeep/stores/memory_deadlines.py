"""The hot tier's deadline index in memory."""

from __future__ import annotations

from collections.abc import Iterator

from threadkeep.domain.model import ConversationKey
from threadkeep.domain.streams import Due
from threadkeep.stores.memory_conversation import MemoryTier


class DeadlinesInMemory(MemoryTier):
    """The deadline index of `HotStore`: one set, where nothing is sharded."""

    def file(self, key: ConversationKey, stream: str) -> None:
        """See `HotStore.file`."""
        self._check()
        now_ms = self._clock.now_ms()
        if self._deadlines.get((key, stream), 0) <= now_ms:
            self._deadlines[key, stream] = now_ms + self._limits.lease_ms

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
