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


class GrowJson(msgspec.Struct, frozen=True, array_like=True, tag="json"):
    """``["json", index, name, "…", last]``: a piece of the JSON of a field, which has its value with the last one.

    Cuts what no other op can carry. Only a settled message's log holds it: no producer says it, so that what a stream
    adds up to is JSON at every place.
    """

    index: Index
    name: str
    text: str
    last: bool


Op = BeginPart | GrowText | SetFields | SetMeta
"""What a producer may say."""
PieceOp = Op | GrowJson
"""What a settled message is read as."""
Parts = tuple[JsonObject, ...]

_DECODER: Final = msgspec.json.Decoder(list[Op])
_GROWING: Final = {"tool_call": "arguments", "tool_result": "output"}
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


def fields_said(ops: Iterable[Op]) -> list[JsonObject]:
    """The fields that the ops give to parts: of each op that begins one or merges into one."""
    said = []
    for op in ops:
        match op:
            case BeginPart(_, fields) | SetFields(_, fields):
                said.append(fields)
    return said


def blobs(ops: Iterable[Op]) -> Iterator[JsonObject]:
    """The parts among the ops that name an upload, and fields that give a part the name of one."""
    for op in ops:
        match op:
            case BeginPart(_, part) if kind(part) == "blob":
                yield part
            case SetFields(_, fields) if "ref" in fields:
                yield fields


class _Part:
    """A part in the making. Its growing strings are kept in pieces and written when they are looked at.

    So a field that is set between two pieces costs what it brings, however long the string beside it has grown.
    """

    def __init__(self, fields: JsonObject) -> None:
        self._fields = dict(fields)
        self._grown: dict[str, list[str]] = {}
        self._growing: str | None = None

    def grow(self, text: str) -> None:
        if self._growing is None:
            self._growing = growing_field(self._fields)
        pieces = self._grown.get(self._growing)
        if pieces is None:
            pieces = self._grown[self._growing] = [_begun(self._fields.get(self._growing))]
            self._fields.setdefault(self._growing, _EMPTY)
        pieces.append(text)

    def merge(self, fields: JsonObject) -> None:
        self._fields.update(fields)
        if "type" in fields:
            self._growing = None
        if self._grown:
            for name in fields:
                self._grown.pop(name, None)

    def whole(self) -> JsonObject:
        for name, pieces in self._grown.items():
            self._fields[name] = Raw(encode("".join(pieces)))
        self._grown.clear()
        return dict(self._fields)


def _begun(value: Raw | None) -> str:
    """What a field's string begins with. One that holds another kind of value keeps it, as the text of its JSON."""
    if value is None:
        return ""
    text = read_text(value)
    return bytes(value).decode() if text is None else text


_EMPTY: Final = Raw(b'""')


class Assembly:
    """A message in the making: parts and metadata, changed by ops in order.

    Folding never fails: ops are judged one by one when they are accepted, what they add up to is taken as it comes,
    since a stream must always be able to settle; and in time that grows with the ops alone, so its dictionaries are
    its own and changed in place.
    """

    def __init__(self, metadata: JsonObject | None = None) -> None:
        self._parts: dict[int, _Part] = {}
        self._texts: dict[tuple[int, str], list[str]] = {}
        self._metadata: JsonObject = dict(metadata or {})

    def apply(self, ops: Iterable[PieceOp]) -> None:
        """Take further ops."""
        for op in ops:
            match op:
                case BeginPart(index, part):
                    self._parts[index] = _Part(part)
                case GrowText(index, text):
                    if index not in self._parts:
                        self._parts[index] = _Part({"type": Raw(b'"text"'), "text": _EMPTY})
                    self._parts[index].grow(text)
                case SetFields(index, fields):
                    self._merge(index, fields)
                case SetMeta(fields):
                    self._metadata.update(fields)
                case GrowJson(index, name, text, last):
                    self._texts.setdefault((index, name), []).append(text)
                    if last:
                        self._merge(index, {name: Raw("".join(self._texts.pop((index, name))).encode())})

    @property
    def metadata(self) -> JsonObject:
        """The metadata as it stands."""
        return dict(self._metadata)

    def parts(self) -> Parts:
        """The parts as they stand, in order of their index."""
        return tuple(self._parts[index].whole() for index in sorted(self._parts))

    def _merge(self, index: int, fields: JsonObject) -> None:
        if index not in self._parts:
            self._parts[index] = _Part({})
        self._parts[index].merge(fields)


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


def pieces(parts: Parts) -> Iterator[list[PieceOp]]:
    """A settled message as a log: ops in pieces of at most `PIECE_BYTES_MAX`, always cut alike.

    Applied in order they give the parts back: the same JSON, and byte for byte where the growing strings were written
    without needless escapes. The fields of a part are dealt out, growing strings cut, and so is the JSON of other
    values that are too long.
    """
    piece: list[PieceOp] = []
    size = 2
    for op in _as_ops(parts):
        op_bytes = len(encode(op)) + 1
        if piece and size + op_bytes > PIECE_BYTES_MAX:
            yield piece
            piece, size = [], 2
        piece.append(op)
        size += op_bytes
    yield piece


def _as_ops(parts: Parts) -> Iterator[PieceOp]:
    for index, part in enumerate(parts):
        if len(encode(part)) < _SMALL_BYTES:
            yield BeginPart(index, part)
            continue
        field = growing_field(part)
        text = read_text(part.get(field))
        hollow = part if text is None else part | {field: Raw(b'""')}
        long = {name: bytes(value).decode() for name, value in hollow.items() if len(bytes(value)) > _LONG_BYTES}
        begun, *others = _deal_out(hollow | dict.fromkeys(long, Raw(b"null")), _LONG_BYTES)
        yield BeginPart(index, begun)
        for fields in others:
            yield SetFields(index, fields)
        for name, value in long.items():
            *cuts, last = cut_text(value, PIECE_BYTES_MAX - _AROUND_CUT_BYTES - len(encode(name)))
            for cut in cuts:
                yield GrowJson(index, name, cut, last=False)
            yield GrowJson(index, name, last, last=True)
        for cut in cut_text(text or "", PIECE_BYTES_MAX - _AROUND_CUT_BYTES):
            yield GrowText(index, cut)


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
_LONG_BYTES: Final = PIECE_BYTES_MAX // 2
"""A value that takes more is cut, so that its field's name, and others beside it, have room in a piece."""
_AROUND_CUT_BYTES: Final = 32
"""What stands around the longest cut in a piece: brackets, the op's kind, an index of three digits, commas, quotes."""


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
