"""The ops that build a message (docs/protocol.md, section 3.2), and the fold from ops to parts and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Raw

from threadkeep.domain.bounds import METADATA_BYTES_MAX, PARTS_MAX, PIECE_BYTES_MAX
from threadkeep.domain.json_values import JsonObject, encode, read_text

Index = Annotated[int, Meta(ge=0, lt=PARTS_MAX)]


class BeginPart(msgspec.Struct, frozen=True, array_like=True, tag="part"):
    """``["part", index, {part}]``: begins the part at that place (again: in place of what stood there)."""

    index: Index
    part: JsonObject


class GrowText(msgspec.Struct, frozen=True, array_like=True, tag="text"):
    """``["text", index, "…"]``: appends to the part's growing string; begins a text part where there is none."""

    index: Index
    text: str


class SetFields(msgspec.Struct, frozen=True, array_like=True, tag="set"):
    """``["set", index, {fields}]``: merges fields into the part."""

    index: Index
    fields: JsonObject


class SetMeta(msgspec.Struct, frozen=True, array_like=True, tag="meta"):
    """``["meta", {fields}]``: merges fields into the message's metadata."""

    fields: JsonObject


Op = BeginPart | GrowText | SetFields | SetMeta
Parts = tuple[JsonObject, ...]

_DECODER: Final = msgspec.json.Decoder(list[Op])
_GROWING: Final = {"tool_call": "arguments", "tool_result": "output"}
_GROWN_AS: Final = {"text": "text", "arguments": "tool_call", "output": "tool_result"}
_TEXT_KINDS: Final = frozenset({"text", "reasoning"})


def decode(data: bytes | Raw) -> list[Op]:
    """Read a list of ops.

    Raises:
        msgspec.DecodeError: it is none.
    """
    return _DECODER.decode(data)


def merge(ops: Iterable[Op]) -> list[Op]:
    """The same ops with neighbouring pieces of one string joined: what a viewer is sent who missed them all."""
    merged: list[Op] = []
    run: list[str] = []  # texts of the GrowText ops that end `merged` as one
    for op in ops:
        last = merged[-1] if merged else None
        if isinstance(op, GrowText):
            if isinstance(last, GrowText) and last.index == op.index:
                run.append(op.text)
                continue
            _close_run(merged, run)
            run = [op.text]
        else:
            _close_run(merged, run)
            run = []
        merged.append(op)
    _close_run(merged, run)
    return merged


def _close_run(merged: list[Op], run: list[str]) -> None:
    last = merged[-1] if merged else None
    if len(run) > 1 and isinstance(last, GrowText):
        merged[-1] = GrowText(last.index, "".join(run))


def kind(part: JsonObject) -> str:
    """A part's type; empty where it names none."""
    return read_text(part.get("type")) or ""


def growing_field(part: JsonObject) -> str:
    """The field to which ``text`` ops append: ``arguments``, ``output``, else ``text``."""
    return _GROWING.get(kind(part), "text")


class Assembly:
    """A message in the making: parts and metadata, changed by ops in order.

    Folding never fails: ops are judged one by one when they are accepted, what they add up to is taken as it comes,
    since a stream must always be able to settle.
    """

    def __init__(self, metadata: JsonObject | None = None) -> None:
        self._parts: dict[int, JsonObject] = {}
        self._grown: dict[int, list[str]] = {}
        self.metadata: JsonObject = dict(metadata or {})

    def apply(self, ops: Iterable[Op]) -> None:
        """Take further ops."""
        for op in ops:
            match op:
                case BeginPart(index, part):
                    self._grown.pop(index, None)
                    self._parts[index] = dict(part)
                case GrowText(index, text):
                    if index not in self._parts:
                        self._parts[index] = {"type": Raw(b'"text"'), "text": Raw(b'""')}
                    self._grown.setdefault(index, []).append(text)
                case SetFields(index, fields):
                    self._write_grown(index)
                    self._parts[index] = self._parts.get(index, {}) | fields
                case SetMeta(fields):
                    self.metadata = self.metadata | fields

    def parts(self) -> Parts:
        """The parts as they stand, in order of their index."""
        for index in list(self._grown):
            self._write_grown(index)
        return tuple(self._parts[index] for index in sorted(self._parts))

    def _write_grown(self, index: int) -> None:
        grown = self._grown.pop(index, None)
        if grown is None:
            return
        part = dict(self._parts[index])  # the old one may have been given out by `parts`
        field = growing_field(part)
        value = part.get(field)
        # A field that should grow but holds another kind of value keeps it, as the text of its JSON.
        begun = read_text(value) if value is not None else ""
        if begun is None and value is not None:
            begun = bytes(value).decode()
        part[field] = Raw(encode((begun or "") + "".join(grown)))
        self._parts[index] = part


