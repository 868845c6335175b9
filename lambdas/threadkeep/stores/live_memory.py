"""The register of live streams by region in memory: the reference, and a fake for tests."""

from __future__ import annotations

from threadkeep.domain.model import ConversationKey, LiveStream
from threadkeep.stores.warm_memory import WarmMemory


class LiveMemory:
    """`threadkeep.ports.LiveRegister` beside a warm tier in memory, as the register lies in the same table."""

    def __init__(self, warm: WarmMemory, region: str) -> None:
        self._warm = warm
        self._region = region

    def put(self, key: ConversationKey, live: LiveStream, *, until_ms: int) -> None:
        """See `LiveRegister`. The item is written as a whole, so that a replica has the old one or the new."""
        self._warm.check_available()
        items = self._warm.live.setdefault(key, {})
        items[self._region] = items.get(self._region, {}) | {live.stream: (live, until_ms)}

    def remove(self, key: ConversationKey, stream: str) -> None:
        """See `LiveRegister`."""
        self._warm.check_available()
        items = self._warm.live.get(key, {})
        if self._region in items:
            items[self._region] = {name: told for name, told in items[self._region].items() if name != stream}

    def read_others(self, key: ConversationKey, *, now_ms: int) -> tuple[LiveStream, ...]:
        """See `LiveRegister`."""
        self._warm.check_available()
        told = [
            live
            for region, streams in self._warm.live.get(key, {}).items()
            if region != self._region
            for live, until_ms in streams.values()
            if until_ms > now_ms
        ]
        return tuple(sorted(told, key=lambda live: (live.stream, live.region)))
