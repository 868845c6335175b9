"""The hot tier's viewers in Valkey."""

from __future__ import annotations

from collections.abc import Sequence

from threadkeep.domain.bounds import VIEWERS_MAX
from threadkeep.domain.model import ConversationKey
from threadkeep.domain.streams import Full
from threadkeep.domain.tail import Erased
from threadkeep.stores.hot_keys import HotKeys
from threadkeep.stores.lua import script
from threadkeep.stores.valkey_replies import read_names, read_verdict
from threadkeep.stores.valkey_tier import ValkeyTier


class ViewersInValkey(ValkeyTier):
    """The viewers of `HotStore`."""

    def subscribe(self, key: ConversationKey, connection: str, *, lease_ms: int) -> Full | Erased | None:
        """See `HotStore.subscribe`."""
        keys = HotKeys(key)
        reply = self._client.run(
            script("subscribe"),
            [keys.viewers, keys.lagging, keys.gravestone],
            [connection, lease_ms, VIEWERS_MAX],
        )
        refusal: Full | Erased | None = None if reply == [b"subscribed"] else read_verdict(reply)
        return refusal

    def unsubscribe(self, key: ConversationKey, connections: Sequence[str]) -> None:
        """See `HotStore.unsubscribe`."""
        keys = HotKeys(key)
        if connections:
            self._client.run(script("unsubscribe"), [keys.viewers, keys.lagging], connections)

    def forget_viewers(self, key: ConversationKey) -> None:
        """See `HotStore.forget_viewers`."""
        keys = HotKeys(key)
        self._client.run(script("forget_viewers"), [keys.viewers, keys.lagging], [])

    def mark_lagging(self, key: ConversationKey, connections: Sequence[str]) -> None:
        """See `HotStore.mark_lagging`."""
        keys = HotKeys(key)
        if connections:
            self._client.run(script("mark_lagging"), [keys.viewers, keys.lagging], connections)

    def viewers(self, key: ConversationKey) -> tuple[str, ...]:
        """See `HotStore.viewers`."""
        return read_names(self._client.run(script("viewers"), [HotKeys(key).viewers]))
