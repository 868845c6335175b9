"""From the chunks of a chat completion to events: one slot a tool call, whatever the server counts by."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from threadkeep.responder.answers import (
    End,
    Ended,
    Event,
    ReasoningPiece,
    TextPiece,
    ToolCallBegun,
    ToolCallEnded,
    ToolCallPiece,
    Usage,
    code_from,
)
from threadkeep.responder.openai_errors import failure_from


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: Any = None


class _ToolCall(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(msgspec.Struct):
    """``reasoning_content`` is DeepSeek's and vLLM's, ``reasoning`` Ollama's and OpenRouter's; OpenAI shows none."""

    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Chunk(msgspec.Struct):
    choices: list[_Choice] = []
    usage: _Usage | None = None
    error: Any = None


class _Slot(msgspec.Struct):
    """A tool call that grows."""

    call: int
    id: str | None


class ChunkReader:
    """Takes the chunks of one answer in order."""

    def __init__(self) -> None:
        self._finish_reason: str | None = None
        self._slots: dict[int, _Slot] = {}
        self._calls = 0

    def take(self, chunk: object) -> Iterator[Event]:
        """The events of one chunk, as decoded JSON.

        Not decoded by msgspec, which refuses the half of a surrogate pair that a chunk may end with.

        Raises:
            msgspec.ValidationError: it is no chunk.
        """
        read = msgspec.convert(chunk, _Chunk)
        if read.error is not None:
            yield failure_from({"error": read.error})
            return
        for choice in read.choices[:1]:
            delta = choice.delta or _Delta()
            if reasoning := delta.reasoning_content or delta.reasoning:
                yield ReasoningPiece(reasoning)
            for text in (delta.content, delta.refusal):
                if text:
                    yield TextPiece(text)
            for fragment in delta.tool_calls or ():
                yield from self._take_call(fragment)
            if choice.finish_reason is not None:
                self._finish_reason = choice.finish_reason
                yield from self._end_calls(*self._slots)
        if read.usage is not None:
            yield Usage(read.usage.prompt_tokens, read.usage.completion_tokens)

    def end(self, otherwise: End) -> End:
        """How the answer ended, now that nothing more comes: as its last chunk said, else otherwise."""
        return otherwise if self._finish_reason is None else Ended(code_from(self._finish_reason, "other"))

    def _take_call(self, fragment: _ToolCall) -> Iterator[Event]:
        """One fragment of a call.

        By its index, but an id that changes there begins another call (servers that give every call the index 0); by
        its id alone where there is no index; and where there is neither, it belongs to the newest.
        """
        index = fragment.index if fragment.index is not None else self._index_of(fragment.id)
        slot = self._slots.get(index)
        if slot is not None and fragment.id and slot.id and fragment.id != slot.id:
            yield from self._end_calls(index)
            slot = None
        function = fragment.function or _Function()
        if slot is None:
            slot = self._slots[index] = _Slot(self._calls, fragment.id or None)
            self._calls += 1
            yield ToolCallBegun(slot.call, fragment.id or f"call_{slot.call}", function.name or "")
        arguments = function.arguments
        if arguments not in (None, ""):
            # A string in pieces; some servers give the whole object at once instead.
            yield ToolCallPiece(slot.call, arguments if isinstance(arguments, str) else json.dumps(arguments))

    def _index_of(self, identifier: str | None) -> int:
        known = [index for index, slot in self._slots.items() if identifier in {None, "", slot.id}]
        return known[-1] if known else max(self._slots, default=-1) + 1

    def _end_calls(self, *indices: int) -> Iterator[Event]:
        for index in indices:
            yield ToolCallEnded(self._slots.pop(index).call)
