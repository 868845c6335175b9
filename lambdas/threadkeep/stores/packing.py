"""A message's body as it is stored: JSON, compressed, with a checksum that also covers whose body it is.

::

    1 byte    format
    16 bytes  BLAKE2b over the conversation's and the message's id and all that follows
    n bytes   deflate (RFC 1951) of a JSON object in UTF-8, after `threadkeep.stores.packing_dictionary`

Client JSON in it stands byte for byte as it came in, so numbers keep their kind and every digit, and what a table
would refuse or change (empty sets, U+0000, 38 digits and more) is never an attribute of the table.
"""

from __future__ import annotations

import hashlib
import zlib
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from threadkeep.domain.errors import Unreadable
from threadkeep.domain.json_values import JsonObject, encode
from threadkeep.domain.model import Message
from threadkeep.domain.ops import Parts
from threadkeep.stores.packing_dictionary import DICTIONARY

_FORMAT: Final = 2
_DIGEST_BYTES: Final = 16
_HEADER_BYTES: Final = 1 + _DIGEST_BYTES
_RAW: Final = -zlib.MAX_WBITS
"""Without zlib's own header and checksum, which would say less than ours."""
_PACKER: Final = zlib.compressobj(wbits=_RAW, zdict=DICTIONARY)
"""Copied for each body: it has read the dictionary already, which takes longer than packing a short one."""


class Body(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What of a message is packed: all that has no bound of a few bytes. The rest are attributes of its item."""

    metadata: JsonObject
    parts: Parts | UnsetType = UNSET
    usage: JsonObject | UnsetType = UNSET
    error: JsonObject | UnsetType = UNSET
    reply: str | UnsetType = UNSET

    @classmethod
    def from_message(cls, message: Message) -> Body:
        """The body of a message, without parts if it has none."""
        return cls(
            metadata=message.metadata,
            parts=message.parts,
            usage=message.usage,
            error=message.error,
            reply=message.reply,
        )


_BODY: Final = msgspec.json.Decoder(Body)


def pack(message: Message) -> bytes:
    """The body of a message, packed."""
    deflate = _PACKER.copy()
    compressed = deflate.compress(encode(Body.from_message(message))) + deflate.flush()
    return bytes([_FORMAT]) + _digest(message.conversation, message.id, compressed) + compressed


def unpack(conversation: str, message: str, packed: bytes) -> Body:
    """The body again.

    Raises:
        Unreadable: it is damaged, another message's, or of an unknown format.
    """
    if packed[:1] != bytes([_FORMAT]):
        raise Unreadable(conversation, message, f"its body is not of format {_FORMAT}")
    compressed = packed[_HEADER_BYTES:]
    if packed[1:_HEADER_BYTES] != _digest(conversation, message, compressed):
        raise Unreadable(conversation, message, "its body does not match its checksum")
    # Whoever wrote the checksum wrote the rest: from here on nothing can fail but by a fault of our own.
    return _BODY.decode(zlib.decompressobj(wbits=_RAW, zdict=DICTIONARY).decompress(compressed))


def _digest(conversation: str, message: str, compressed: bytes) -> bytes:
    digest = hashlib.blake2b(f"{conversation}/{message}/".encode(), digest_size=_DIGEST_BYTES)
    digest.update(compressed)
    return digest.digest()
