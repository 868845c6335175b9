"""The keys of the hot tier, all built here."""

from __future__ import annotations

from urllib.parse import quote

from threadkeep.domain.model import ConversationKey


class HotKeys:
    """The keys of one conversation.

    They share a hash tag and so a slot: one script may touch them all. Tenant and conversation are percent-encoded,
    so that no slash or brace in them moves the border between the two or the tag's end.
    """

    def __init__(self, key: ConversationKey) -> None:
        self._tag = f"{{{quote(key.tenant, safe='')}/{quote(key.conversation, safe='')}}}"

    @property
    def live(self) -> str:
        """Hash: each live stream, and what a viewer is told of it."""
        return f"{self._tag}:live"

    @property
    def viewers(self) -> str:
        """Sorted set: each viewer's connection, and when its lease ends (ms)."""
        return f"{self._tag}:v"

    def state(self, stream: str) -> str:
        """Hash: who writes the stream, in which epoch, and its end."""
        return f"{self._tag}:s:{stream}"

    def log(self, stream: str) -> str:
        """List: the ops of each accepted append of the epoch."""
        return f"{self._tag}:l:{stream}"
