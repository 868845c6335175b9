"""The hot tier's deadline index in Valkey."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from threadkeep.domain.model import ConversationKey
from threadkeep.domain.streams import Due
from threadkeep.stores.hot_keys import (
    DEADLINES,
    STATE_PATTERN,
    deadline_entry,
    deadlines_of,
    stream_of_entry,
    stream_of_state,
)
from threadkeep.stores.lua import script
from threadkeep.stores.valkey_tier import ValkeyTier

_NO_TTL: Final = -1


class DeadlinesInValkey(ValkeyTier):
    """The deadline index of `HotStore`: sorted sets in slots of their own, so never in one step with a stream."""

    def file(self, key: ConversationKey, stream: str) -> None:
        """See `HotStore.file`."""
        self._client.run(script("file"), [deadlines_of(key)], [deadline_entry(key, stream), self._limits.lease_ms])

    def due(self, limit: int) -> tuple[Due, ...]:
        """See `HotStore.due`. One command a set."""
        found = []
        for shard in DEADLINES:
            reply = self._client.run(script("due"), [shard], [limit])
            found += [
                Due(*stream_of_entry(entry.decode()), at_ms=int(at_ms))
                for entry, at_ms in zip(reply[::2], reply[1::2], strict=True)
            ]
        return tuple(sorted(found, key=lambda due: due.at_ms)[:limit])

    def refile(self, due: Due, until_ms: int) -> None:
        """See `HotStore.refile`."""
        self._client.command("ZADD", deadlines_of(due.key), until_ms, deadline_entry(due.key, due.stream))

    def unfile(self, due: Due) -> None:
        """See `HotStore.unfile`."""
        self._client.run(script("unfile"), [deadlines_of(due.key)], [deadline_entry(due.key, due.stream), due.at_ms])

    def scan_live(self) -> Iterator[tuple[ConversationKey, str]]:
        """See `HotStore.scan_live`: states without a TTL. One command a state, and one for every few keys."""
        for name in self._client.scan(STATE_PATTERN):
            if self._client.command("PTTL", name) == _NO_TTL:
                yield stream_of_state(name)
