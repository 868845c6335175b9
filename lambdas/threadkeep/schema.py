"""The shape of the store, in one place: what the stacks declare is what the code reads.

The one global table has a partition per conversation. Its sort keys:

=================  =====================================================================
``gone``           tombstone; sorts right before ``head``, so one query reads both
``gone#<region>``  receipt line of an erasure
``head``           owner, title, metadata
``m#<id>``         a message, immutable
``pulse``          last activity; carries the keys of both sparse indexes
``s#<first id>``   cold manifest, immutable
=================  =====================================================================
"""

from __future__ import annotations

from typing import Final

PARTITION_KEY: Final = "pk"
SORT_KEY: Final = "sk"

OWNER_INDEX: Final = "by_owner"
"""Sparse, on ``pulse`` items: a user's conversations, newest activity first. Keys only, with ``OWNER_SORT``."""
OWNER_KEY: Final = "owner_key"
OWNER_SORT: Final = "active_at"

DUE_INDEX: Final = "by_due"
"""Sparse, on ``pulse`` items: what falls due for the archive on a day. Keys only."""
DUE_KEY: Final = "due_key"
DUE_SORT: Final = "due_at"

UPLOADS_PREFIX: Final = "!uploads/"
"""Begins the keys of the bucket's objects that expire. A tenant's name begins all others and is percent-encoded, so
that none can hold the ``!``: no tenant's bodies ever expire for its name."""
UPLOADS_DAYS: Final = 2
"""How long an upload waits to be named in a message."""

TTL_ATTRIBUTE: Final = "expires_at"
"""Epoch seconds. DynamoDB removes such items within days; every read checks for itself."""

SORT_GONE: Final = "gone"
SORT_HEAD: Final = "head"
SORT_PULSE: Final = "pulse"
SORT_MESSAGE: Final = "m#"
SORT_SEGMENT: Final = "s#"

ROUTES: Final[dict[str, tuple[str, ...]]] = {
    "connection": ("ping", "conversation.subscribe", "conversation.unsubscribe"),
    "send": (
        "conversation.create",
        "conversation.update",
        "message.create",
        "message.respond",
        "stream.cancel",
        "blob.create",
    ),
    "stream": ("stream.open", "stream.append", "stream.close"),
    "history": ("conversation.get", "conversation.list", "message.list", "stream.resume"),
}
"""Which bulkhead (a function and a role of its own, ``handlers.<bulkhead>.handler``) answers which action.

``connection`` also has the gateway's own ``$connect``, ``$disconnect`` and ``$default``.
"""
