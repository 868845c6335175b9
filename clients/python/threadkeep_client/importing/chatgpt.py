"""ChatGPT's form: a `mapping` of nodes, each with its parent, perhaps its children, and perhaps a message.

OpenAI publishes no schema. What is read here was seen in public readers of such exports and in what their users
reported (read 2026-11-29): nodes without `children`, without `metadata`, without `author`, without times; `content`
as an object, a list, a string or nothing; `current_node` that names nothing. Threadkeep's own export of this form keeps
what the form cannot say in `metadata.threadkeep`: see `threadkeep`.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

from threadkeep_client.importing import threadkeep
from threadkeep_client.importing.chatgpt_content import is_call, read_parts
from threadkeep_client.importing.draft import Content, Draft, Node, RefusedError
from threadkeep_client.importing.keeping import PARTS_BYTES_MAX, drafted, role_of, said_by
from threadkeep_client.importing.spans import Span
from threadkeep_client.importing.times import to_ms
from threadkeep_client.importing.values import Outline, Values, changed
from threadkeep_client.wire import JsonObject, Status

_STATUSES: Final[dict[str, Status]] = {
    "finished_successfully": "complete",
    "finished_partial_completion": "stopped",
    "in_progress": "interrupted",
}
_READ: Final = frozenset({"id", "conversation_id", "metadata"})
_USUAL: Final[JsonObject] = {
    "content_type": "text",
    "status": "finished_successfully",
    "recipient": "all",
    "channel": None,
    "end_turn": None,
    "weight": 1.0,
    "update_time": None,
}
"""What goes without saying, and is not kept."""


def read(path: Path, span: Span, source: str) -> Draft:
    """Read a conversation.

    Args:
        path: of the file.
        span: where the object lies.
        source: its id, or what stands for it.

    Raises:
        RefusedError: It has no nodes, or is no JSON.
    """
    outline = Outline.read(path, span, "mapping", "{", each_bytes_max=PARTS_BYTES_MAX)
    if outline.values is None:
        raise RefusedError("its `mapping`, which holds the messages, must be an object")
    notes: Counter[str] = Counter()
    nodes, fields = _Nodes(outline.values, outline.names), outline.fields
    draft = drafted(
        "chatgpt",
        source,
        fields,
        notes,
        title="title",
        created="create_time",
        current="current_node",
        read=_READ,
        nodes=nodes.read_all(notes),
        content_of=nodes.content_of,
    )
    if threadkeep.own_of(fields) is None:
        return draft
    return threadkeep.restore(draft, fields["metadata"], nodes.own_of)


class _Nodes:
    """The nodes of one conversation, of which one at a time is held."""

    def __init__(self, values: Values, names: list[str]) -> None:
        self._values = values
        self._names = names
        self._callers = _Callers()

    def read_all(self, notes: Counter[str]) -> list[Node]:
        """The tree that they make; what is wrong with any of them is counted."""
        nodes: list[Node] = []
        names = {name: name for name in self._names}  # so that each is held once
        listed: dict[str, str] = {}
        for place, name in enumerate(self._names):
            node, children = self._read(place, names, notes)
            if node is not None:
                nodes.append(node)
                listed |= {names[child]: name for child in children if child in names}
        for node in nodes:
            node.parent = node.parent or listed.get(node.source)
            self._callers.note_place(node)
        return nodes

    def _read(self, place: int, names: dict[str, str], notes: Counter[str]) -> tuple[Node | None, list[str]]:
        """A node, if it is one, and those that it counts among its children. What it says is let go of."""
        name, value = self._names[place], self._values[place]
        if not isinstance(value, dict):
            notes["nodes_dropped"] += 1
            return None, []
        children, parent, message = value.get("children"), value.get("parent"), value.get("message")
        parent = names.get(parent, parent) if isinstance(parent, str) else None
        node = Node(source=name, parent=parent, place=place, is_message=isinstance(message, dict))
        if isinstance(message, dict):
            node.time_ms = to_ms(message.get("create_time"))
            self._callers.note(name, message)
            _content(name, message, None, notes)
        return node, [child for child in children if isinstance(child, str)] if isinstance(children, list) else []

    def content_of(self, node: Node) -> Content:
        """What the message of a node says. Raises `RefusedError` where the file has changed."""
        return _content(node.source, self._message(node), self._callers.of(node.source), Counter())

    def own_of(self, node: Node) -> JsonObject:
        """What Threadkeep's export added to the message of a node."""
        return threadkeep.own_of(self._message(node)) or {}

    def _message(self, node: Node) -> JsonObject:
        message = self._values.object_at(node.place).get("message")
        if not isinstance(message, dict):
            raise changed()
        return message


def _content(name: str, message: JsonObject, caller: str | None, notes: Counter[str]) -> Content:
    author = message.get("author")
    author = author if isinstance(author, dict) else {"role": author}
    said_role = author.get("role") or message.get("role")
    role = role_of(said_role)
    extra = message.get("metadata")
    extra = extra if isinstance(extra, dict) else {}
    content = message.get("content")
    said = message | {"content_type": content.get("content_type") if isinstance(content, dict) else None}
    usual = {field: said.get(field) for field, usual in _USUAL.items() if said.get(field) != usual}
    status = message.get("status")
    return said_by(
        "chatgpt",
        said_role,
        read_parts(message, role=role, node=name, caller=caller if role == "tool" else None, notes=notes),
        notes,
        name=name,
        facts={"name": author.get("name"), **usual},
        source=extra,
        hides=extra.get("is_visually_hidden_from_conversation") is True,
        model=extra.get("model_slug"),
        status=_STATUSES.get(status, "complete") if isinstance(status, str) else "complete",
    )


class _Callers:
    """The tool calls that tools' messages answer. Each node is looked at once, however long a chain of tools is."""

    def __init__(self) -> None:
        self._parents: dict[str, str | None] = {}
        self._calls: set[str] = set()
        self._passed: set[str] = set()  # what may stand between a call and what answers it
        self._found: dict[str, str | None] = {}

    def note(self, name: str, message: JsonObject) -> None:
        """A message."""
        author = message.get("author")
        if is_call(message):
            self._calls.add(name)
        elif isinstance(author, dict) and author.get("role") == "tool":
            self._passed.add(name)

    def note_place(self, node: Node) -> None:
        """Where a node stands."""
        self._parents[node.source] = node.parent
        if not node.is_message:
            self._passed.add(node.source)

    def of(self, name: str) -> str | None:
        """The call that a tool's message answers: the nearest above it."""
        walked = [name]
        self._found[name] = None  # so it stays in a ring
        above = self._parents[name]
        found: str | None = None
        while above is not None and above in self._parents:
            if above in self._calls:
                found = above
            if above not in self._passed:
                break
            if above in self._found:
                found = self._found[above]
                break
            self._found[above] = None
            walked.append(above)
            above = self._parents[above]
        self._found.update(dict.fromkeys(walked, found))
        return found
