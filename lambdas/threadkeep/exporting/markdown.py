"""Markdown, for people: every branch in the order in which it was written. It is not read back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import UNSET

from threadkeep.domain import ids, times
from threadkeep.domain.archive import Damaged
from threadkeep.domain.json_values import JsonObject, encode, read_text
from threadkeep.domain.model import Conversation, Message
from threadkeep.domain.ops import kind
from threadkeep.exporting.form import Entry, parts_of

_TICKS: Final = re.compile(r"`+")


class Markdown:
    """`Form`: CommonMark. Texts stand as they were written, all else in code blocks."""

    suffix: Final = "md"
    oldest_first: Final = True

    def start(self) -> bytes:
        """See `Form`."""
        return b""

    def conversation(self, conversation: Conversation, entries: Iterable[Entry], *, is_first: bool) -> Iterator[bytes]:
        """See `Form`. A message that does not follow the one above it says which it follows."""
        title = " ".join((conversation.title or "").split()) or "Conversation"
        between = "" if is_first else "---\n\n"
        yield _bytes(f"{between}# {title}\n\nBegun {conversation.created_at}\n\n")
        above: str | None = None
        damaged: list[Damaged] = []
        for entry in entries:
            if isinstance(entry, Damaged):
                damaged.append(entry)
                continue
            yield _bytes(_heading(entry, above))
            for part in parts_of(entry):
                yield _bytes(_block(part) + "\n\n")
            above = entry.id
        for entry in damaged:
            yield _bytes(
                f"*{entry.count} messages could not be read, from {_time(entry.first)} to {_time(entry.last)}.*\n\n"
            )

    def end(self) -> bytes:
        """See `Form`."""
        return b""


def _heading(message: Message, above: str | None) -> str:
    facts = [message.role.capitalize(), message.created_at]
    if message.model is not UNSET:
        facts.insert(1, message.model)
    notes = []
    if message.parent != above:
        notes.append("begins anew" if message.parent is None else f"follows the message of {_time(message.parent)}")
    if message.status != "complete":
        notes.append(message.status)
    text = f"## {' · '.join(' '.join(fact.split()) for fact in facts)}\n\n"
    text += f"*{', '.join(notes)}*\n\n" if notes else ""
    return text if message.error is UNSET else text + _code(encode(message.error).decode(), "json") + "\n\n"


def _time(identifier: str) -> str:
    return times.to_rfc3339(ids.time_ms(identifier))


def _block(part: JsonObject) -> str:
    match kind(part):
        case "text" if (text := read_text(part.get("text"))) is not None:
            return text
        case "reasoning" if (text := read_text(part.get("text"))) is not None:
            return "\n".join(f"> {line}" for line in ["*Reasoning*", "", *text.split("\n")])
        case "tool_call" if (arguments := read_text(part.get("arguments"))) is not None:
            return f"Tool call {_span(read_text(part.get('name')) or '')}\n\n{_code(arguments, 'json')}"
        case "tool_result" if (output := read_text(part.get("output"))) is not None and "error" not in part:
            return f"Tool result\n\n{_code(output)}"
        case _:
            return _code(encode(part).decode(), "json")


def _code(text: str, language: str = "") -> str:
    """A fenced block that nothing in the text can end."""
    fence = "`" * max(3, _longest_ticks(text) + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _span(text: str) -> str:
    fence = "`" * (_longest_ticks(text) + 1)
    return f"{fence} {' '.join(text.split())} {fence}"


def _longest_ticks(text: str) -> int:
    return max((len(run) for run in _TICKS.findall(text)), default=0)


def _bytes(text: str) -> bytes:
    """UTF-8. U+0000 has no place in Markdown: its readers show U+FFFD (CommonMark 0.31, section 2.3)."""
    return text.replace("\0", "\ufffd").encode()
