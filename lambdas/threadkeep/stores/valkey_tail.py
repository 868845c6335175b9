"""The hot tier's tail in Valkey, and its gravestones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import UNSET, UnsetType

from threadkeep.domain.bounds import GRAVESTONE_MS, LEAF_MS, TAIL_BYTES_MAX, TAIL_LOAD_MS, TAIL_MESSAGES_MAX, TAIL_MS
from threadkeep.domain.model import ConversationKey, StoredMessage
from threadkeep.domain.tail import Erased, Tail
from threadkeep.stores.hot_keys import HotKeys
from threadkeep.stores.lua import script
from threadkeep.stores.tail_elements import first_kind, from_binary, to_element
from threadkeep.stores.tail_path import ROOM_BYTES, tail_of
from threadkeep.stores.valkey_replies import read_names
from threadkeep.stores.valkey_tier import ValkeyTier

TAIL_BOUNDS: Final = (TAIL_MESSAGES_MAX, TAIL_BYTES_MAX)
"""What scripts keep the tail within."""
_BINARY_ID_BYTES: Final = 16


class TailInValkey(ValkeyTier):
    """The tail of `HotStore`: one list a conversation, read and pushed to by scripts."""

    def read_tail(
        self,
        key: ConversationKey,
        *,
        leaf: str | None = None,
        limit: int,
        reader: str | None = None,
        wants_first: bool = False,
    ) -> Tail | Erased:
        """See `HotStore.read_tail`."""
        keys = HotKeys(key)
        reply = self._client.run(
            script("read_tail"),
            [keys.gravestone, keys.register, keys.live, keys.tail, keys.loading, keys.first],
            [leaf or "", limit, reader or "", TAIL_LOAD_MS, TAIL_MESSAGES_MAX, ROOM_BYTES, int(wants_first)],
        )
        match reply:
            case [b"tail", is_known, is_loading, owner, end, path, first]:
                return tail_of(
                    key,
                    owner=owner.decode() or None,
                    leaf=(end.decode() or None) if is_known else UNSET,
                    path=path,
                    first=first,
                    is_loading=bool(is_loading),
                )
        return Erased()

    def load(
        self,
        key: ConversationKey,
        stored: Sequence[StoredMessage],
        *,
        owner: str,
        newest: str | UnsetType | None = UNSET,
        first: StoredMessage | UnsetType = UNSET,
        reader: str | None = None,
        lives_ms: int | None = None,
    ) -> None:
        """See `HotStore.load`."""
        keys = HotKeys(key)
        first_element = b"" if first is UNSET else to_element(first)
        newest_first = sorted(stored, key=lambda each: each.message.id, reverse=True)
        self._client.run(
            script("load"),
            [keys.gravestone, keys.register, keys.tail, keys.loading, keys.first],
            [
                reader or "",
                owner,
                int(newest is not UNSET),
                newest or "",
                self._limits.claim_void_ms,
                LEAF_MS if lives_ms is None else min(LEAF_MS, lives_ms),
                *TAIL_BOUNDS,
                TAIL_MS if lives_ms is None else min(TAIL_MS, lives_ms),
                "" if first is UNSET else first_kind(first, first_element),
                first_element,
                *(to_element(each) for each in reversed(newest_first[:TAIL_MESSAGES_MAX])),
            ],
        )

    def note_several(self, key: ConversationKey) -> None:
        """See `HotStore.note_several`."""
        keys = HotKeys(key)
        self._client.run(script("note_several"), [keys.gravestone, keys.register, keys.first], [LEAF_MS])

    def forget_tail(self, key: ConversationKey) -> None:
        """See `HotStore.forget_tail`."""
        keys = HotKeys(key)
        self._client.run(script("forget_tail"), [keys.tail, keys.first], [])

    def bury(self, key: ConversationKey) -> tuple[int, tuple[str, ...]]:
        """See `HotStore.bury`.

        Two commands, since a script declares its keys: from the first on nothing new comes, so the second, which may
        come late or not at all, misses none of those that have no end of their own.
        """
        keys = HotKeys(key)
        named = self._client.run(
            script("name_buried"), [keys.gravestone, keys.register, keys.live, keys.tail], [GRAVESTONE_MS]
        )
        streams = {from_binary(name) if len(name) == _BINARY_ID_BYTES else name.decode() for name in named}
        count, viewers = self._client.run(
            script("bury"),
            [
                keys.viewers,
                keys.lagging,
                keys.register,
                keys.live,
                keys.tail,
                keys.first,
                keys.loading,
                *(name for stream in sorted(streams) for name in (keys.state(stream), keys.log(stream))),
            ],
        )
        return count, read_names(viewers)
