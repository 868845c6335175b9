"""Claude's form: `chat_messages` in their order, in newer exports each with its parent.

Anthropic publishes no schema; what is read here was seen in public readers of such exports (read 2026-11-29). Times
repeat and may be missing, so the order of the file decides; `text` is empty where `content` holds blocks, or the other
way round, or says the same with a line of excuse for every block that is none of text.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, Final

from threadkeep_client.importing.draft import Content, Draft, Node, RefusedError
from threadkeep_client.importing.keeping import PARTS_BYTES_MAX, data_part, drafted, said_by
from threadkeep_client.importing.spans import Span
from threadkeep_client.importing.times import to_ms
from threadkeep_client.importing.values import LeftOut, Outline, Values
from threadkeep_client.wire import JsonObject, Part, text_of

_NO_PARENT: Final = "00000000-0000-4000-8000-000000000000"
"""What newer exports name as the parent of a first message."""
_EXCUSE: Final = re.compile(r"```\s*This block is not supported on your current device yet\.\s*```")
"""What `text` has in place of a tool's blocks, as seen in what people published of such exports (read 2026-11-30)."""
_BLANK: Final = re.compile(r"\s+")
_READ: Final = frozenset({"uuid"})
_READ_OF_MESSAGE: Final = frozenset(
    {"uuid", "text", "content", "sender", "created_at", "parent_message_uuid", "attachments", "files", "files_v2"}
)


def read(path: Path, span: Span, source: str) -> Draft:
    """Read a conversation.

    Args:
        path: of the file.
        span: where the object lies.
        source: its id, or what stands for it.

    Raises:
        RefusedError: It has no messages, or is no JSON.
    """
    outline = Outline.read(path, span, "chat_messages", "[", each_bytes_max=PARTS_BYTES_MAX)
    if outline.values is None:
        raise RefusedError("its `chat_messages` must be a list of messages")
    notes: Counter[str] = Counter()
    values = outline.values
    return drafted(
        "claude",
        source,
        outline.fields,
        notes,
        title="name",
        created="created_at",
        current="current_leaf_message_uuid",
        read=_READ,
        nodes=_nodes(values, notes),
        content_of=lambda node: _content(node.source, values.object_at(node.place), Counter()),
    )


def _nodes(values: Values, notes: Counter[str]) -> list[Node]:
    """Each under the one that it names, else under the one before it; what is wrong with any of them is counted."""
    names: dict[str, str] = {}  # each by itself, so that it is held once
    nameless: set[int] = set()
    following: set[int] = set()

    def read(place: int) -> Node | None:  # what the message says is let go of here
        message = values[place]
        if not isinstance(message, dict):
            notes["nodes_dropped"] += 1
            return None
        name, parent = message.get("uuid"), message.get("parent_message_uuid")
        if not isinstance(name, str) or not name or name in names:
            name = f"#{place}"
            nameless.add(place)
        else:
            names[name] = name
        if "parent_message_uuid" not in message:
            following.add(place)
        _content(name, message, notes)
        parent = names.get(parent, parent) if isinstance(parent, str) and parent != _NO_PARENT else None
        return Node(source=name, parent=parent, place=place, time_ms=to_ms(message.get("created_at")))

    nodes = [node for node in map(read, range(len(values))) if node is not None]
    before: str | None = None
    for node in nodes:
        if node.place in nameless:
            node.source = _name(node.source, names)
        if node.place in following:
            node.parent = before
        before = node.source
    return nodes


def _name(place: str, taken: dict[str, str]) -> str:
    """What a message goes by whose id is missing, or said twice: its place, as no other message is called."""
    while place in taken:
        place = f"#{place}"
    taken[place] = place
    return place


def _content(name: str, message: JsonObject, notes: Counter[str]) -> Content:
    rest = {field: said for field, said in message.items() if field not in _READ_OF_MESSAGE}
    parts = _parts(name, message, notes)
    return said_by(
        "claude",
        message.get("sender"),
        parts,
        notes,
        name=name,
        facts={"text": _other_text(message, parts, notes)},
        source=rest,
        model=message.get("model"),
    )


def _parts(name: str, message: JsonObject, notes: Counter[str]) -> list[Part]:
    content = message.get("content")
    found: list[Part] = []
    for number, block in enumerate(content if isinstance(content, list) else [content]):
        if block is not None:
            found += _block(f"{name}.{number}", block, notes)
    text = message.get("text")
    if not any(part["type"] == "text" for part in found):
        if isinstance(text, str) and text:
            found.append({"type": "text", "text": text})
        elif isinstance(text, LeftOut):
            found.append(data_part("claude", "text", text, notes))
    for field in ("attachments", "files", "files_v2"):
        for file in files if isinstance(files := message.get(field), list) else []:
            found.append(data_part("claude", field.partition("_")[0].removesuffix("s"), file, notes))
    return found


def _other_text(message: JsonObject, parts: list[Part], notes: Counter[str]) -> Any:
    """The `text` of a message where it says something else than its parts; blank space does not count."""
    text = message.pop("text", None)  # may be large, and mostly says the same again
    if not text or not any(part["type"] == "text" for part in parts):
        return None
    said = text_of(parts)
    if text == said or (isinstance(text, str) and _bare(text) == _bare(said)):
        return None
    notes["texts_differ"] += 1
    return text


def _bare(text: str) -> str:
    return _BLANK.sub("", _EXCUSE.sub("", text))


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
