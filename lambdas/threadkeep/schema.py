"""The shape of the store, in one place: what the stacks declare is what the code reads.

The one global table has a partition per conversation. Its sort keys:

=================  =====================================================================
``claim#<region>`` who claims the id in that region; only where there are several
``gone``           tombstone; sorts right before ``head``, so one query reads both
``gone#<line>``     receipt line of an erasure, ``<region>#<store>``
``head``           owner, title, metadata
``live#<region>``  what streams in that region; only where there are several
``m!roots``        that several messages are roots and one of them is a system message; sorts right before the messages
``m#<id>``         a message, immutable
``pulse``          last activity; carries the keys of the owner's list
``pulse#due``      when the archive is to look at it; carries the keys of what is due
``s#<first id>``   cold manifest, immutable
=================  =====================================================================

Exports have partitions of their own, ``<tenant>#!export#<id>``, of the one item ``export``; the places of those under
way are the items ``place#<number>`` of ``<tenant>#!exporting#<user>``.

The bucket's keys begin with what an object is, since that is all that a bucket's rules can tell objects by; the tenant
and the conversation follow.
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
"""Sparse, on ``pulse#due`` items: what falls due for the archive on a day. Keys only."""
DUE_KEY: Final = "due_key"
DUE_SORT: Final = "due_at"

BODIES_PREFIX: Final = "bodies/"
BLOBS_PREFIX: Final = "blobs/"
SEGMENTS_PREFIX: Final = "segments/"
UPLOADS_PREFIX: Final = "uploads/"
EXPORTS_PREFIX: Final = "exports/"
EXPORTS_DAYS: Final = 1
UPLOADS_DAYS: Final = 2
"""How long an upload waits to be named in a message."""

TTL_ATTRIBUTE: Final = "expires_at"
"""Epoch seconds. DynamoDB removes such items within days; every read checks for itself."""

REGION_ATTRIBUTE: Final = "g"
"""Which region wrote a message or a head, where there are several: the others tell it to those who watch there."""

SORT_CLAIM: Final = "claim#"
SORT_GONE: Final = "gone"
SORT_HEAD: Final = "head"
SORT_LIVE: Final = "live#"
SORT_PULSE: Final = "pulse"
SORT_DUE: Final = "pulse#due"
"""Right behind the pulse, so that one query reads both. An item of its own: of two writes of one item, in two regions,
the later stands as a whole, and the archive's would take an activity along that it has not heard of."""
SORT_MESSAGE: Final = "m#"
SORT_ROOTS: Final = "m!roots"
"""Right before every message, so that the query for the first one finds it in its place; all others begin behind it."""
SORT_SEGMENT: Final = "s#"
SORT_EXPORT: Final = "export"
EXPORTS_MARK: Final = "!export"
"""Behind the tenant in the key of every partition that is an export's, and of no other."""

ROUTES: Final[dict[str, tuple[str, ...]]] = {
    "connection": ("ping", "conversation.subscribe", "conversation.unsubscribe"),
    "send": (
        "conversation.create",
        "conversation.update",
        "message.create",
        "message.respond",
        "stream.cancel",
        "blob.create",
        "conversation.delete",
        "export.create",
    ),
    "stream": ("stream.open", "stream.append", "stream.close"),
    "history": (
        "conversation.get",
        "conversation.list",
        "message.list",
        "context.read",
        "stream.resume",
        "blob.get",
        "erasure.get",
        "export.get",
    ),
}
"""Which bulkhead (a function and a role of its own, ``handlers.<bulkhead>.handler``) answers which action.

``connection`` also has the gateway's own ``$connect``, ``$disconnect`` and ``$default``.
"""
