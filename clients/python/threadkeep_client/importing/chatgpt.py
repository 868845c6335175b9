"""ChatGPT's form: a `mapping` of nodes, each with its parent, perhaps its children, and perhaps a message.

OpenAI publishes no schema. What is read here was seen in public readers of such exports and in what their users
reported (read 2026-11-29): nodes without `children`, without `metadata`, without `author`, without times; `content`
as an object, a list, a string or nothing; `current_node` that names nothing. Threadkeep's own export of this form keeps
what the form cannot say in `metadata.threadkeep`: see `threadkeep`.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from threadkeep_client.importing import threadkeep
from threadkeep_client.importing.chatgpt_content import is_call, read_parts
from threadkeep_client.importing.draft import ROLES, Draft, Node, RefusedError, model_of, title_of
from threadkeep_client.importing.keeping import bounded, imported
from threadkeep_client.importing.times import to_ms
from threadkeep_client.wire import JsonObject, Status

_STATUSES: Final[dict[str, Status]] = {
    "finished_successfully": "complete",
    "finished_partial_completion": "stopped",
    "in_progress": "interrupted",
}
_READ: Final = frozenset({"id", "conversation_id", "title", "create_time", "mapping", "current_node"})
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


def read(value: JsonObject, source: str) -> Draft:
    """Read a conversation.

    Args:
        value: the object.
        source: its id, or what stands for it.

    Raises:
        RefusedError: It has no nodes.
    """
    mapping = value.get("mapping")
    if not isinstance(mapping, dict):
        raise RefusedError("its `mapping` is no object, so it has no messages")
    draft = Draft(form="chatgpt", source=source, created_ms=to_ms(value.get("create_time")))
    draft.title = title_of(value.get("title"), draft.notes)
    nodes = {name: node for name, node in mapping.items() if isinstance(node, dict)}
    draft.notes["nodes_dropped"] += len(mapping) - len(nodes)
    callers = _Callers(nodes, _parents(nodes))
    for name, node in nodes.items():
        draft.nodes.append(_node(name, node, callers, draft.notes))
    current = value.get("current_node")
    draft.current = current if isinstance(current, str) else None
    rest = {name: field for name, field in value.items() if name not in _READ and name != "metadata"}
    draft.metadata = imported("chatgpt", {"id": source}, rest, draft.notes)
    if threadkeep.own_of(value) is None:
        return draft
    return threadkeep.restore(draft, value["metadata"], [_own_of_node(node) for node in nodes.values()])


def _parents(nodes: dict[str, JsonObject]) -> dict[str, str | None]:
    """Each node's parent as it says itself, else as the one says that counts it among its children."""
    listed = {
        child: name
        for name, node in nodes.items()
        for child in (node["children"] if isinstance(node.get("children"), list) else [])
        if isinstance(child, str)
    }
    return {
        name: parent if isinstance(parent := node.get("parent"), str) else listed.get(name)
        for name, node in nodes.items()
    }


def _node(
    name: str,
    node: JsonObject,
    callers: _Callers,
    notes: Counter[str],
) -> Node:
    parent = callers.parents[name]
    message = node.get("message")
    if not isinstance(message, dict):
        return Node(source=name, parent=parent, is_message=False)
    author = message.get("author")
    author = author if isinstance(author, dict) else {"role": author}
    said_role = author.get("role") or message.get("role")
    role = ROLES.get(said_role) if isinstance(said_role, str) else None
    if role is None:
        notes["roles_unknown"] += 1
    extra = message.get("metadata")
    extra = extra if isinstance(extra, dict) else {}
    is_hidden = role == "system" or extra.get("is_visually_hidden_from_conversation") is True
    caller = callers.of(name) if role == "tool" else None
    parts = bounded(read_parts(message, role=role, node=name, caller=caller, notes=notes), notes)
    if not parts and not is_hidden:
        notes["empty_messages"] += 1
    content = message.get("content")
    said = message | {"content_type": content.get("content_type") if isinstance(content, dict) else None}
    facts = {
        "id": name,
        "role_unknown": True if role is None else None,
        "role": said_role if role is None else None,
        "name": author.get("name"),
        **{field: said.get(field) for field, usual in _USUAL.items() if said.get(field) != usual},
    }
    status = message.get("status")
    return Node(
        source=name,
        parent=parent,
        time_ms=to_ms(message.get("create_time")),
        is_hidden=is_hidden,
        # Nobody said who wrote it. As a user's or the system's it would carry weight that it may not have.
        role=role or "assistant",
        parts=parts,
        status=_STATUSES.get(status, "complete") if isinstance(status, str) else "complete",
        model=model_of(extra.get("model_slug")) if role == "assistant" else None,
        metadata=imported("chatgpt", facts, extra, notes, is_hidden=is_hidden),
    )


class _Callers:
    """The tool calls that tools' messages answer. Each node is looked at once, however long a chain of tools is."""

    def __init__(self, nodes: dict[str, JsonObject], parents: dict[str, str | None]) -> None:
        self.parents = parents
        self._nodes = nodes
        self._found: dict[str, str | None] = {}

    def of(self, name: str) -> str | None:
        """The call that a tool's message answers: the nearest above it."""
        walked = [name]
        self._found[name] = None  # so it stays in a ring
        above = self.parents[name]
        found: str | None = None
        while above is not None and above in self._nodes:
            message = self._nodes[above].get("message")
            if isinstance(message, dict):
                if is_call(message):
                    found = above
                    break
                author = message.get("author")
                if not isinstance(author, dict) or author.get("role") != "tool":
                    break
            if above in self._found:
                found = self._found[above]
                break
            self._found[above] = None
            walked.append(above)
            above = self.parents[above]
        self._found.update(dict.fromkeys(walked, found))
        return found


def _own_of_node(node: JsonObject) -> JsonObject | None:
    message = node.get("message")
    return threadkeep.own_of(message) if isinstance(message, dict) else None
