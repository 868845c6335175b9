"""Tombstones and receipts in memory: the reference, and a fake for tests."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from threadkeep.domain import times
from threadkeep.domain.erasure import ReceiptLine, Store, Tombstone
from threadkeep.domain.model import ConversationKey
from threadkeep.stores.warm_memory import WarmMemory


class ErasuresMemory:
    """`threadkeep.ports.ErasureStore` beside a warm tier in memory, as tombstones lie in the same table."""

    def __init__(self, warm: WarmMemory) -> None:
        self._warm = warm
        self._lock = threading.Lock()
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

    def gone(self, keys: Sequence[ConversationKey]) -> frozenset[ConversationKey]:
        """See `ErasureStore`."""
        self._warm.check_available()
        return frozenset(key for key in keys if key in self._warm.gone)

    def note(
        self, key: ConversationKey, region: str, store: Store, *, count: int, is_pass: bool, is_done: bool, now_ms: int
    ) -> None:
        """See `ErasureStore`."""
        self._warm.check_available()
        with self._lock:
            lines = self.lines.setdefault(key, {})
            last = lines.get((region, store))
            lines[region, store] = ReceiptLine(
                region=region,
                store=store,
                found=(last.found if last else 0) + count,
                removed=(last.removed if last else 0) + count,
                passes=(last.passes if last else 0) + is_pass,
                state="done" if is_done or (last and last.state == "done") else "running",
                updated_at=times.to_rfc3339(now_ms),
            )

    def clear(self, key: ConversationKey) -> int:
        """See `ErasureStore`. All of them at once, since nothing here breaks off."""
        self._warm.check_available()
        return self._warm.clear(key)
