"""JSON values of a file, read one at a time, and of each no more than is kept: a file of any size takes little memory.

What is too large is left out where it stands, and all around it is read: a message that nobody could keep still has its
author, its time and its place.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

from threadkeep_client.frames import TooDeepError, from_json
from threadkeep_client.importing.draft import RefusedError
from threadkeep_client.importing.spans import Places, Span, inside
from threadkeep_client.wire import JsonObject

WHOLE_BYTES_MAX: Final = 1024 * 1024
"""What is read at once. Larger objects are read field by field, so that no text of theirs is held twice."""
FIELDS_MAX: Final = 10_000
"""Of an object that is read field by field; one of more is left out."""
DEPTH_MAX: Final = 3
"""How deep that goes: a node, its message, the message's content."""
_NAME: Final = re.compile(rb'\s*("(?:[^"\\]|\\.)*")\s*:', re.DOTALL)
_NAME_BYTES_MAX: Final = 4_096
_CHUNK_BYTES: Final = 1024 * 1024
_SHORTEST_ESCAPE: Final = 5
"""What `\\u0041` takes more than the letter that it stands for."""


class LeftOut:
    """Stands for a value that is not read. It is no JSON: whatever is to be sent cannot hold it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


LEFT_OUT: Final = LeftOut("LEFT_OUT")
"""It is larger than what is kept."""
TOO_DEEP: Final = LeftOut("TOO_DEEP")
"""It is nested deeper than Python reads, far deeper than what is kept."""


@dataclass(slots=True)
class _Budget:
    """What may be read of one value, in bytes as UTF-8."""

    each: int
    left: int


def read_value(file: BinaryIO, span: Span, *, each_bytes_max: int, depth: int = DEPTH_MAX) -> Any:
    """A value: whole up to `WHOLE_BYTES_MAX`; of a larger object the fields, and LEFT_OUT for those that do not fit.

    What is nested too deeply to be read whole is read by its fields too, with TOO_DEEP for those that are.

    Args:
        file: seekable; its place is changed.
        span: where it lies.
        each_bytes_max: how large each may be that is read of a larger value; all together twice that.
        depth: how many objects within each other are read field by field.

    Raises:
        RefusedError: It is no JSON in UTF-8.
    """
    try:
        if span.length <= WHOLE_BYTES_MAX:
            return _load(file, span, depth)
        return _read(file, span, _Budget(each_bytes_max, 2 * each_bytes_max), depth)
    except UnicodeDecodeError as error:
        raise RefusedError("is not UTF-8") from error
    except ValueError as error:
        raise RefusedError("is not JSON, or cut off") from error


def _read(file: BinaryIO, span: Span, budget: _Budget, depth: int) -> Any:
    if span.length > WHOLE_BYTES_MAX and depth and _first_byte(file, span) == b"{":
        return _read_fields(file, span, budget, depth)
    if span.length > min(budget.each, budget.left) and _least_bytes(file, span) > min(budget.each, budget.left):
        return LEFT_OUT
    budget.left -= span.length
    return _load(file, span, depth)


def _load(file: BinaryIO, span: Span, depth: int) -> Any:
    file.seek(span.start)
    try:
        return from_json(file.read(span.length).decode())
    except TooDeepError:
        if depth and _first_byte(file, span) == b"{":
            return _read_fields(file, span, _Budget(span.length, span.length), depth)
        return TOO_DEEP


def _read_fields(file: BinaryIO, span: Span, budget: _Budget, depth: int) -> Any:
    """Small ones first: they say what it is."""
    pieces = inside(file, span)
    if len(pieces) > FIELDS_MAX:
        return LEFT_OUT
    places = dict(_named(file, pieces))
    read = {
        name: _read(file, places[name], budget, depth - 1) for name in sorted(places, key=lambda n: places[n].length)
    }
    return {name: read[name] for name in places}


def _first_byte(file: BinaryIO, span: Span) -> bytes:
    file.seek(span.start)
    return file.read(min(span.length, _NAME_BYTES_MAX)).lstrip()[:1]


def _least_bytes(file: BinaryIO, span: Span) -> int:
    """What it takes at least as UTF-8 without needless escapes: exports write letters as six bytes."""
    file.seek(span.start)
    least, left = span.length, span.length
    while left > 0:
        chunk = file.read(min(left, _CHUNK_BYTES))
        least -= _SHORTEST_ESCAPE * chunk.count(b"\\u") + chunk.count(b"\\/")
        left -= len(chunk) or left
    return least


def _named(file: BinaryIO, pieces: Places) -> Iterator[tuple[str, Span]]:
    """The names and values of an object's pieces."""
    for piece in pieces:
        file.seek(piece.start)
        match = _NAME.match(file.read(min(piece.length, _NAME_BYTES_MAX)))
        if match is None:
            raise ValueError("no name, or one without end")
        yield json.loads(match[1]), Span(piece.start + match.end(), piece.end)


def digest(path: Path, span: Span) -> str:
    """SHA-256 of the bytes of a value, as hex digits."""
    found, left = hashlib.sha256(), span.length
    with path.open("rb") as file:
        file.seek(span.start)
        while left and (chunk := file.read(min(left, _CHUNK_BYTES))):
            found.update(chunk)
            left -= len(chunk)
    return found.hexdigest()


@dataclass(slots=True)
class Values:
    """Values that belong together, at their places in a file: each is read when it is asked for.

    Attributes:
        path: of the file.
        places: of the values.
        each_bytes_max: as `read_value` takes it.
    """

    path: Path
    places: Places
    each_bytes_max: int

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, number: int) -> Any:
        """Read one. Raises as `read_value`."""
        with self.path.open("rb", buffering=0) as file:
            return read_value(file, self.places[number], each_bytes_max=self.each_bytes_max)

    def object_at(self, number: int) -> JsonObject:
        """Read one again that was an object. Raises as `read_value`, also where it has changed meanwhile."""
        value = self[number]
        if not isinstance(value, dict):
            raise changed()
        return value


def changed() -> RefusedError:
    """Something is not any more what it was when it was read first."""
    return RefusedError("has changed while it was read")


@dataclass(slots=True)
class Outline:
    """An object one of whose fields is a long list, or a mapping.

    Attributes:
        fields: all others.
        values: of the list or mapping; None where there is neither.
        names: of a mapping's values; none of a list's.
    """

    fields: dict[str, Any]
    values: Values | None
    names: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path, span: Span, name: str, opening: str, *, each_bytes_max: int) -> Outline:
        """Read all but the values.

        Args:
            path: of the file.
            span: where the object lies.
            name: the field's.
            opening: the bracket with which it begins, if it is what it should be.
            each_bytes_max: as `read_value` takes it, here and for the values.

        Raises:
            RefusedError: It is no JSON in UTF-8.
        """
        with path.open("rb") as file:
            try:
                places = dict(_named(file, inside(file, span)))
                long = places.pop(name, None)
                pieces = inside(file, long) if long and _first_byte(file, long) == opening.encode() else None
                named = [*_named(file, pieces)] if pieces is not None and opening == "{" else []
            except UnicodeDecodeError as error:
                raise RefusedError("is not UTF-8") from error
            except ValueError as error:
                raise RefusedError("is not JSON, or cut off") from error
            fields = {field: read_value(file, place, each_bytes_max=each_bytes_max) for field, place in places.items()}
        if named:
            pieces = Places(place for _, place in dict(named).items())
        values = None if pieces is None else Values(path, pieces, each_bytes_max)
        return cls(fields, values, list(dict(named)))
