"""Ops (protocol, section 3.2): folding them into parts, and cutting them into appends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from threadkeep_client.errors import TooLargeError
from threadkeep_client.frames import OPS_BYTES_MAX, from_json, json_bytes, to_json
from threadkeep_client.wire import JsonObject, Op, Part, text_of

_GROWING: Final = {"tool_call": "arguments", "tool_result": "output"}
_ESCAPED_TWICE: Final = frozenset('"\\\b\f\n\r\t')
_CHARACTER_BYTES_MAX: Final = 6
"""What a control character takes in JSON, the most of any."""


def growing_field(part: Part) -> str:
    """The field that `text` ops append to: `arguments`, `output`, else `text`."""
    kind = part.get("type")
    return _GROWING.get(kind, "text") if isinstance(kind, str) else "text"


class _Part:
    """A part in the making. Its growing strings are kept in pieces and joined when they are looked at.

    So a field that is set between two pieces costs what it brings, however long the string beside it has grown.
    """

    def __init__(self, fields: Part) -> None:
        self._fields = dict(fields)
        self._grown: dict[str, list[str]] = {}

    def grow(self, text: str) -> None:
        name = growing_field(self._fields)
        pieces = self._grown.get(name)
        if pieces is None:
            begun = self._fields.setdefault(name, "")
            # A field that should grow but holds another kind of value goes on as the text of its JSON, as in the
            # service.
            pieces = self._grown[name] = [begun if isinstance(begun, str) else to_json(begun)]
        pieces.append(text)

    def merge(self, fields: Part) -> None:
        self._fields.update(fields)
        if self._grown:
            for name in fields:
                self._grown.pop(name, None)

    def whole(self) -> Part:
        for name, pieces in self._grown.items():
            self._fields[name] = "".join(pieces)
        self._grown.clear()
        return dict(self._fields)


class Assembly:
    """A message in the making: parts and metadata, changed by ops in order.

    An op of a kind or shape that this version does not know changes nothing. Growing strings are kept in pieces and
    joined when looked at, so that an append costs what it brings.
    """

    def __init__(self) -> None:
        self._parts: dict[int, _Part] = {}
        self._json: dict[tuple[int, str], list[str]] = {}
        self.metadata: JsonObject = {}

    def apply(self, ops: Iterable[Op]) -> None:
        """Take further ops.

        Raises:
            ValueError: The pieces of a field's JSON add up to none.
        """
        for op in ops:
            match op:
                case ["part", int(index), dict(part)]:
                    self._parts[index] = _Part(part)
                case ["text", int(index), str(text)]:
                    if index not in self._parts:
                        self._parts[index] = _Part({"type": "text", "text": ""})
                    self._parts[index].grow(text)
                case ["set", int(index), dict(fields)]:
                    self._merge(index, fields)
                case ["meta", dict(fields)]:
                    self.metadata |= fields
                case ["json", int(index), str(name), str(text), bool(last)]:
                    self._grow_json(index, name, text, last=last)

    @property
    def parts(self) -> list[Part]:
        """The parts as they stand, in order of their index."""
        return [self._parts[index].whole() for index in sorted(self._parts)]

    @property
    def text(self) -> str:
        """The text of all text parts as it stands."""
        return text_of(self.parts)

    def _grow_json(self, index: int, name: str, text: str, *, last: bool) -> None:
        """A settled message's log says so what no other op could carry; no producer does."""
        pieces = self._json.setdefault((index, name), [])
        pieces.append(text)
        if last:
            del self._json[index, name]
            self._merge(index, {name: from_json("".join(pieces))})

    def _merge(self, index: int, fields: JsonObject) -> None:
        if index not in self._parts:
            self._parts[index] = _Part({})
        self._parts[index].merge(fields)


def fold(ops: Iterable[Op]) -> list[Part]:
    """The parts that ops add up to."""
    assembly = Assembly()
    assembly.apply(ops)
    return assembly.parts


def merge(ops: Iterable[Op]) -> Iterator[Op]:
    """The same ops with neighbouring pieces of one string joined."""
    index: Any = None
    run: list[str] = []
    for op in ops:
        if run and not (op[0] == "text" and op[1] == index):
            yield ["text", index, "".join(run)]
            run = []
        if op[0] == "text":
            index = op[1]
            run.append(op[2])
        else:
            yield op
    if run:
        yield ["text", index, "".join(run)]


def cut(ops: Iterable[Op], bytes_max: int = OPS_BYTES_MAX) -> list[list[Op]]:
    """Ops in batches, each of which fits an append. Only growing strings are cut, between characters.

    Raises:
        TooLargeError: An op can neither be cut nor fit.
    """
    batches: list[list[Op]] = []
    batch: list[Op] = []
    size = 2
    for op in merge(ops):
        check_op(op, bytes_max)
        for piece, piece_bytes in _pieces(op, bytes_max - size - 1, bytes_max - 2):
            if batch and size + 1 + piece_bytes > bytes_max:
                batches.append(batch)
                batch, size = [], 2
            batch.append(piece)
            size += piece_bytes + (1 if len(batch) > 1 else 0)
    if batch:
        batches.append(batch)
    return batches


def _pieces(op: Op, room_first: int, room: int) -> Iterator[tuple[Op, int]]:
    """An op, cut so that its first piece takes `room_first` bytes and the others `room`, with the bytes they take."""
    if op[0] != "text" or not op[2]:
        yield op, json_bytes(op)
        return
    _, index, text = op
    frame_bytes = json_bytes(["text", index, ""])
    start, fits = 0, room_first - frame_bytes
    if fits < _CHARACTER_BYTES_MAX:
        fits = room - frame_bytes
    while start < len(text):
        piece = _head(text[start : start + fits], fits)
        yield ["text", index, piece], frame_bytes + json_bytes(piece) - 2
        start += len(piece)
        fits = room - frame_bytes


def _head(text: str, bytes_max: int) -> str:
    """The longest head that takes at most so many bytes as JSON, quotes apart."""
    if json_bytes(text) - 2 <= bytes_max:
        return text
    size = 0
    for place, character in enumerate(text):
        size += _character_bytes(character)
        if size > bytes_max:
            return text[:place]
    return text


def _character_bytes(character: str) -> int:
    if character in _ESCAPED_TWICE:
        return 2
    if character < " ":
        return 6
    return len(character.encode())


def check_op(op: Op, bytes_max: int = OPS_BYTES_MAX) -> None:
    """Refuse an op that no append can carry.

    Raises:
        TooLargeError: It is not a piece of text, which can be cut, and takes more than an append.
    """
    if op[0] == "text":
        return
    size = json_bytes([op])
    if size > bytes_max:
        raise TooLargeError(
            f"a {op[0]!r} op takes {size:,} bytes, an append at most {bytes_max:,}: give large strings piece by piece",
            reason="op",
        )
