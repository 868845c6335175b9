"""What a model is asked: a conversation in the one form from which every provider's can be written.

A tool's call and its result stand together as one value, so no prompt can hold one without the other; providers refuse
a whole conversation for that. Nor can it hold an empty text, two turns of the user's in a row, or begin with the
model's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import UNSET

from threadkeep.domain.json_values import JsonObject, encode, read_text
from threadkeep.domain.model import Message
from threadkeep.domain.ops import kind

INTERRUPTED: Final = "interrupted: the tool gave no result"
NO_OUTPUT: Final = "(no output)"
_NAME_CHARS_MAX: Final = 64
_NOT_OF_A_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")
_BETWEEN: Final = "\n\n"


class ToolUse(msgspec.Struct, frozen=True):
    """A tool's call with its result.

    Attributes:
        call_id: unique in its prompt, whatever the models of earlier answers gave: some count anew in every answer.
            Nine letters and digits, which is what the strictest provider takes (Mistral; vllm-project/vllm #9019).
        name: as every provider takes it.
        arguments: the text of a JSON object, always.
        output: never empty.
    """

    call_id: str
    name: str
    arguments: str
    output: str


class UserTurn(msgspec.Struct, frozen=True):
    """What the user said."""

    text: str


class AssistantTurn(msgspec.Struct, frozen=True):
    """What the model said, and then the tools that it called at once. One of both may be empty."""

    text: str
    uses: tuple[ToolUse, ...] = ()


Turn = UserTurn | AssistantTurn


class Prompt(msgspec.Struct, frozen=True):
    """What a model is asked."""

    system: str
    turns: tuple[Turn, ...]

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools that were called, each once."""
        uses = (use for turn in self.turns if isinstance(turn, AssistantTurn) for use in turn.uses)
        return tuple(dict.fromkeys(use.name for use in uses))


def prompt_from(messages: Iterable[Message], *, system: str = "") -> Prompt:
    """The prompt of a path, oldest message first.

    System texts are kept, behind ``system``, and joined. Reasoning, blobs and parts of other kinds are left out, as
    are results without a call; a call without a result has one that says so.
    """
    systems = [system] if system.strip() else []
    drafts: list[_Draft] = []
    waiting: dict[str, tuple[_Draft, int]] = {}
    for message in messages:
        for part in () if message.parts is UNSET else message.parts:
            match kind(part):
                case "text" if message.role == "system":
                    systems += _texts(part)
                case "text" if message.role in {"user", "assistant"}:
                    for text in _texts(part):
                        _say(drafts, message.role, text)
                case "tool_call" if message.role == "assistant":
                    _call(drafts, waiting, part)
                case "tool_result":
                    _answer(waiting, part)
    return Prompt(_BETWEEN.join(systems), tuple(_turns(drafts)))


def object_text(arguments: str) -> str | None:
    """A tool call's arguments as the text of a JSON object; None where they are none. Nothing at all means ``{}``."""
    if not arguments.strip():
        return "{}"
    try:
        return arguments if isinstance(msgspec.json.decode(arguments), dict) else None
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return None


class _Draft(msgspec.Struct):
    """A turn in the making; of the assistant's uses, those still without an output hold `INTERRUPTED`."""

    role: str
    texts: list[str] = []
    uses: list[ToolUse] = []
    is_answered: bool = False


def _texts(part: JsonObject) -> list[str]:
    """The part's text, unless it is blank: Bedrock refuses those (langchain-ai/langchainjs PR #8618)."""
    text = read_text(part.get("text"))
    return [text] if text is not None and text.strip() else []


def _say(drafts: list[_Draft], role: str, text: str) -> None:
    if not drafts or drafts[-1].role != role or drafts[-1].uses:
        drafts.append(_Draft(role))
    drafts[-1].texts.append(text)


def _call(drafts: list[_Draft], waiting: dict[str, tuple[_Draft, int]], part: JsonObject) -> None:
    if not drafts or drafts[-1].role != "assistant" or drafts[-1].is_answered:
        drafts.append(_Draft("assistant"))
    draft = drafts[-1]
    waiting[read_text(part.get("call_id")) or ""] = (draft, len(draft.uses))
    name = _NOT_OF_A_NAME.sub("_", read_text(part.get("name")) or "unnamed")[:_NAME_CHARS_MAX]
    told = _as_text(part, "arguments")
    # A model that reads its own malformed call in a form that parses can mend it; left as it is, it would poison
    # every later turn, since servers parse what they are sent.
    arguments = object_text(told) or encode({"malformed_arguments": told}).decode()
    draft.uses.append(ToolUse("", name, arguments, INTERRUPTED))


def _answer(waiting: dict[str, tuple[_Draft, int]], part: JsonObject) -> None:
    draft, index = waiting.pop(read_text(part.get("call_id")) or "", (None, 0))
    if draft is not None:
        output = _as_text(part, "output")
        failure = _as_text(part, "error")
        told = _BETWEEN.join(text for text in (output, failure and f"error: {failure}") if text.strip())
        draft.uses[index] = msgspec.structs.replace(draft.uses[index], output=told or NO_OUTPUT)
        draft.is_answered = True


def _as_text(part: JsonObject, field: str) -> str:
    value = part.get(field)
    if value is None or bytes(value) == b"null":
        return ""
    text = read_text(value)
    return bytes(value).decode() if text is None else text


def _turns(drafts: list[_Draft]) -> Iterator[Turn]:
    """In order, without what stands before the first of the user's; calls numbered through."""
    first = next((at for at, draft in enumerate(drafts) if draft.role == "user"), len(drafts))
    number = 0
    for draft in drafts[first:]:
        if draft.role == "user":
            yield UserTurn(_BETWEEN.join(draft.texts))
            continue
        uses = []
        for use in draft.uses:
            uses.append(msgspec.structs.replace(use, call_id=f"call{number:05d}"))
            number += 1
        yield AssistantTurn(_BETWEEN.join(draft.texts), tuple(uses))
