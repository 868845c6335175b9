"""What a conversation has to show, whatever tier its messages lie in: plain dictionaries."""

from __future__ import annotations

from typing import Literal

import msgspec

from tests.support.house import Frame, text_part
from threadkeep.domain.bounds import PULSE_EVERY_MS


class Said(msgspec.Struct, frozen=True):
    """A message, or as much of one as has been written."""

    parent: str | None
    role: str
    text: str

    @property
    def parts(self) -> list[Frame]:
        """As they are shown; an answer without content has none."""
        return [text_part(self.text)] if self.text else []


class Talk(msgspec.Struct):
    """A conversation.

    Attributes:
        retention_ms: how long it stays after its last activity; None: for ever.
        active_ms: when something was last written.
        messages: what has settled, by id; of live answers only what was acknowledged.
        is_gone: deleted, or seen to have expired.
    """

    conversation: str
    retention_ms: int | None
    active_ms: int
    messages: dict[str, Said] = {}
    live: dict[str, Said] = {}
    is_gone: bool = False

    @property
    def newest_first(self) -> list[str]:
        """All branches."""
        return sorted(self.messages, reverse=True)

    def path(self, leaf: str | None) -> list[str]:
        """From a message to its root."""
        found: list[str] = []
        while leaf is not None:
            found.append(leaf)
            leaf = self.messages[leaf].parent
        return found

    def context(self, leaf: str, limit: int) -> tuple[list[str], str | None]:
        """What a context of so many messages holds, oldest first, and where it goes on."""
        path = self.path(leaf)
        is_ahead = len(path) > limit and self.messages[path[-1]].role == "system"
        count = max(1, limit - is_ahead)
        following = path[count] if count < len(path) else None
        return [*(path[-1:] if is_ahead else []), *path[:count][::-1]], following

    def standing(self, now_ms: int) -> Literal["there", "gone", "either"]:
        """Whether it is to be seen. Activity is noted to the minute, so about its end either is right."""
        if self.is_gone:
            return "gone"
        if self.retention_ms is None or now_ms < self.active_ms - PULSE_EVERY_MS + self.retention_ms:
            return "there"
        return "gone" if now_ms >= self.active_ms + self.retention_ms else "either"
