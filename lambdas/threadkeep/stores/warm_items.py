"""Items of the table and the values they stand for. Each carries its format, ``v``.

A name counts for an item's size as its value does, and a page of short messages would be a third names: those of
messages have one letter.

=====  ===========================================================================================
``r``  role
``p``  parent, the 16 bytes of its id; absent for a root
``s``  status, unless it is ``complete``
``t``  tokens as they were told; else
``q``  a quarter of the bytes, the estimate
``n``  what the parts take as JSON, in bytes; where no frame holds them
``m``  model
``e``  epoch, unless it is 0
``b``  body as pages of messages show it
``w``  whole body, where that lacks the parts; or else
``o``  the object that holds it
``g``  region that wrote it, where there are several; in heads too
=====  ===========================================================================================

``calls`` and ``answers`` stand beside them in messages of tools.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Final

from msgspec import UNSET

from threadkeep.domain import ids, times
from threadkeep.domain.bounds import FRAME_BYTES_MAX
from threadkeep.domain.errors import Unreadable
from threadkeep.domain.json_values import encode, read_object, read_text
from threadkeep.domain.model import Conversation, ConversationKey, Message, StoredMessage, Tokens
from threadkeep.domain.ops import Parts, kind
from threadkeep.schema import (
    DUE_KEY,
    DUE_SORT,
    OWNER_KEY,
    OWNER_SORT,
    PARTITION_KEY,
    SORT_DUE,
    SORT_HEAD,
    SORT_KEY,
    SORT_PULSE,
)
from threadkeep.stores import table_keys
from threadkeep.stores.packing import unpack

Item = Mapping[str, Any]
"""An item as DynamoDB's own API has it: ``{"name": {"S": "…"}}``."""

CALL_IDS_BYTES_MAX: Final = 16 * 1024
"""Call ids beside a body. With more of them the item holds NULL, and the body has to be asked."""
BODY: Final = "b"
WHOLE: Final = "w"
POINTER: Final = "o"
PAGE_ATTRIBUTES: Final = ("v", "r", "p", "s", "t", "q", "n", "m", "e", BODY)
"""What of a message's item is read for a page of many."""
_FORMAT: Final = 1
_USUAL_STATUS: Final = "complete"


def text(value: str) -> dict[str, str]:
    """A string attribute."""
    return {"S": value}


def number(value: int) -> dict[str, str]:
    """A number attribute."""
    return {"N": str(value)}


def primary_key(key: ConversationKey, sort_key: str) -> dict[str, Any]:
    """An item's key."""
    return {PARTITION_KEY: text(table_keys.partition(key)), SORT_KEY: text(sort_key)}


# --- head and pulse -------------------------------------------------------------------------------------------


def head_item(tenant: str, conversation: Conversation) -> dict[str, Any]:
    """Owner, title, metadata."""
    item = primary_key(ConversationKey(tenant, conversation.id), SORT_HEAD) | {
        "v": number(_FORMAT),
        "owner": text(conversation.owner),
        "metadata": text(encode(conversation.metadata).decode()),
        "created_at": text(conversation.created_at),
    }
    if conversation.title is not None:
        item["title"] = text(conversation.title)
    if conversation.retention_days is not None:
        item["retention_days"] = number(conversation.retention_days)
    return item


def conversation_from(item: Item, active_at: str | None = None) -> Conversation:
    """The conversation of a ``head``; last active when it was created, unless told better."""
    identifier = table_keys.conversation_of(item[PARTITION_KEY]["S"])
    _check_format(item, identifier, SORT_HEAD)
    return Conversation(
        id=identifier,
        owner=item["owner"]["S"],
        metadata=read_object(item["metadata"]["S"].encode()),
        created_at=item["created_at"]["S"],
        active_at=active_at or item["created_at"]["S"],
        title=item["title"]["S"] if "title" in item else None,
        retention_days=int(item["retention_days"]["N"]) if "retention_days" in item else None,
    )


def pulse_item(tenant: str, conversation: Conversation, *, owner_shards: int = 1) -> dict[str, Any]:
    """The last activity, under the keys of the owner's list."""
    key = ConversationKey(tenant, conversation.id)
    shard = table_keys.owner_shard(conversation.id, owner_shards)
    owner_key = text(table_keys.owner(tenant, conversation.owner, shard))
    item = primary_key(key, SORT_PULSE) | {"v": number(_FORMAT), OWNER_KEY: owner_key}
    return item | {OWNER_SORT: text(conversation.active_at)}


