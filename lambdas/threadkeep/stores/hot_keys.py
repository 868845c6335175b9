"""The keys of the hot tier, all built here, and read back."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, unquote
from zlib import crc32

from threadkeep.domain.bounds import DUE_SHARDS
from threadkeep.domain.model import ConversationKey

STATE_PATTERN: Final = "{*}:s:*"
"""What the names of all streams' states are like, and no other key's."""


class HotKeys:
    """The keys of one conversation.

    They share a hash tag and so a slot: one script may touch them all. Tenant and conversation are percent-encoded,
    so that no slash or brace in them moves the border between the two or the tag's end.
    """

    def __init__(self, key: ConversationKey) -> None:
        self._tag = f"{{{quote(key.tenant, safe='')}/{quote(key.conversation, safe='')}}}"

    @property
    def register(self) -> str:
        """Hash: the newest settled message known, what is claimed, and the owner."""
        return f"{self._tag}:c"

    @property
    def tail(self) -> str:
        """List: the newest settled messages, packed, in order of their ids."""
        return f"{self._tag}:t"

    @property
    def first(self) -> str:
        """String: the conversation's first message, packed, where it is a system message and a root."""
        return f"{self._tag}:first"

    @property
    def loading(self) -> str:
        """String: who is filling the tail from the table."""
        return f"{self._tag}:load"

    @property
    def gravestone(self) -> str:
        """String: the conversation was deleted."""
        return f"{self._tag}:gone"

    @property
    def live(self) -> str:
        """Hash: each live stream, and what a viewer is told of it."""
        return f"{self._tag}:live"

    @property
    def viewers(self) -> str:
        """Sorted set: each viewer's connection, and when its lease ends (ms)."""
        return f"{self._tag}:v"

    @property
    def lagging(self) -> str:
        """Sorted set: so of viewers that lag."""
        return f"{self._tag}:w"

    def state(self, stream: str) -> str:
        """Hash: who writes the stream, in which epoch, until when, and its end."""
        return f"{self._tag}:s:{stream}"

    def log(self, stream: str) -> str:
        """List: the ops of each accepted append of the epoch."""
        return f"{self._tag}:l:{stream}"


def stream_of_state(name: str) -> tuple[ConversationKey, str]:
    """The stream whose state goes by that name."""
    tag, stream = name.removeprefix("{").split("}:s:", 1)
    tenant, conversation = tag.split("/", 1)
    return ConversationKey(unquote(tenant), unquote(conversation)), stream


DEADLINES: Final = tuple(f"due:{{{shard}}}" for shard in range(DUE_SHARDS))
"""Sorted sets, each in a slot of its own: streams, and when each is to be looked at (ms)."""


def deadlines_of(key: ConversationKey) -> str:
    """The one of them that holds the conversation's streams."""
    return DEADLINES[crc32(key.conversation.encode()) % DUE_SHARDS]


def deadline_entry(key: ConversationKey, stream: str) -> str:
    """The stream in it. The one index that is not the tenant's own: its entries name the tenant."""
    return "/".join(quote(word, safe="") for word in (key.tenant, key.conversation, stream))


def stream_of_entry(entry: str) -> tuple[ConversationKey, str]:
    """The stream that an entry names."""
    tenant, conversation, stream = map(unquote, entry.split("/"))
    return ConversationKey(tenant, conversation), stream
