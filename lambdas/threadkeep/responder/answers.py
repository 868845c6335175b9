"""What a model says, as a typed stream of events, whoever provides it.

A stream ends with exactly one of `Ended`, `Failed` and `Cut`. None of them carries a provider's own sentences: those
quote what they were asked, and what is stored of an error must not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Protocol

import msgspec

from threadkeep.responder.prompt import Prompt

_CODE: Final = re.compile(r"[A-Za-z0-9_.:/-]{1,64}\Z")


class TextPiece(msgspec.Struct, frozen=True):
    """The answer's text goes on. May end with a half surrogate, whose other half then begins the next piece."""

    text: str


class ReasoningPiece(msgspec.Struct, frozen=True):
    """The model's reasoning goes on."""

    text: str


class ToolCallBegun(msgspec.Struct, frozen=True):
    """The model begins to call a tool. ``call`` counts the calls of this answer from 0; ``call_id`` is its own name."""

    call: int
    call_id: str
    name: str


class ToolCallPiece(msgspec.Struct, frozen=True):
    """The arguments of a call go on. Calls may go on in turns."""

    call: int
    arguments: str


class ToolCallEnded(msgspec.Struct, frozen=True):
    """The arguments of a call are whole."""

    call: int


class Usage(msgspec.Struct, frozen=True):
    """What the provider counted, for the whole answer."""

    input_tokens: int
    output_tokens: int


class Ended(msgspec.Struct, frozen=True):
    """The model has ended by itself; ``reason`` is the provider's word for why (``stop``, ``length``, …)."""

    reason: str


class Failed(msgspec.Struct, frozen=True):
    """The provider gave an error. ``retryable``: the same question, asked again, may be answered."""

    code: str
    retryable: bool


class Cut(msgspec.Struct, frozen=True):
    """The connection to the provider broke off before the answer's end."""


End = Ended | Failed | Cut
Event = TextPiece | ReasoningPiece | ToolCallBegun | ToolCallPiece | ToolCallEnded | Usage | End


class AnswerStream(Protocol):
    """An answer under way: iterated by one thread, cancelled by any."""

    def __iter__(self) -> Iterator[Event]:
        """The events as they come; blocks while the model is silent."""
        ...

    def cancel(self) -> None:
        """Tell the provider that nobody wants the rest. The iteration ends soon, with whatever event or none."""
        ...


class Model(Protocol):
    """Something that answers.

    Attributes:
        name: as it is recorded in the messages that it writes.
    """

    @property
    def name(self) -> str:
        """The model's name."""
        ...

    def answer(self, prompt: Prompt) -> AnswerStream:
        """Begin to answer. Does nothing before the stream is iterated."""
        ...


def code_from(told: object, otherwise: str) -> str:
    """A provider's error code, where it looks like one: one short word without spaces, never a sentence."""
    return told if isinstance(told, str) and _CODE.match(told) else otherwise
