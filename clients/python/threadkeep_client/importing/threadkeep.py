"""Threadkeep's own forms: JSON Lines, a conversation and then its messages; and what it adds to ChatGPT's form.

Both hold the objects of the protocol (section 5), so they are read as they are: what is wrong is refused, not repaired.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast, get_args

from threadkeep_client.frames import holds_halves
from threadkeep_client.ids import ID_PATTERN
from threadkeep_client.importing.draft import Content, Draft, Node, RefusedError, model_of, title_of
from threadkeep_client.importing.keeping import JSON_DEPTH_MAX, PARTS_BYTES_MAX, is_deep
from threadkeep_client.importing.spans import Places
from threadkeep_client.importing.times import to_ms
from threadkeep_client.importing.values import LEFT_OUT, Values
from threadkeep_client.wire import JsonObject, Part, Role, Status

MARK: Final = "threadkeep"
"""The field of `metadata` that holds, in ChatGPT's form, what that form cannot say."""
_ROLES: Final = get_args(Role)
_STATUSES: Final = get_args(Status)
_AN_ID: Final = "one of Threadkeep's: a UUID of version 7, in lower case"


def read(path: Path, places: Places) -> Draft:
    """Read a conversation, which comes first, its messages, and what is told of damage. Other lines are passed over.

    Raises:
        RefusedError: Something is not as the protocol has it, or no JSON.
    """
    values = Values(path, places, PARTS_BYTES_MAX)
    draft = _head(values[0], lambda node: _content(values.object_at(node.place)))
    damaged: list[JsonObject] = []

    def read_line(place: int) -> Node | None:  # what the message says is let go of here
        line = values[place]
        if line["type"] == "damaged":
            damaged.append(line)
        return _node(line, place, draft.notes) if line["type"] == "message" else None

    draft.nodes = [node for node in map(read_line, range(1, len(values))) if node is not None]
    _note_damage(damaged, draft.notes)
    _check(draft)
    return draft


def own_of(value: JsonObject) -> JsonObject | None:
    """What Threadkeep's export added to an object of ChatGPT's form; None where it did not write it."""
    metadata = value.get("metadata")
    own = metadata.get(MARK) if isinstance(metadata, dict) else None
    return own if isinstance(own, dict) else None


def restore(draft: Draft, metadata: JsonObject, own_of_node: Callable[[Node], JsonObject]) -> Draft:
    """A conversation that Threadkeep exported in ChatGPT's form, as it was.

    Args:
        draft: as ChatGPT's form tells it.
        metadata: of the conversation, with what was added to it.
        own_of_node: reads what was added to the message of a node.

    Raises:
        RefusedError: Something is not as the protocol has it.
    """
    by_source = {node.source: node for node in draft.nodes}

    def said(node: Node) -> JsonObject:
        content = draft.content_of(node)
        told: JsonObject = {
            "id": node.source,
            "parent": _message_above(node, by_source),
            "role": content.role,
            "parts": content.parts,
            "status": content.status,
            "model": content.model,
        }
        return told | own_of_node(node)

    # A conversation of our own has the leaf that its ids say: what ChatGPT's form names as the current one is that.
    restored = _head(
        {"id": draft.source, "title": draft.title} | metadata[MARK],
        lambda node: _content(said(draft.nodes[node.place])),
    )
    restored.nodes = [
        _node(said(node), place, restored.notes) for place, node in enumerate(draft.nodes) if node.is_message
    ]
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


def _head(head: JsonObject, content_of: Callable[[Node], Content]) -> Draft:
    source = head.get("id")
    if not isinstance(source, str) or not ID_PATTERN.fullmatch(source):
        raise RefusedError(f"the conversation's `id` must be {_AN_ID}")
    notes: Counter[str] = Counter(halves_replaced=holds_halves(head))
    days = head.get("retention_days")
    return Draft(
        form="threadkeep",
        source=source,
        title=title_of(head.get("title"), notes),
        created_ms=to_ms(head.get("created_at")),
        content_of=content_of,
        metadata=_object("metadata", head.get("metadata"), "the conversation"),
        retention_days=days if isinstance(days, int) and not isinstance(days, bool) else None,
        keeps_ids=True,
        notes=notes,
    )


def _node(message: JsonObject, place: int, notes: Counter[str]) -> Node:
    source, parent = message.get("id"), message.get("parent")
    if not isinstance(source, str) or not ID_PATTERN.fullmatch(source):
        raise RefusedError(f"the `id` of each message must be {_AN_ID}")
    content = _content(message)
    notes["halves_replaced"] += holds_halves(message)
    if parent is not None and not isinstance(parent, str):
        raise RefusedError(f"the `parent` of message {source} must be the id of another message, or null")
    reply = message.get("reply")
    return Node(
        source=source,
        parent=parent,
        place=place,
        reply=reply if isinstance(reply, str) and ID_PATTERN.fullmatch(reply) else None,
        has_end=content.usage is not None or content.error is not None,
    )


def _content(message: JsonObject) -> Content:
    source, role, status = message.get("id"), message.get("role"), message.get("status", "complete")
    parts = message.get("parts")
    for name, said, known in (("role", role, _ROLES), ("status", status, _STATUSES)):
        if said not in known:
            raise RefusedError(f"the `{name}` of message {source} must be one of {', '.join(known)}")
    if parts is LEFT_OUT:
        raise RefusedError(f"the `parts` of message {source} take more than {PARTS_BYTES_MAX:,} bytes")
    _check_depth("parts", parts, f"message {source}")
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise RefusedError(f"the `parts` of message {source} must be a list of objects")
    of = f"message {source}"
    return Content(
        role=cast("Role", role),
        status=cast("Status", status),
        parts=cast("list[Part]", parts),
        model=model_of(message.get("model")),
        metadata=_object("metadata", message.get("metadata"), of),
        usage=_object("usage", message["usage"], of) if message.get("usage") is not None else None,
        error=_object("error", message["error"], of) if message.get("error") is not None else None,
    )


def _object(name: str, value: Any, of: str) -> JsonObject:
    if value is None:
        return {}
    _check_depth(name, value, of)
    if not isinstance(value, dict):
        raise RefusedError(f"the `{name}` of {of} must be an object")
    return cast("JsonObject", value)


def _check_depth(name: str, value: Any, of: str) -> None:
    if is_deep(value, JSON_DEPTH_MAX):
        raise RefusedError(f"the `{name}` of {of} must not be nested so deeply")


def _note_damage(stretches: list[Any], notes: Counter[str]) -> None:
    """What no store could give when it was exported: messages under it become roots."""
    for stretch in stretches:
        count = stretch.get("count") if isinstance(stretch, dict) else None
        notes["damaged"] += count if isinstance(count, int) and count > 0 else 1


def _check(draft: Draft) -> None:
    """A message comes after its parent, and once."""
    names = {node.source for node in draft.nodes}
    if len(names) < len(draft.nodes):
        raise RefusedError("two messages have the same `id`")
    for node in draft.nodes:
        is_missing = node.parent not in names and not draft.notes["damaged"]
        if node.parent is not None and (is_missing or node.parent >= node.source):
            raise RefusedError(f"the parent of message {node.source} is not among the messages before it")
