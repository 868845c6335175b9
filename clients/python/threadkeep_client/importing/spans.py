"""Where the JSON values of a file lie: the elements of one array, or values one after another (JSON Lines).

Only places are told, so a file of any size takes one chunk of memory, and a value that is damaged, or too large to be
read, loses none of the others. What a value holds is for `json` to say: here only strings and brackets are told apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

_CHUNK_BYTES: Final = 1024 * 1024
_STRING: Final = rb'"(?:[^"\\]++|\\.)*+"'
_TO_BRACKET: Final = re.compile(rb'(?:[^"{}\[\]]++|' + _STRING + rb")*+", re.DOTALL)
"""Inside a value nothing counts but its brackets: whole strings are passed over, one cut off by the chunk is not."""
_TO_EDGE: Final = re.compile(rb'(?:[^"{}\[\],\n]++|' + _STRING + rb")*+", re.DOTALL)
_IN_STRING: Final = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_BLANK: Final = b" \t\r\n"
_BOM: Final = b"\xef\xbb\xbf"
_OPENING: Final = b"{["
_CLOSING: Final = b"}]"


@dataclass(frozen=True, slots=True)
class Span:
    """A value's place in bytes; blank space around it, or nothing else, may be part of it."""

    start: int
    end: int

    @property
    def length(self) -> int:
        """In bytes."""
        return self.end - self.start


def spans(file: BinaryIO) -> Iterator[Span]:
    """The values of a file from its beginning. The last may be cut off, where the file is.

    Args:
        file: seekable; its place is changed.
    """
    start = file.seek(_skip_bom(file))
    first = _first_byte(file)
    is_array = first == b"["
    if is_array:
        start = file.tell()
    yield from _Scanner(is_array=is_array, start=start).scan(file)


def _skip_bom(file: BinaryIO) -> int:
    file.seek(0)
    return len(_BOM) if file.read(len(_BOM)) == _BOM else 0


def _first_byte(file: BinaryIO) -> bytes:
    """The first byte that is not blank; the file stands behind it."""
    while (byte := file.read(1)) and byte in _BLANK:
        pass
    return byte


class _Scanner:
    """Goes over the bytes once. `depth` counts open brackets within a value."""

    def __init__(self, *, is_array: bool, start: int) -> None:
        self._is_array = is_array
        self._start = start
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def scan(self, file: BinaryIO) -> Iterator[Span]:
        base = file.tell() if self._is_array else file.seek(self._start)
        while chunk := file.read(_CHUNK_BYTES):
            yield from self._scan_chunk(base, chunk)
            base += len(chunk)
        if base > self._start:
            yield Span(self._start, base)

    def _scan_chunk(self, base: int, chunk: bytes) -> Iterator[Span]:
        at = 0
        while at < len(chunk):
            if self._in_string:
                at = self._leave_string(chunk, at)
                continue
            run = (_TO_BRACKET if self._depth else _TO_EDGE).match(chunk, at)
            at = run.end() if run else at
            if at == len(chunk):
                return
            yield from self._edge(base + at, chunk[at : at + 1])
            at += 1

    def _leave_string(self, chunk: bytes, at: int) -> int:
        if self._escaped:
            self._escaped = False
            return at + 1
        run = _IN_STRING.match(chunk, at)
        at = run.end() if run else at
        if at < len(chunk):
            if chunk[at : at + 1] == b'"':
                self._in_string = False
            else:
                self._escaped = True  # a backslash, and what it escapes is in the next chunk
            return at + 1
        return at

    def _edge(self, place: int, byte: bytes) -> Iterator[Span]:
        if byte == b'"':
            self._in_string = True
        elif byte in _OPENING:
            self._depth += 1
        elif byte in _CLOSING and self._depth:
            self._depth -= 1
            if not self._depth and not self._is_array:
                yield self._cut(place + 1, following=place + 1)
        elif byte == b"]" and self._is_array:
            yield self._cut(place, following=place + 1)
            self._is_array = False  # whatever follows it stands by itself
        elif byte == (b"," if self._is_array else b"\n"):
            yield self._cut(place, following=place + 1)

    def _cut(self, end: int, *, following: int) -> Span:
        span = Span(self._start, end)
        self._start = following
        return span
