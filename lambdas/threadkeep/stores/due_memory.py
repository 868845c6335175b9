"""What is due for the archive, in memory: the reference, and a fake for tests."""

from __future__ import annotations

from threadkeep.domain import times
from threadkeep.domain.model import ConversationKey
from threadkeep.ports import DueEntry
from threadkeep.stores import table_keys
from threadkeep.stores.warm_memory import WarmMemory


class DueMemory:
    """`threadkeep.ports.DueList` beside a warm tier in memory, as the index is the same table's."""

    def __init__(self, warm: WarmMemory) -> None:
        self._warm = warm

    def read(self, day: str, shard: int, *, until_ms: int, limit: int, after: DueEntry | None) -> tuple[DueEntry, ...]:
        """See `DueList`."""
        self._warm.check_available()
        until = times.to_rfc3339(until_ms)
        found = sorted(
            (due_at, key.tenant, key.conversation)
            for key, due_at in self._warm.due_at.items()
            if table_keys.due_key(key.conversation, due_at) == f"{day}#{shard}" and due_at <= until
        )
        if after is not None:
            found = [entry for entry in found if entry > (after.due_at, after.key.tenant, after.key.conversation)]
        return tuple(DueEntry(ConversationKey(tenant, name), due) for due, tenant, name in found[:limit])

    def refile(self, entry: DueEntry, *, due_ms: int | None) -> bool:
        """See `DueList`."""
        self._warm.check_available()
        if self._warm.due_at.get(entry.key) != entry.due_at:
            return False
        if due_ms is None:
            del self._warm.due_at[entry.key]
        else:
            self._warm.due_at[entry.key] = times.to_rfc3339(due_ms)
        return True
