"""Threadkeep's own forms: JSON Lines, a conversation and then its messages; and what it adds to ChatGPT's form.

Both hold the objects of the protocol (section 5), so they are read as they are: what is wrong is refused, not repaired.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final, cast, get_args

from threadkeep_client.ids import ID_PATTERN
from threadkeep_client.importing.draft import Draft, Node, RefusedError, model_of, title_of
from threadkeep_client.importing.times import to_ms
from threadkeep_client.wire import JsonObject, Part, Role, Status

MARK: Final = "threadkeep"
"""The field of `metadata` that holds, in ChatGPT's form, what that form cannot say."""
_ROLES: Final = get_args(Role)
_STATUSES: Final = get_args(Status)


def read(values: list[JsonObject]) -> Draft:
    """Read a conversation, which comes first, its messages, and what is told of damage. Other lines are passed over.

    Raises:
        RefusedError: Something is not as the protocol has it.
    """
    head, *lines = values
    draft = _head(head)
    draft.nodes = [_node(line) for line in lines if line["type"] == "message"]
    _note_damage([line for line in lines if line["type"] == "damaged"], draft.notes)
    _check(draft)
    return draft


def own_of(value: JsonObject) -> JsonObject | None:
    """What Threadkeep's export added to an object of ChatGPT's form; None where it did not write it."""
    metadata = value.get("metadata")
    own = metadata.get(MARK) if isinstance(metadata, dict) else None
    return own if isinstance(own, dict) else None


def restore(draft: Draft, metadata: JsonObject, messages: list[JsonObject | None]) -> Draft:
    """A conversation that Threadkeep exported in ChatGPT's form, as it was.

    Args:
        draft: as ChatGPT's form tells it.
        metadata: of the conversation, with what was added to it.
        messages: what was added to each node's message, in the order of `draft.nodes`.

    Raises:
        RefusedError: Something is not as the protocol has it.
    """
    restored = _head({"id": draft.source, "title": draft.title} | metadata[MARK])
    restored.current = None  # a conversation of our own has the leaf that its ids say
    by_source = {node.source: node for node in draft.nodes}
    for node, added in zip(draft.nodes, messages, strict=True):
        if not node.is_message:
            continue
        said: JsonObject = {
            "id": node.source,
            "parent": _message_above(node, by_source),
            "role": node.role,
            "parts": node.parts,
            "status": node.status,
            "model": node.model,
        }
        restored.nodes.append(_node(said | (added or {})))
    damaged = metadata.get("damaged")
    _note_damage(damaged if isinstance(damaged, list) else [], restored.notes)
    _check(restored)
    return restored


def _message_above(node: Node, by_source: dict[str, Node]) -> str | None:
    seen = {node.source}
    above = by_source.get(node.parent or "")
    while above is not None and not above.is_message and above.source not in seen:
        seen.add(above.source)
        above = by_source.get(above.parent or "")
    return above.source if above is not None and above.is_message else None


def _head(head: JsonObject) -> Draft:
    source = head.get("id")
    if not isinstance(source, str) or not ID_PATTERN.fullmatch(source):
        raise RefusedError("the conversation's `id` is none of Threadkeep's")
    draft = Draft(form="threadkeep", source=source, keeps_ids=True, created_ms=to_ms(head.get("created_at")))
    draft.title = title_of(head.get("title"), draft.notes)
    draft.metadata = _object("metadata", head.get("metadata"))
    days = head.get("retention_days")
    draft.retention_days = days if isinstance(days, int) and not isinstance(days, bool) else None
    return draft


def _node(message: JsonObject) -> Node:
    source, parent, role = message.get("id"), message.get("parent"), message.get("role")
    status, parts = message.get("status", "complete"), message.get("parts")
    if not isinstance(source, str) or not ID_PATTERN.fullmatch(source):
        raise RefusedError("a message's `id` is none of Threadkeep's")
    if role not in _ROLES or status not in _STATUSES:
        raise RefusedError(f"the `role` or `status` of message {source} is none of the protocol's")
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise RefusedError(f"message {source} comes without its `parts`")
    if parent is not None and not isinstance(parent, str):
        raise RefusedError(f"the `parent` of message {source} is no id")
    reply = message.get("reply")
    return Node(
        source=source,
        parent=parent,
        role=cast("Role", role),
        status=cast("Status", status),
        parts=cast("list[Part]", parts),
        model=model_of(message.get("model")),
        metadata=_object("metadata", message.get("metadata")),
        usage=_object("usage", message["usage"]) if message.get("usage") is not None else None,
        error=_object("error", message["error"]) if message.get("error") is not None else None,
        reply=reply if isinstance(reply, str) and ID_PATTERN.fullmatch(reply) else None,
    )


def _object(name: str, value: Any) -> JsonObject:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise RefusedError(f"`{name}` is no object")
    return cast("JsonObject", value)


def _note_damage(stretches: list[Any], notes: Counter[str]) -> None:
    """What no store could give when it was exported: messages under it become roots."""
    for stretch in stretches:
        count = stretch.get("count") if isinstance(stretch, dict) else None
        notes["damaged"] += count if isinstance(count, int) and count > 0 else 1


def _check(draft: Draft) -> None:
    """A message comes after its parent, and once."""
    names = {node.source for node in draft.nodes}
    if len(names) < len(draft.nodes):
        raise RefusedError("a message's `id` stands twice")
    for node in draft.nodes:
        is_missing = node.parent not in names and not draft.notes["damaged"]
        if node.parent is not None and (is_missing or node.parent >= node.source):
            raise RefusedError(f"the parent of message {node.source} is not among the messages before it")
