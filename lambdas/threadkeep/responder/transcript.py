"""From what a model says to the ops that say it: which part grows, and what becomes of tool calls."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Raw

from threadkeep.domain.bounds import NAME_CHARS_MAX, PARTS_MAX
from threadkeep.domain.json_values import JsonObject, encode
from threadkeep.domain.ops import BeginPart, SetFields, SetMeta
from threadkeep.responder.answers import (
    Event,
    ReasoningPiece,
    TextPiece,
    ToolCallBegun,
    ToolCallEnded,
    ToolCallPiece,
    Usage,
)
from threadkeep.responder.outbox import AnswerTooLarge, Outbox, clean
from threadkeep.responder.prompt import object_text

_MALFORMED: Final = {"code": "malformed_arguments"}


class Transcript:
    """Writes a model's events into an outbox. A part begins with its first piece, so none is ever empty.

    A tool call stays without an end of its own: nothing here runs tools, so it is stored as incomplete until somebody
    answers it. Arguments that are no JSON object stay as the text they are, and the call says so in its ``error``.

    Attributes:
        usage: what the provider counted, once it did.
    """

    def __init__(self, outbox: Outbox) -> None:
        self.usage: JsonObject | None = None
        self._outbox = outbox
        self._parts = 0
        self._open = ""
        self._calls: dict[int, int] = {}
        self._arguments: dict[int, list[str]] = {}

    def take(self, event: Event) -> None:
        """Write it down.

        Raises:
            AnswerTooLarge: the answer has no room for it.
        """
        match event:
            case TextPiece(text):
                self._grow("text", text)
            case ReasoningPiece(text):
                self._grow("reasoning", text)
            case ToolCallBegun(call, call_id, name):
                self._arguments[call] = []
                self._calls[call] = self._begin(
                    "tool_call",
                    call_id=clean(call_id[:NAME_CHARS_MAX]),
                    name=clean(name[:NAME_CHARS_MAX]),
                    arguments="",
                    state="started",
                )
            case ToolCallPiece(call, arguments):
                self._arguments[call].append(arguments)
                self._outbox.grow(self._calls[call], arguments)
            case ToolCallEnded(call):
                if object_text(clean("".join(self._arguments.pop(call)))) is None:
                    self._outbox.add(SetFields(self._calls[call], _raw(error=_MALFORMED)))
            case Usage(input_tokens, output_tokens):
                self.usage = _raw(input_tokens=input_tokens, output_tokens=output_tokens)

    def end(self, stop_reason: str) -> None:
        """Nothing more is said; the metadata tells why, where the model ended by itself. Raises as `take`."""
        self._outbox.release_halves()
        if stop_reason:
            self._outbox.add(SetMeta(_raw(stop_reason=stop_reason)))

    def _grow(self, kind: str, text: str) -> None:
        if not text:
            return
        if self._open != kind:
            self._begin(kind, text="")
        self._outbox.grow(self._parts - 1, text)

    def _begin(self, kind: str, **fields: Any) -> int:
        if self._parts == PARTS_MAX:
            raise AnswerTooLarge
        index = self._parts
        self._outbox.add(BeginPart(index, _raw(type=kind, **fields)))
        self._parts += 1
        self._open = kind
        return index


def _raw(**fields: Any) -> JsonObject:
    return {name: Raw(encode(value)) for name, value in fields.items()}
