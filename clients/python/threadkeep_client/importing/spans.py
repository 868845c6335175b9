"""Where the JSON values of a file lie: the elements of one array, or values one after another (JSON Lines).

Only places are told, so a file of any size takes one chunk of memory, and a value that is damaged, or too large to be
read, loses none of the others. What a value holds is for `json` to say: here only strings and brackets are told apart.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Generator, Iterable, Iterator
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
_CLOSED_BY: Final = {b"{": b"}", b"[": b"]"}


@dataclass(frozen=True, slots=True)
class Span:
    """A value's place in bytes; blank space around it, or nothing else, may be part of it."""

    start: int
    end: int

    @property
    def length(self) -> int:
        """In bytes."""
        return self.end - self.start


class Places:
    """Very many spans in a little memory: sixteen bytes each."""

    def __init__(self, spans: Iterable[Span] = ()) -> None:
        self._edges = array("Q")
        for span in spans:
            self.append(span)

    def append(self, span: Span) -> None:
        """One more."""
        self._edges.extend((span.start, span.end))

    def __len__(self) -> int:
        return len(self._edges) // 2

    def __getitem__(self, number: int) -> Span:
        return Span(self._edges[2 * number], self._edges[2 * number + 1])

    def __iter__(self) -> Iterator[Span]:
        return (self[number] for number in range(len(self)))


def spans(file: BinaryIO) -> Generator[Span, None, bool]:
    """The values of a file from its beginning. The last may be cut off, where the file is.

    Args:
        file: seekable; its place is changed.

    Returns:
        Whether the file ends before the array does that it begins with.
    """
    start = file.seek(_skip_bom(file))
    if _first_byte(file) != b"[":
        yield from _Scanner(closing=b"", start=start).scan(file)
        return False
    scanner = _Scanner(closing=b"]", start=file.tell())
    yield from scanner.scan(file)
    return scanner.closed_at is None


def inside(file: BinaryIO, span: Span) -> Places:
    """What stands between the commas of an array or object: its elements, or its names and values; nothing in `{}`.

    Only brackets are looked at: what stands there is for `json` to say.

    Args:
        file: seekable; its place is changed.
        span: of the array or object, blank space around it or not.

    Raises:
        ValueError: It is neither, is cut off, or something stands behind it.
    """
    file.seek(span.start)
    first = _first_byte(file)
    if first not in _CLOSED_BY or file.tell() > span.end:
        raise ValueError("neither an array nor an object")
    scanner = _Scanner(closing=_CLOSED_BY[first], start=file.tell())
    found = Places(scanner.scan(file, span.end))
    if scanner.closed_at is None or not is_blank(file, Span(scanner.closed_at, span.end)):
        raise ValueError("cut off, or something stands behind it")
    return Places() if len(found) == 1 and is_blank(file, found[0]) else found


def is_blank(file: BinaryIO, span: Span) -> bool:
    """Whether nothing stands there. The file's place is changed."""
    file.seek(span.start)
    left = span.length
    while left and (chunk := file.read(min(left, _CHUNK_BYTES))):
        if chunk.strip(_BLANK):
            return False
        left -= len(chunk)
    return True


def _skip_bom(file: BinaryIO) -> int:
    file.seek(0)
    return len(_BOM) if file.read(len(_BOM)) == _BOM else 0


def _first_byte(file: BinaryIO) -> bytes:
    """The first byte that is not blank; the file stands behind it."""
    while (byte := file.read(1)) and byte in _BLANK:
        pass
    return byte


class _Scanner:
    """Goes over the bytes once. `depth` counts open brackets within a value.

    Args:
        closing: the bracket that ends what the values stand in; nothing where they stand one after another.
        start: where the first begins.

    Attributes:
        closed_at: the place behind that bracket, once it was met.
    """

    def __init__(self, *, closing: bytes, start: int) -> None:
        self.closed_at: int | None = None
        self._closing = closing
        self._start = start
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def scan(self, file: BinaryIO, end: int | None = None) -> Iterator[Span]:
        """The values up to that place, or to the closing bracket; without a place whatever the file holds."""
        base = file.seek(self._start)
        while end is None or (base < end and self.closed_at is None):
            chunk = file.read(_CHUNK_BYTES if end is None else min(_CHUNK_BYTES, end - base))
            if not chunk:
                break
            yield from self._scan_chunk(base, chunk, is_inside=end is not None)
            base += len(chunk)
        if end is None and base > self._start:
            yield Span(self._start, base)

    def _scan_chunk(self, base: int, chunk: bytes, *, is_inside: bool) -> Iterator[Span]:
        at = 0
        while at < len(chunk) and not (is_inside and self.closed_at is not None):
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
            if not self._depth and not self._closing:
                yield self._cut(place + 1, following=place + 1)
        elif self._closing and byte == self._closing:
            yield self._cut(place, following=place + 1)
            self._closing = b""  # whatever follows it stands by itself
            self.closed_at = place + 1
        elif byte == (b"," if self._closing else b"\n"):
            yield self._cut(place, following=place + 1)

    def _cut(self, end: int, *, following: int) -> Span:
        span = Span(self._start, end)
        self._start = following
        return span
