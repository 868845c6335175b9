"""Claude's form: `chat_messages` in their order, in newer exports each with its parent.

Anthropic publishes no schema; what is read here was seen in public readers of such exports (read 2026-11-29). Times
repeat and may be missing, so the order of the file decides; `text` is empty where `content` holds blocks, or the other
way round.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Final

from threadkeep_client.importing.draft import ROLES, Draft, Node, RefusedError, model_of, title_of
from threadkeep_client.importing.keeping import bounded, data_part, imported
from threadkeep_client.importing.times import to_ms
from threadkeep_client.wire import JsonObject, Part

_NO_PARENT: Final = "00000000-0000-4000-8000-000000000000"
"""What newer exports name as the parent of a first message."""
_READ: Final = frozenset({"uuid", "name", "created_at", "chat_messages", "current_leaf_message_uuid"})
_READ_OF_MESSAGE: Final = frozenset(
    {"uuid", "text", "content", "sender", "created_at", "parent_message_uuid", "attachments", "files", "files_v2"}
)


def read(value: JsonObject, source: str) -> Draft:
    """Read a conversation.

    Args:
        value: the object.
        source: its id, or what stands for it.

    Raises:
        RefusedError: It has no messages.
    """
    messages = value.get("chat_messages")
    if not isinstance(messages, list):
        raise RefusedError("its `chat_messages` is no list, so it has no messages")
    draft = Draft(form="claude", source=source, created_ms=to_ms(value.get("created_at")))
    draft.title = title_of(value.get("name"), draft.notes)
    said = {name for message in messages if isinstance(message, dict) and isinstance(name := message.get("uuid"), str)}
    names: set[str] = set()
    before: str | None = None
    for number, message in enumerate(messages):
        if not isinstance(message, dict):
            draft.notes["nodes_dropped"] += 1
            continue
        name = _name(message, number, names, said)
        names.add(name)
        draft.nodes.append(_node(name, before, message, draft.notes))
        before = name
    current = value.get("current_leaf_message_uuid")
    draft.current = current if isinstance(current, str) else None
    rest = {name: field for name, field in value.items() if name not in _READ}
    draft.metadata = imported("claude", {"id": source}, rest, draft.notes)
    return draft


def _name(message: JsonObject, number: int, taken: set[str], said: set[str]) -> str:
    """Its id; one that is missing, or said twice, goes by its place, as no other message is called."""
    name = message.get("uuid")
    if isinstance(name, str) and name and name not in taken:
        return name
    place = f"#{number}"
    while place in said or place in taken:
        place = f"#{place}"
    return place


def _node(name: str, before: str | None, message: JsonObject, notes: Counter[str]) -> Node:
    parent = message.get("parent_message_uuid", before)
    sender = message.get("sender")
    role = ROLES.get(sender) if isinstance(sender, str) else None
    if role is None:
        notes["roles_unknown"] += 1
    parts = bounded(_parts(name, message, notes), notes)
    if not parts:
        notes["empty_messages"] += 1
    facts = {
        "id": name,
        "role_unknown": True if role is None else None,
        "role": sender if role is None else None,
    }
    rest = {field: said for field, said in message.items() if field not in _READ_OF_MESSAGE}
    return Node(
        source=name,
        parent=parent if isinstance(parent, str) and parent != _NO_PARENT else None,
        time_ms=to_ms(message.get("created_at")),
        # As in ChatGPT's form: nobody said who wrote it, and an assistant's word carries the least weight.
        role=role or "assistant",
        parts=parts,
        model=model_of(message.get("model")) if role == "assistant" else None,
        metadata=imported("claude", facts, rest, notes, is_hidden=role == "system"),
        is_hidden=role == "system",
    )


def _parts(name: str, message: JsonObject, notes: Counter[str]) -> list[Part]:
    content = message.get("content")
    found: list[Part] = []
    for number, block in enumerate(content if isinstance(content, list) else [content]):
        if block is not None:
            found += _block(f"{name}.{number}", block, notes)
    text = message.get("text")
    if not any(part["type"] == "text" for part in found) and isinstance(text, str) and text:
        found.append({"type": "text", "text": text})
    for field in ("attachments", "files", "files_v2"):
        for file in files if isinstance(files := message.get(field), list) else []:
            found.append(data_part("claude", field.partition("_")[0].removesuffix("s"), file, notes))
    return found


def _block(call: str, block: Any, notes: Counter[str]) -> list[Part]:
    kind = block.get("type") if isinstance(block, dict) else None
    match kind:
        case None if isinstance(block, str):
            return [{"type": "text", "text": block}] if block else []
        case "text" if isinstance(text := block.get("text"), str):
            citations = block.get("citations")
            part: Part = {"type": "text", "text": text}
            return [part | ({"citations": citations} if citations else {})] if text else []
        case "thinking" if isinstance(text := block.get("thinking"), str):
            return [{"type": "reasoning", "text": text}] if text else []
        case "tool_use":
            said = block.get("input")
            arguments = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
            made = {"call_id": str(block.get("id") or call), "name": str(block.get("name") or "tool")}
            return [{"type": "tool_call", **made, "arguments": arguments, "state": "complete"}]
        case "tool_result":
            made = {"call_id": str(block.get("tool_use_id") or call), "output": _output(block.get("content"))}
            return [{"type": "tool_result", **made, **({"error": True} if block.get("is_error") is True else {})}]
        case _:
            return [data_part("claude", kind if isinstance(kind, str) else "content", block, notes)]


def _output(content: Any) -> str:
    """A tool's result as text: its texts where it holds nothing else, else its JSON."""
    if content is None or isinstance(content, str):
        return content or ""
    blocks = content if isinstance(content, list) else [content]
    texts = [block["text"] for block in blocks if isinstance(block, dict) and isinstance(block.get("text"), str)]
    return "\n".join(texts) if len(texts) == len(blocks) else json.dumps(content, ensure_ascii=False)
