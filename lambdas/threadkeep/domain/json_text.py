r"""JSON text as it comes from outside: cleaned and measured before anything decodes it.

Both work on bytes, in one pass and in place: an upload of megabytes takes no more memory than a copy of itself,
whatever stands in it.
"""

from __future__ import annotations

import codecs
import re
from typing import Final

import msgspec

_ESCAPED: Final = re.compile(
    rb"(?<!\\)(?:\\\\)*+\\"  # a backslash that stands behind an even number of them
    rb"(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair: stays
    rb"|(u[dD][89a-fA-F][0-9a-fA-F]{2}))"  # half of one: group 1
)
_BARE: Final = re.compile(rb"(\xed[\xa0-\xbf][\x80-\xbf])")
"""A half as it would be encoded. No other character's bytes hold these three."""
_HALVES: Final = ((_ESCAPED, b"ufffd"), (_BARE, "\ufffd".encode()))
"""How halves stand in a text, as group 1, and what takes their place: as many bytes."""

_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.?[^"\\]*+)*+"?|[\[\]{}:]', re.DOTALL)
"""A string, to its end or the text's, a bracket or a colon. Possessive: it never goes back, nor remembers where to."""
_FIELDS_DEPTH: Final = 2
_UTF8_CHUNK_BYTES: Final = 64 * 1024


def clean(text: bytes) -> bytes:
    """Half surrogates become U+FFFD, as escapes and bare: nothing after this could encode them.

    Args:
        text: JSON in UTF-8, in which halves of surrogates stand as if they were characters.
    """
    cleaned: bytearray | None = None
    for pattern, replacement in _HALVES:
        for found in pattern.finditer(text):
            if found[1] is not None:
                cleaned = cleaned or bytearray(text)
                cleaned[found.start(1) : found.end(1)] = replacement
    return text if cleaned is None else bytes(cleaned)


class Shape(msgspec.Struct, frozen=True):
    """What a text would become, as far as that can be dear.

    Attributes:
        depth: how deep brackets nest.
        fields: how many fields stand at the second depth: in a list of parts, those of all parts together.
    """

    depth: int
    fields: int


def measure(text: bytes) -> Shape:
    """Measured before decoding, so that no decoder is asked to recurse, or to build what there is no room for."""
    deepest = nested = fields = 0
    for token in _TOKEN.finditer(text):
        first = text[token.start()]
        if first in b"[{":
            nested += 1
            deepest = max(deepest, nested)
        elif first in b"]}":
            nested -= 1
        elif first in b":" and nested == _FIELDS_DEPTH:
            fields += 1
    return Shape(deepest, fields)


def is_utf8(text: bytes) -> bool:
    """Whether it is UTF-8 to the end; decoded in pieces, since a text takes up to four times its bytes."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    view = memoryview(text)
    try:
        for start in range(0, len(text), _UTF8_CHUNK_BYTES):
            decoder.decode(view[start : start + _UTF8_CHUNK_BYTES])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True