def due_item(key: ConversationKey, due_ms: int) -> dict[str, Any]:
    """When the archive is to look at a conversation, under the keys of its index."""
    return primary_key(key, SORT_DUE) | {"v": number(_FORMAT)} | due(key, due_ms)


def due(key: ConversationKey, due_ms: int) -> dict[str, Any]:
    """The attributes by which the archive finds it."""
    due_key, due_at = table_keys.due(key.conversation, due_ms=due_ms)
    return {DUE_KEY: text(due_key), DUE_SORT: text(due_at)}


# --- messages -------------------------------------------------------------------------------------------------


def in_page(stored: StoredMessage) -> StoredMessage:
    """The message as a page of many shows it: without parts that could fit no frame, so that pages stay small."""
    message = stored.message
    if message.parts is UNSET or len(encode(message.parts)) <= FRAME_BYTES_MAX:
        return stored
    return StoredMessage(message.without_parts(), stored.epoch)


def message_item(tenant: str, stored: StoredMessage) -> dict[str, Any]:
    """A message's facts, without its body.

    Raises:
        ValueError: the message comes without its parts.
    """
    message = stored.message
    if message.parts is UNSET:
        raise ValueError(f"message {message.id} must be stored with its parts")
    item = primary_key(ConversationKey(tenant, message.conversation), table_keys.message(message.id)) | {
        "v": number(_FORMAT),
        "r": text(message.role),
        "q" if message.tokens.estimated else "t": number(message.tokens.count),
    }
    if message.parent is not None:
        item["p"] = {"B": uuid.UUID(message.parent).bytes}
    if message.status != _USUAL_STATUS:
        item["s"] = text(message.status)
    if stored.epoch:
        item["e"] = number(stored.epoch)
    if message.model is not UNSET:
        item["m"] = text(message.model)
    if (shown := in_page(stored).message).bytes is not UNSET:
        item["n"] = number(shown.bytes)
    return item | _call_ids(message.parts)


def _call_ids(parts: Parts) -> dict[str, Any]:
    """Calls made and calls answered, so that a reader can keep pairs together without unpacking bodies."""
    found: dict[str, Any] = {}
    for name, part_kind in (("calls", "tool_call"), ("answers", "tool_result")):
        listed = [read_text(part.get("call_id")) or "" for part in parts if kind(part) == part_kind]
        if listed:
            small = sum(len(call_id.encode()) for call_id in listed) <= CALL_IDS_BYTES_MAX // 2
            found[name] = {"L": [text(call_id) for call_id in listed]} if small else {"NULL": True}
    return found


def stored_from(key: ConversationKey, item: Item, packed: bytes) -> StoredMessage:
    """The message of an item and one of its bodies, the whole one or the one for pages.

    Raises:
        Unreadable: the item or the body cannot be read.
    """
    identifier = table_keys.message_of(item[SORT_KEY]["S"])
    _check_format(item, key.conversation, identifier)
    body = unpack(key.conversation, identifier, packed)
    message = Message(
        id=identifier,
        conversation=key.conversation,
        parent=str(uuid.UUID(bytes=item["p"]["B"])) if "p" in item else None,
        role=item["r"]["S"],
        status=item["s"]["S"] if "s" in item else _USUAL_STATUS,
        created_at=times.to_rfc3339(ids.time_ms(identifier)),
        metadata=body.metadata,
        tokens=Tokens(int(item["t"]["N"])) if "t" in item else Tokens(int(item["q"]["N"]), estimated=True),
        parts=body.parts,
        bytes=int(item["n"]["N"]) if body.parts is UNSET else UNSET,
        usage=body.usage,
        error=body.error,
        model=item["m"]["S"] if "m" in item else UNSET,
        reply=body.reply,
    )
    return StoredMessage(message, int(item["e"]["N"]) if "e" in item else 0)


def _check_format(item: Item, conversation: str, name: str) -> None:
    if item["v"]["N"] != str(_FORMAT):
        raise Unreadable(conversation, name, f"its item is of format {item['v']['N']}, not {_FORMAT}")
