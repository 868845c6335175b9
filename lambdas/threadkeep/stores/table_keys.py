"""The keys of the table: the one place that builds them, and always with the tenant in front.

Tenant and user are whatever an identity provider calls them, so they are percent-encoded: else tenant ``a`` with
``b#c`` and tenant ``a#b`` with ``c`` would share a partition.
"""

from __future__ import annotations

import zlib
from typing import Final
from urllib.parse import quote, unquote

from threadkeep.domain import times
from threadkeep.domain.bounds import ARCHIVE_SHARDS
from threadkeep.domain.model import ConversationKey
from threadkeep.schema import EXPORTS_MARK, SORT_GONE, SORT_MESSAGE

OWNER_SHARDS: Final = 8
"""Partitions that the list of a service account's conversations is dealt out to. All that it touches is written to its
list, and an index partition takes 1,000 writes/s (see above); for people one does."""


def encode_name(name: str) -> str:
    """A tenant or user as part of a key: letters, digits, ``_``, ``-``, ``~`` as they are, all else as ``%XX``.

    Periods too, since a path may not hold ``.`` or ``..`` as a segment where the same name begins an object key.
    """
    return quote(name, safe="").replace(".", "%2E")


def partition(key: ConversationKey) -> str:
    """A conversation's partition."""
    return f"{encode_name(key.tenant)}#{key.conversation}"


def conversation_of(partition_key: str) -> str:
    """The conversation that a partition holds."""
    return partition_key.rpartition("#")[2]


def key_of(partition_key: str) -> ConversationKey:
    """The conversation that a partition holds, with its tenant."""
    tenant, _, conversation = partition_key.rpartition("#")
    return ConversationKey(unquote(tenant), conversation)


def message(identifier: str) -> str:
    """A message's sort key."""
    return SORT_MESSAGE + identifier


def message_of(sort_key: str) -> str:
    """The id in a message's sort key."""
    return sort_key.removeprefix(SORT_MESSAGE)


def receipt_line(region: str, store: str) -> str:
    """Sort key of a line of an erasure's receipt."""
    return f"{SORT_GONE}#{region}#{store}"


def receipt_line_of(sort_key: str) -> tuple[str, str]:
    """Region and store of a line."""
    _, region, store = sort_key.split("#")
    return region, store


def owner(tenant: str, user: str, shard: int = 0) -> str:
    """Where the conversations of a user are listed, or a shard of a service account's."""
    return f"{encode_name(tenant)}#{encode_name(user)}#{shard}"


def owner_shard(conversation: str, shards: int) -> int:
    """The shard of its owner's list that a conversation is in."""
    return zlib.crc32(conversation.encode()) % shards


def export(tenant: str, identifier: str) -> str:
    """The partition of an export. No name holds the ``!``, and no conversation's id does."""
    return f"{encode_name(tenant)}#{EXPORTS_MARK}#{identifier}"


def exporting(tenant: str, user: str) -> str:
    """The partition of the places that a user's exports have while they are under way."""
    return f"{encode_name(tenant)}#{EXPORTS_MARK}ing#{encode_name(user)}"


def due(conversation: str, *, due_ms: int) -> tuple[str, str]:
    """Day and shard under which a conversation falls due for the archive, and the time at which it does."""
    due_at = times.to_rfc3339(due_ms)
    return due_key(conversation, due_at), due_at


def due_key(conversation: str, due_at: str) -> str:
    """The partition of the archive's index that holds a conversation due at that time: its day, and a shard."""
    shard = zlib.crc32(conversation.encode()) % ARCHIVE_SHARDS
    return f"{due_at[:10]}#{shard}"
