"""The keys of the table: the one place that builds them, and always with the tenant in front.

Tenant and user are whatever an identity provider calls them, so they are percent-encoded: else tenant ``a`` with
``b#c`` and tenant ``a#b`` with ``c`` would share a partition.
"""

from __future__ import annotations

import zlib
from typing import Final
from urllib.parse import quote

from threadkeep.domain import times
from threadkeep.domain.bounds import ARCHIVE_IDLE_DAYS
from threadkeep.domain.model import ConversationKey
from threadkeep.schema import SORT_MESSAGE

DUE_SHARDS: Final = 16
"""Partitions that share a day of the archive's index. Everything active on one day falls due on one day, and an index
partition takes 1,000 writes/s (DynamoDB developer guide, "Partitions", read 2026-11-29): so many shards carry more
than the 10,000 requests/s that a gateway lets in could cause."""

_OWNER_SHARD: Final = 0
_DAY_MS: Final = 24 * 60 * 60 * 1_000


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


def message(identifier: str) -> str:
    """A message's sort key."""
    return SORT_MESSAGE + identifier


def message_of(sort_key: str) -> str:
    """The id in a message's sort key."""
    return sort_key.removeprefix(SORT_MESSAGE)


def owner(tenant: str, user: str) -> str:
    """Where the conversations of a user are listed. One shard does for people."""
    return f"{encode_name(tenant)}#{encode_name(user)}#{_OWNER_SHARD}"


def due(conversation: str, active_ms: int) -> tuple[str, str]:
    """Day and shard under which a conversation falls due for the archive, and the time at which it does."""
    due_at = times.to_rfc3339(active_ms + ARCHIVE_IDLE_DAYS * _DAY_MS)
    return due_key(conversation, due_at), due_at


def due_key(conversation: str, due_at: str) -> str:
    """The partition of the archive's index that holds a conversation due at that time: its day, and a shard."""
    shard = zlib.crc32(conversation.encode()) % DUE_SHARDS
    return f"{due_at[:10]}#{shard}"
