"""Tombstones and receipts in memory: the reference, and a fake for tests."""

from __future__ import annotations

from threadkeep.domain.erasure import ReceiptLine, Tombstone
from threadkeep.domain.model import ConversationKey
from threadkeep.stores.warm_memory import WarmMemory


class ErasuresMemory:
    """`threadkeep.ports.ErasureStore` beside a warm tier in memory, as tombstones lie in the same table."""

    def __init__(self, warm: WarmMemory) -> None:
        self._warm = warm
        self.lines: dict[ConversationKey, dict[tuple[str, str], ReceiptLine]] = {}

    def put_tombstone(self, key: ConversationKey, tombstone: Tombstone) -> Tombstone | None:
        """See `ErasureStore`."""
        self._warm.check_available()
        existing = self._warm.gone.get(key)
        self._warm.gone.setdefault(key, tombstone)
        return existing

    def read(self, key: ConversationKey) -> tuple[Tombstone | None, tuple[ReceiptLine, ...]]:
        """See `ErasureStore`."""
        self._warm.check_available()
        lines = self.lines.get(key, {})
        return self._warm.gone.get(key), tuple(line for _, line in sorted(lines.items()))

    def put_line(self, key: ConversationKey, line: ReceiptLine) -> None:
        """See `ErasureStore`."""
        self._warm.check_available()
        self.lines.setdefault(key, {})[line.region, line.store] = line

    def clear(self, key: ConversationKey) -> int:
        """See `ErasureStore`."""
        self._warm.check_available()
        return self._warm.clear(key)
