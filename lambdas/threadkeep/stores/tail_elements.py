"""A message as the hot tier's tail keeps it: the path's links in front, where scripts read them, the rest packed.

::

    16 bytes  id
    16 bytes  parent, zeros for a root
    4 bytes   what this element and all pushed before it take (big-endian, modulo 2**32); written by the tier
    2 bytes   CRC-CCITT (big-endian) of the format's number, the id, the parent and what follows
    n bytes   raw DEFLATE (RFC 1951), with a preset dictionary, of a JSON object in UTF-8

Not the table's packing: the facts that stand beside a body there are inside here, and what is known already (the
conversation, the id, the time in it) is not. This is a cache, so that what is not as it was written is as good as
missing; but a changed byte may well unpack to another text, and nobody would know. One byte that was changed is always
found, or two neighbours; of whatever else, elements of another format too, all but one in 65,536.
"""

from __future__ import annotations

import zlib
from binascii import crc_hqx
from typing import Final, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from threadkeep.domain import ids, times
from threadkeep.domain.bounds import TAIL_FIRST_BYTES_MAX
from threadkeep.domain.json_values import JsonObject, encode
from threadkeep.domain.model import Message, Role, Status, StoredMessage, Tokens
from threadkeep.domain.ops import Parts
from threadkeep.domain.tail import SEVERAL, Several, is_prompt
from threadkeep.stores.packing_dictionary import DICTIONARY
from threadkeep.stores.warm_items import in_page

_ROOT: Final = bytes(16)
_ID_BYTES: Final = 16
_HEAD_BYTES: Final = 36
SEVERAL_ELEMENT: Final = b"several"
"""In place of a first message: `threadkeep.domain.tail.SEVERAL`. In the scripts too (``first.lua``)."""
_COUNT: Final = bytes(4)
_FORMAT: Final = b"\x03"
_CHECK_BYTES: Final = 2
_RAW: Final = -15
"""zlib's word for DEFLATE without a header of its own, in its largest window."""
_LEVEL: Final = 6
_DICTIONARY: Final = DICTIONARY + (
    b'"tokens":{"count":1,"estimated":true},"bytes":{"role":"system","metadata":{"model":"claude-gpt-","reply":"01",'
    b'"error":{"code":"","status":"stopped","status":"failed","status":"interrupted"{"role":"tool",'
    b'"model":"gpt-"usage":{"input_tokens":,"output_tokens":},"parts":[{"type":"tool_call","call_id":"call_","name":"'
    b'{"role":"assistant","epoch":18,"model":"gpt-{"role":"assistant","epoch":17,"parts":[{"type":"text","text":"'
    b'{"role":"user","parts":[{"type":"text","text":"'
)
"""As bodies are packed, with what short messages have besides, the likeliest last. Part of the format: what was packed
with it is read with it, and another dictionary is another format."""
_PACKER: Final = zlib.compressobj(_LEVEL, zlib.DEFLATED, _RAW, zdict=_DICTIONARY)
"""Copied for each element: it has read the dictionary already, which takes longer than packing a short message."""


class _Rest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What of a message stands neither in its element's head nor in its key, nor follows from the rest of it."""

    role: Role
    status: Status = "complete"
    epoch: int = 0
    tokens: Tokens | UnsetType = UNSET
    metadata: JsonObject = {}
    model: str | UnsetType = UNSET
    reply: str | UnsetType = UNSET
    usage: JsonObject | UnsetType = UNSET
    error: JsonObject | UnsetType = UNSET
    bytes: int | UnsetType = UNSET
    parts: Parts | UnsetType = UNSET


_REST: Final = msgspec.json.Decoder(_Rest)


def to_element(stored: StoredMessage) -> bytes:
    """The message in page form, its count left to the tier."""
    stored = in_page(stored)
    message = stored.message
    rest = _Rest(
        role=message.role,
        status=message.status,
        epoch=stored.epoch,
        tokens=UNSET if message.tokens == _tokens(message.parts, message.usage) else message.tokens,
        metadata=message.metadata,
        model=message.model,
        reply=message.reply,
        usage=message.usage,
        error=message.error,
        bytes=message.bytes,
        parts=message.parts,
    )
    packer = _PACKER.copy()
    packed = packer.compress(encode(rest)) + packer.flush()
    links = to_binary(message.id) + (to_binary(message.parent) if message.parent else _ROOT)
    return links + _COUNT + _check(links, packed) + packed


def from_element(conversation: str, element: bytes) -> StoredMessage | None:
    """The message again; None where it is of a format that this version does not know, or not as it was written."""
    check, packed = element[_HEAD_BYTES:][:_CHECK_BYTES], element[_HEAD_BYTES + _CHECK_BYTES :]
    if check != _check(element[: 2 * _ID_BYTES], packed):
        return None
    unpacker = zlib.decompressobj(_RAW, zdict=_DICTIONARY)
    rest = _REST.decode(unpacker.decompress(packed) + unpacker.flush())
    identifier = id_of(element)
    message = Message(
        id=identifier,
        conversation=conversation,
        parent=parent_of(element),
        role=rest.role,
        status=rest.status,
        created_at=times.to_rfc3339(ids.time_ms(identifier)),
        metadata=rest.metadata,
        tokens=_tokens(rest.parts, rest.usage) if rest.tokens is UNSET else rest.tokens,
        parts=rest.parts,
        bytes=rest.bytes,
        usage=rest.usage,
        error=rest.error,
        model=rest.model,
        reply=rest.reply,
    )
    return StoredMessage(message, rest.epoch)


def _check(links: bytes, packed: bytes) -> bytes:
    """Not of the count, which is the tier's and changes."""
    return crc_hqx(packed, crc_hqx(_FORMAT + links, 0)).to_bytes(_CHECK_BYTES)


def _tokens(parts: Parts | UnsetType, usage: JsonObject | UnsetType) -> Tokens:
    """How many it takes as far as can be told from its content."""
    return Tokens.of(() if parts is UNSET else parts, None if usage is UNSET else usage)


FirstKind = Literal["whole", "large", "id", "child"]


def first_kind(stored: StoredMessage, element: bytes) -> FirstKind:
    """What is kept of a conversation's first message: itself, or that it is no prompt; of too large a one nothing."""
    if not is_prompt(stored.message):
        return "id"
    return "whole" if len(element) <= TAIL_FIRST_BYTES_MAX else "large"


def kind_of_new(stored: StoredMessage, element: bytes) -> FirstKind:
    """Of one that was just stored: what has a parent is not the first, even where nothing older is known here."""
    return "child" if stored.message.parent else first_kind(stored, element)


def first_from(conversation: str, element: bytes) -> StoredMessage | Several | UnsetType | None:
    """The first message again; None where the id alone says that it is no prompt, UNSET where nothing is known."""
    if element == SEVERAL_ELEMENT:
        return SEVERAL
    if len(element) == _ID_BYTES:
        return None
    stored = from_element(conversation, element)
    return UNSET if stored is None else stored


def id_of(element: bytes) -> str:
    """Whose element it is."""
    return from_binary(element[:_ID_BYTES])


def parent_of(element: bytes) -> str | None:
    """Its parent; None for a root."""
    parent = element[_ID_BYTES : 2 * _ID_BYTES]
    return None if parent == _ROOT else from_binary(parent)


def to_binary(identifier: str) -> bytes:
    """An id in its 16 bytes."""
    return UUID(identifier).bytes


def from_binary(identifier: bytes) -> str:
    """An id as everybody else has it."""
    return str(UUID(bytes=identifier))
