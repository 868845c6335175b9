"""The tables of other regions in memory: the reference, and a fake for tests."""

from __future__ import annotations

from collections.abc import Mapping

from threadkeep.domain import ids, times
from threadkeep.domain.contests import Claim, Head
from threadkeep.domain.model import ConversationKey, StoredMessage
from threadkeep.ports import Gone
from threadkeep.stores.warm_items import in_page
from threadkeep.stores.warm_memory import WarmMemory


class OtherTablesMemory:
    """`threadkeep.ports.OtherTables` on the warm tiers of other regions.

    Attributes:
        tables: by region.
        asked: every region that was asked, and for which message or conversation.
    """

    def __init__(self, tables: Mapping[str, WarmMemory]) -> None:
        self.tables = tables
        self.asked: list[tuple[str, str]] = []

    def read_message(self, region: str, key: ConversationKey, message: str) -> StoredMessage | None:
        """See `OtherTables`."""
        self.asked.append((region, message))
        stored = self.tables[region].read_message(key, message)
        return None if stored is None else in_page(stored)

    def read_head(self, region: str, key: ConversationKey) -> Head | Gone | None:
        """See `OtherTables`."""
        self.asked.append((region, key.conversation))
        table = self.tables[region]
        found = table.read_head(key)
        return found if isinstance(found, Gone) else table.standing_head(key)

    def read_claim(self, region: str, key: ConversationKey) -> Claim | None:
        """See `OtherTables`."""
        table = self.tables[region]
        table.check_available()
        self.asked.append((region, key.conversation))
        return table.claims.get(key, {}).get(region)

    def read_active_at(self, region: str, key: ConversationKey) -> str | None:
        """See `OtherTables`."""
        self.asked.append((region, key.conversation))
        table = self.tables[region]
        newest = table.newest_id(key)
        began_at = None if newest is None else times.to_rfc3339(ids.time_ms(newest))
        return max(filter(None, (table.read_active_at(key), began_at)), default=None)
