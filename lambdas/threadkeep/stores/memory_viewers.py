"""The hot tier's viewers in memory."""

from __future__ import annotations

from collections.abc import Sequence

from threadkeep.domain.bounds import VIEWERS_MAX
from threadkeep.domain.model import ConversationKey
from threadkeep.domain.streams import Full
from threadkeep.domain.tail import Erased
from threadkeep.stores.memory_conversation import MemoryTier


class ViewersInMemory(MemoryTier):
    """The viewers of `HotStore`."""

    def subscribe(self, key: ConversationKey, connection: str, *, lease_ms: int) -> Full | Erased | None:
        """See `HotStore.subscribe`."""
        conversation = self._conversation(key)
        if conversation.is_buried:
            return Erased()
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

    def forget_viewers(self, key: ConversationKey) -> None:
        """See `HotStore.forget_viewers`."""
        conversation = self._conversation(key)
        conversation.leases.clear()
        conversation.lagging.clear()

    def mark_lagging(self, key: ConversationKey, connections: Sequence[str]) -> None:
        """See `HotStore.mark_lagging`."""
        conversation = self._conversation(key)
        for connection in connections:
            if connection in conversation.leases:
                conversation.lagging[connection] = conversation.leases.pop(connection)

    def viewers(self, key: ConversationKey) -> tuple[str, ...]:
        """See `HotStore.viewers`."""
        return tuple(self._conversation(key).leases)
