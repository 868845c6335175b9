"""ChatGPT's form, which many tools read: an array of conversations, each a mapping of nodes.

OpenAI publishes no schema of it; the fields are those that public readers of such exports ask for (seen 2026-11-29).
What it has no place for stands in ``metadata.threadkeep``, so that an import gives the same conversation again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw

from threadkeep.domain import ids, times
from threadkeep.domain.archive import Damaged
from threadkeep.domain.json_values import JsonObject, encode, read_text
from threadkeep.domain.model import Conversation, Message
from threadkeep.domain.ops import kind
from threadkeep.exporting.form import Entry, parts_of

_TEXT_FIELDS: Final = {"type", "text"}


class ChatGPT:
    """`Form`: nodes newest first, since a node names its children, and these are younger."""

    suffix: Final = "json"
    oldest_first: Final = False

    def start(self) -> bytes:
        """See `Form`."""
        return b"[\n"

    def conversation(self, conversation: Conversation, entries: Iterable[Entry], *, is_first: bool) -> Iterator[bytes]:
        """See `Form`. It holds the ids of those alone whose parents are still to come."""
        facts: dict[str, Any] = {
            "id": conversation.id,
            "conversation_id": conversation.id,
            "title": conversation.title,
            "create_time": _seconds(times.from_rfc3339(conversation.created_at)),
        }
        yield (b"" if is_first else b",\n") + encode(facts)[:-1] + b',"mapping":{'
        left = _Left.of(conversation)
        newest: str | None = None
        damaged: list[Damaged] = []
        children: dict[str, list[str]] = {}
        for entry in entries:
            if isinstance(entry, Damaged):
                damaged.append(entry)
                continue
            if entry.parent is not None:
                children.setdefault(entry.parent, []).append(entry.id)
            below = children.pop(entry.id, [])
            yield _node(entry.id, entry.parent, below, _message(entry), is_first=newest is None)
            newest = newest or entry.id
            left.meet(entry.id)
        # Whatever nobody was met for could not be read: its place stays, so that the tree is whole.
        for parent, below in children.items():
            yield _node(parent, None, below, None, is_first=False)
        own: dict[str, Any] = {"threadkeep": conversation}
        if damaged:
            own["damaged"] = damaged
        last = max([one.last for one in damaged] + ([] if newest is None else [newest]), default=None)
        # `active_at` is to the minute, and of whatever was done: the newest message's own time is what readers sort by.
        updated_ms = times.from_rfc3339(conversation.created_at) if newest is None else ids.time_ms(newest)
        current = left.node(last) or newest
        facts = {"update_time": _seconds(updated_ms), "current_node": current, "metadata": own}
        yield b"}," + encode(facts)[1:]

    def end(self) -> bytes:
        """See `Form`."""
        return b"\n]\n"


@dataclass(slots=True)
class _Left:
    """Where the reader of an imported conversation had left it, as its import noted.

    Attributes:
        current: the message.
        until: the newest message of the import: once a newer one stands there, its reader is elsewhere.
        is_there: whether the message is in the file.
    """

    current: str | None
    until: str | None
    is_there: bool = False

    @classmethod
    def of(cls, conversation: Conversation) -> _Left:
        metadata = conversation.metadata
        return cls(current=read_text(metadata.get("current_node")), until=read_text(metadata.get("newest_imported")))

    def meet(self, identifier: str) -> None:
        """A message of the file."""
        self.is_there = self.is_there or identifier == self.current

    def node(self, newest: str | None) -> str | None:
        """The message, if that is still where to begin; `newest` is that of the conversation, readable or not."""
        if not self.is_there or newest is None or self.until is None or newest > self.until:
            return None
        return self.current


def _node(
    identifier: str, parent: str | None, below: list[str], message: dict[str, Any] | None, *, is_first: bool
) -> bytes:
    node = {"id": identifier, "parent": parent, "children": below[::-1], "message": message}
    return (b"\n" if is_first else b",\n") + encode(identifier) + b":" + encode(node)


def _message(message: Message) -> dict[str, Any]:
    parts = parts_of(message)
    # Readers of this form take a tool's text for a result, and leave empty texts out.
    said = message.role != "tool" and all(_is_plain(part) for part in parts)
    own = msgspec.structs.replace(message, parts=UNSET) if said else message
    model = {} if message.model is UNSET else {"model_slug": message.model}
    return {
        "id": message.id,
        "author": {"role": message.role},
        "create_time": _seconds(ids.time_ms(message.id)),
        "content": {"content_type": "text", "parts": [part["text"] for part in parts if _is_text(part)]},
        "status": "finished_successfully" if message.status == "complete" else "finished_partial_completion",
        "metadata": {**model, "threadkeep": own},
    }


def _is_plain(part: JsonObject) -> bool:
    return _is_text(part) and part.keys() == _TEXT_FIELDS and bytes(part["text"]) != b'""'


def _is_text(part: JsonObject) -> bool:
    return kind(part) == "text" and bytes(part.get("text", b""))[:1] == b'"'


def _seconds(ms: int) -> Raw:
    return Raw(f"{ms // 1_000}.{ms % 1_000:03d}".encode())
