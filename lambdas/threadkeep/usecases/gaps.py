"""Gaps: a message that is spoken of, and that this region's table has not been given yet by the region that wrote it.

Replication takes a moment and may come in any order, so a child can be here before its parent. It is waited for
briefly, then the other regions' tables are asked. What is found so was written and never changes: it may be shown,
kept in the hot tier and written under. That something is missing is never kept. Where there is one region nothing of
this happens: there a message that is not in the table is nowhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from threadkeep import telemetry
from threadkeep.domain.bounds import GAP_MESSAGES_MAX, GAP_MS_MAX, REPLICATION_POLL_MS, REPLICATION_WAIT_MS
from threadkeep.domain.errors import WarmUnavailable
from threadkeep.domain.model import ConversationKey, StoredMessage
from threadkeep.ports import Clock, WarmStore
from threadkeep.usecases.services import OtherRegions, Services

_LOOKS: Final = REPLICATION_WAIT_MS // REPLICATION_POLL_MS


class Gaps:
    """What one request looks for in other regions; not to be kept beyond it, since it is bounded in all.

    Args:
        others: the other regions; None where there are none.
        warm: this region's table.
        clock, sleep: the time.
    """

    def __init__(
        self, *, others: OtherRegions | None, warm: WarmStore, clock: Clock, sleep: Callable[[float], None]
    ) -> None:
        self._others = others
        self._warm = warm
        self._clock = clock
        self._sleep = sleep
        self._until_ms: int | None = None
        self._left = GAP_MESSAGES_MAX
        self._unreachable: set[str] = set()

    @classmethod
    def of(cls, services: Services) -> Gaps:
        """Of one request to the services."""
        return cls(others=services.others, warm=services.warm, clock=services.clock, sleep=services.sleep)

    @property
    def are_possible(self) -> bool:
        """Whether there are regions whose messages may be on their way."""
        return self._others is not None

    def find(self, key: ConversationKey, message: str) -> StoredMessage | None:
        """A message that the table was just seen to lack, in page form; None where no region has given it so far."""
        if self._others is None or self._left == 0:
            return None
        self._left -= 1
        if self._until_ms is None:
            # Once a request: what another message waits for has been waited for.
            self._until_ms = self._clock.now_ms() + GAP_MS_MAX
            if (stored := self._await(key, message)) is not None:
                telemetry.count("GapsClosed")
                return stored
        stored = self._ask(self._others, key, message, self._until_ms)
        telemetry.count("GapsOpen" if stored is None else "GapsClosed")
        return stored

    def _await(self, key: ConversationKey, message: str) -> StoredMessage | None:
        for _ in range(_LOOKS):
            self._sleep(REPLICATION_POLL_MS / 1_000)
            if (stored := read_in_page(self._warm, key, message)) is not None:
                return stored
        return None

    def _ask(self, others: OtherRegions, key: ConversationKey, message: str, until_ms: int) -> StoredMessage | None:
        for region in others.names:
            if region in self._unreachable or self._clock.now_ms() >= until_ms:
                continue
            try:
                stored = others.tables.read_message(region, key, message)
            except WarmUnavailable:
                self._unreachable.add(region)
                continue
            if stored is not None:
                return stored
        return None


def read_in_page(warm: WarmStore, key: ConversationKey, message: str) -> StoredMessage | None:
    """One message of the table in page form: without parts that no frame could carry."""
    page = warm.read_messages(key, before=message + "~", limit=1)  # the smallest text that sorts behind an id
    return next((stored for stored in page.messages if stored.message.id == message), None)
