"""A conversation with all that a file may have to hold, for the tests of each form."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from msgspec import Raw

from tests.support.conversations import NOW_MS, awkward_object, conversation, message
from threadkeep.domain import ids
from threadkeep.domain.archive import Damaged
from threadkeep.domain.json_values import encode, read_object
from threadkeep.domain.model import Conversation, ConversationKey, Message
from threadkeep.domain.ops import Parts
from threadkeep.exporting import FORMS, Entry, Form

TITLE: Final = 'Reise nach "Kyōto" 🎨'


def parts(*values: dict[str, Any]) -> Parts:
    """Parts as they lie in a store."""
    return tuple(read_object(json.dumps(value, ensure_ascii=False).encode()) for value in values)


class Story:
    """A question, two answers to it, and a turn with tools under the second.

    Attributes:
        messages: in id order.
    """

    def __init__(self) -> None:
        self.head: Conversation = conversation(title=TITLE, metadata=awkward_object(), retention_days=30)
        self._key = ConversationKey("acme", self.head.id)
        self._ms = NOW_MS
        self.messages: list[Message] = []
        self.question = self.add(None, "user", {"type": "text", "text": "Wohin?\n\n# kein Titel"})
        self.first = self.add(self.question, "assistant", {"type": "text", "text": "Osaka"}, model="model-1")
        self.second = self.add(
            self.question,
            "assistant",
            {"type": "reasoning", "text": "hm\nhm"},
            {
                "type": "tool_call",
                "call_id": "c1",
                "name": "find",
                "arguments": '{"q":"```"}',
                "state": "complete",
            },
            model="model-2",
            status="stopped",
            usage={"output_tokens": Raw(b"7")},
            reply=ids.mint(NOW_MS),
        )
        self.tool = self.add(
            self.second,
            "tool",
            {"type": "tool_result", "call_id": "c1", "output": "a\0b ````"},
            metadata=awkward_object(),
        )
        self.last = self.add(
            self.tool,
            "assistant",
            {"type": "text", "text": "Nimm den Zug."},
            {"type": "data", "rows": [1, 1.0, {"x": None}]},
            {"type": "blob", "media_type": "image/png", "bytes": 3, "sha256": "ab", "ref": "r"},
            status="failed",
            error={"code": Raw(b'"overloaded"')},
        )

    def add(self, parent: Message | None, role: str, *said: dict[str, Any], **fields: Any) -> Message:
        """A message a millisecond later."""
        self._ms += 1
        new = message(
            self._key,
            parts(*said),
            now_ms=self._ms,
            role=role,
            parent=None if parent is None else parent.id,
            **fields,
        )
        self.messages.append(new)
        return new


def written(form: Form, head: Conversation, entries: Iterable[Entry]) -> bytes:
    """A file of one conversation, whose entries come in id order."""
    given = list(entries) if form.oldest_first else list(entries)[::-1]
    return form.start() + b"".join(form.conversation(head, given, is_first=True)) + form.end()


def damaged(one: Message, other: Message) -> Damaged:
    """Two messages and all between cannot be read."""
    return Damaged(one.id, other.id, 2)


def as_json(value: object) -> Any:
    """A value of ours as a reader of JSON sees it, numbers as they were written."""
    return json.loads(encode(value), parse_float=str, parse_int=str)


__all__ = ["FORMS", "TITLE", "Story", "as_json", "damaged", "parts", "written"]