def settled(parts: Parts) -> Parts:
    """What is stored of a finished message: no empty text, and no tool call that waits for ever.

    A tool call without its result in the same message, and which does not say itself how it ended, becomes
    ``state: "incomplete"``; providers refuse a conversation that holds an unpaired one in silence.
    """
    answered = {read_text(part.get("call_id")) for part in parts if kind(part) == "tool_result"} - {None}
    kept = []
    for part in parts:
        if kind(part) in _TEXT_KINDS and read_text(part.get("text", Raw(b'""'))) == "":
            continue
        if (
            kind(part) == "tool_call"
            and read_text(part.get("call_id")) not in answered
            and read_text(part.get("state")) in {None, "", "started", "arguments", "running"}
        ):
            kept.append(part | {"state": Raw(b'"incomplete"')})
            continue
        kept.append(part)
    return tuple(kept)


def settled_metadata(metadata: JsonObject) -> JsonObject:
    """What is stored of metadata that ``meta`` ops made grow: the fields that fit its bound, in their order."""
    kept: JsonObject = {}
    size = 1  # the braces, less the first comma
    for name, value in metadata.items():
        field_bytes = len(encode({name: value})) - 1
        if size + field_bytes <= METADATA_BYTES_MAX:
            kept[name] = value
            size += field_bytes
    return kept


def pieces(parts: Parts) -> Iterator[list[Op]]:
    """A settled message as a log: ops in pieces of at most `PIECE_BYTES_MAX`, always cut alike.

    Applied in order they give the parts back: the same JSON, and byte for byte where the growing strings were written
    without needless escapes. Growing strings are cut, of a part that has changed its type too, and the fields of a
    part dealt out; a single other field that is larger than a piece is a piece of its own.
    """
    piece: list[Op] = []
    size = 2
    for op in _as_ops(parts):
        op_bytes = len(encode(op)) + 1
        if piece and size + op_bytes > PIECE_BYTES_MAX:
            yield piece
            piece, size = [], 2
        piece.append(op)
        size += op_bytes
    yield piece


def _as_ops(parts: Parts) -> Iterator[Op]:
    for index, part in enumerate(parts):
        if len(encode(part)) < _SMALL_BYTES:
            yield BeginPart(index, part)
            continue
        own = growing_field(part)
        long = {field: read_text(part.get(field)) for field in _long_fields(part) if field != own}
        cut = {field: text for field, text in ((own, read_text(part.get(own))), *long.items()) if text is not None}
        begun, *others = _deal_out(part | dict.fromkeys(cut, Raw(b'""')), PIECE_BYTES_MAX // 2)
        yield BeginPart(index, begun)
        for fields in others:
            yield SetFields(index, fields)
        for field, text in cut.items():
            if field != own:
                yield SetFields(index, {"type": Raw(encode(_GROWN_AS[field]))})
            for piece in cut_text(text, PIECE_BYTES_MAX // 2):
                yield GrowText(index, piece)
        if cut.keys() - {own}:
            yield SetFields(index, {"type": part["type"]})


def _long_fields(part: JsonObject) -> Iterator[str]:
    """Fields that may have grown under a type that the part no longer has, too long to travel in one op."""
    if "type" in part:
        for field in _GROWN_AS:
            if len(bytes(part.get(field, Raw(b"")))) > PIECE_BYTES_MAX // 2:
                yield field


def _deal_out(fields: JsonObject, bytes_max: int) -> Iterator[JsonObject]:
    """The fields in order, in as few objects of at most so many bytes as that takes, at least one."""
    dealt: JsonObject = {}
    size = 0
    for name, value in fields.items():
        field_bytes = len(encode({name: value}))
        if dealt and size + field_bytes > bytes_max:
            yield dealt
            dealt, size = {}, 0
        dealt[name] = value
        size += field_bytes
    yield dealt


_SMALL_BYTES: Final = 1_024


def cut_text(text: str, bytes_max: int) -> Iterator[str]:
    """Cut between characters, so that each piece takes at most so many bytes as a JSON string (quotes apart).

    A control character takes six bytes there, the most of any, so ``bytes_max`` must be at least that.
    """
    start = 0
    while start < len(text):
        end = start + bytes_max
        while len(encode(text[start:end])) - 2 > bytes_max:
            end = start + max(1, (min(end, len(text)) - start) * 3 // 4)
        yield text[start:end]
        start = end
