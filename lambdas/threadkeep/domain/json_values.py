"""JSON that clients own: kept byte for byte, so that every number comes back with its kind and every digit.

A client's object is a ``dict[str, Raw]``: its names are read, its values are not.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import Raw

from threadkeep.domain.complaints import choices_of, in_words

JsonObject = dict[str, Raw]

_OBJECT: Final = msgspec.json.Decoder(JsonObject)
_TEXT: Final = msgspec.json.Decoder(str)


def encode(value: Any) -> bytes:
    """Compact JSON in UTF-8, without needless escapes."""
    return msgspec.json.encode(value)


def read_object(data: bytes) -> JsonObject:
    """An object whose values stay bytes.

    Raises:
        msgspec.DecodeError: it is not a JSON object.
    """
    return _OBJECT.decode(data)


def read_text(value: Raw | None) -> str | None:
    """The string that a value is, or None where it is anything else."""
    if value is None or bytes(value)[:1] != b'"':
        return None
    return _TEXT.decode(value)


def complaint(error: msgspec.DecodeError, *, root: str = "it", of: Iterable[type] = ()) -> str:
    """What is wrong with a text, and in which field, as a sentence; nothing of what stands there.

    Args:
        error: of decoding it.
        root: what it is about, where the whole is wrong.
        of: the structs that were to be read; where a field of theirs may be one of a few words, these are named.
    """
    return in_words(str(error), root=root, choices=choices_of(*of))


def same(one: Any, other: Any) -> bool:
    """Whether two values mean the same JSON: spacing and order of names apart, kinds of numbers not."""
    one_bytes, other_bytes = encode(one), encode(other)
    return one_bytes == other_bytes or bool(_meaning(one_bytes) == _meaning(other_bytes))


def _meaning(data: bytes) -> Any:
    # Numbers are compared as they are written: 1, 1.0 and 1e0 are not the same content.
    return json.loads(data, parse_int=_Number, parse_float=_Number)


class _Number(str):
    """A number as it was written; never equal to the string of the same letters."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Number) and str.__eq__(self, other)

    def __hash__(self) -> int:
        return hash((_Number, str(self)))
