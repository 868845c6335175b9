"""Items of the table and the values they stand for. Each carries its format, ``v``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import UNSET

from threadkeep.domain import ids, times
from threadkeep.domain.bounds import FRAME_BYTES_MAX
from threadkeep.domain.json_values import encode, read_object, read_text
from threadkeep.domain.model import Conversation, ConversationKey, Message, StoredMessage, Tokens
from threadkeep.domain.ops import Parts, kind
from threadkeep.schema import (
    DUE_KEY,
    DUE_SORT,
    OWNER_KEY,
    OWNER_SORT,
    PARTITION_KEY,
    SORT_HEAD,
    SORT_KEY,
    SORT_PULSE,
)
from threadkeep.stores import table_keys
from threadkeep.stores.packing import Unreadable, unpack

Item = Mapping[str, Any]
"""An item as DynamoDB's own API has it: ``{"name": {"S": "…"}}``."""

CALL_IDS_BYTES_MAX: Final = 16 * 1024
"""Call ids beside a body. With more of them the item holds NULL, and the body has to be asked."""
PAGE_ATTRIBUTES: Final = ("v", "role", "parent", "status", "model", "tokens", "estimated", "bytes", "epoch", "body")
"""What of a message's item is read for a page of many."""
_FORMAT: Final = 1


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


def pulse_item(tenant: str, conversation: Conversation) -> dict[str, Any]:
    """The last activity, under the keys of both indexes."""
    key = ConversationKey(tenant, conversation.id)
    owner_key = text(table_keys.owner(tenant, conversation.owner))
    active_ms = times.from_rfc3339(conversation.active_at)
    return primary_key(key, SORT_PULSE) | {"v": number(_FORMAT), OWNER_KEY: owner_key} | activity(key, active_ms)


def activity(key: ConversationKey, active_ms: int) -> dict[str, Any]:
    """The attributes of a pulse that move with the activity."""
    due_key, due_at = table_keys.due(key.conversation, active_ms)
    return {OWNER_SORT: text(times.to_rfc3339(active_ms)), DUE_KEY: text(due_key), DUE_SORT: text(due_at)}


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
        "role": text(message.role),
        "status": text(message.status),
        "tokens": number(message.tokens.count),
        "bytes": number(len(encode(message.parts))),
        "epoch": number(stored.epoch),
    }
    if message.parent is not None:
        item["parent"] = text(message.parent)
    if message.model is not UNSET:
        item["model"] = text(message.model)
    if message.tokens.estimated:
        item["estimated"] = {"BOOL": True}
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
        parent=item["parent"]["S"] if "parent" in item else None,
        role=item["role"]["S"],
        status=item["status"]["S"],
        created_at=times.to_rfc3339(ids.time_ms(identifier)),
        metadata=body.metadata,
        tokens=Tokens(int(item["tokens"]["N"]), estimated="estimated" in item),
        parts=body.parts,
        bytes=int(item["bytes"]["N"]) if body.parts is UNSET else UNSET,
        usage=body.usage,
        error=body.error,
        model=item["model"]["S"] if "model" in item else UNSET,
        reply=body.reply,
    )
    return StoredMessage(message, int(item["epoch"]["N"]))


def _check_format(item: Item, conversation: str, name: str) -> None:
    if item["v"]["N"] != str(_FORMAT):
        raise Unreadable(conversation, name, f"its item is of format {item['v']['N']}, not {_FORMAT}")
