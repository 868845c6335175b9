"""Exports of other services for tests: read, written in their forms, and compared with what must come of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from threadkeep_client.importing.building import Built, Identity, Message, build
from threadkeep_client.importing.catalog import Catalog, catalog_of
from threadkeep_client.importing.draft import RefusedError
from threadkeep_client.importing.files import opened
from threadkeep_client.wire import JsonObject, Part, Role, Status, text_of

DATA: Final = Path(__file__).parents[1] / "data"
NOW_MS: Final = 1_800_000_000_000
ANN: Final = Identity("acme", "ann")


def expected(name: str) -> Any:
    """What must come of a file in `tests/data`."""
    return json.loads((DATA / f"{name}.expected.json").read_text())


@dataclass(frozen=True, slots=True, kw_only=True)
class Told(Message):
    """A message, with what it says."""

    role: Role
    status: Status
    parts: list[Part]
    metadata: JsonObject
    model: str | None
    usage: JsonObject | None
    error: JsonObject | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole(Built):
    """A conversation of such messages."""

    messages: Sequence[Told]

    @classmethod
    def of(cls, built: Built) -> Whole:
        """Read what they say."""
        told = [Told(**_fields(message), **_fields(built.content_of(message.node))) for message in built.messages]
        return cls(**_fields(built) | {"messages": told})


def _fields(value: Any) -> dict[str, Any]:
    return {each.name: getattr(value, each.name) for each in fields(value)}


def read(path: Path, *, identity: Identity = ANN, now_ms: int = NOW_MS, salt: str = "") -> dict[str, Whole | str]:
    """The conversations of a file by their ids there, ready to be sent; of those refused, the reason."""
    found: dict[str, Whole | str] = {}
    with opened(path) as files:
        catalog = catalog_of(files)
        for entry in catalog.entries:
            try:
                found[entry.source] = Whole.of(build(entry.read(), identity, now_ms=now_ms, salt=salt))
            except RefusedError as refused:
                found[entry.source] = str(refused)
    return found


def read_one(path: Path, source: str, **options: Any) -> Whole:
    """One conversation, which must not be refused."""
    built = read(path, **options)[source]
    assert isinstance(built, Whole), built
    return built


def listed(path: Path) -> Catalog:
    """What a file holds."""
    with opened(path) as files:
        return catalog_of(files)


def path_of(built: Whole, leaf: str | None = None) -> list[Told]:
    """The messages from the root to where its reader left it."""
    by_id = {message.id: message for message in built.messages}
    at: str | None = leaf or built.current or max(by_id)
    path: list[Told] = []
    while at is not None:
        path.append(by_id[at])
        at = by_id[at].parent
    return path[::-1]


def texts(messages: Sequence[Told]) -> list[str]:
    """What each says."""
    return [text_of(message.parts) for message in messages]


def shown(role: str, parts: list[Part]) -> list[Any]:
    """A message as the file of the case of mixed content tells it."""
    match parts:
        case [{"type": "tool_call", "name": name, "arguments": arguments}]:
            return ["assistant-tool-call", f"{name}: {arguments}"]
        case [{"type": "tool_result", "output": output}]:
            return ["tool", output]
        case [{"type": "reasoning"}]:
            return ["assistant-reasoning", "kept apart from the visible answer"]
        case [{"type": "data", "kind": "not_seen_before", "value": {"payload": {"x": [1, 2]}}}]:
            return ["assistant", "[unsupported part: not_seen_before] kept raw, not dropped"]
        case []:
            return ["user", "", ["kept as an empty turn or skipped, but said so in the report"]]
    files = [_pointer(part) for part in parts if part["type"] == "data"]
    return [role, text_of(parts), *([files] if files else [])]


def _pointer(part: Part) -> str:
    return f"{part['kind'].partition('_')[0]} {part['value']['asset_pointer']}"


def chatgpt(source: str, texts: list[str], *, created_s: float = 1_700_000_000.0) -> dict[str, Any]:
    """A conversation in ChatGPT's form: user and assistant take turns, a second apart."""
    mapping: dict[str, Any] = {"r": {"id": "r", "message": None, "parent": None, "children": ["n0"]}}
    for number, text in enumerate(texts):
        mapping[f"n{number}"] = {
            "id": f"n{number}",
            "parent": f"n{number - 1}" if number else "r",
            "children": [f"n{number + 1}"] if number + 1 < len(texts) else [],
            "message": message(f"n{number}", ("user", "assistant")[number % 2], text, created_s + number + 1),
        }
    times = {"create_time": created_s, "update_time": created_s + len(texts)}
    return {"id": source, "conversation_id": source, "title": source, **times, "mapping": mapping} | {
        "current_node": f"n{len(texts) - 1}"
    }


def message(name: str, role: str, text: str, at_s: float | None, **fields: Any) -> dict[str, Any]:
    """A message of that form."""
    return {
        "id": name,
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": at_s,
        "content": {"content_type": "text", "parts": [text]},
        "status": "finished_successfully",
        "weight": 1.0,
        "metadata": {},
        "recipient": "all",
    } | fields


def conversation(nodes: Mapping[str, tuple[str | None, dict[str, Any] | None]], **fields: Any) -> dict[str, Any]:
    """A conversation of that form: each node's parent and message."""
    mapping = {name: {"id": name, "parent": parent, "message": said} for name, (parent, said) in nodes.items()}
    return {"id": "c", "title": "t", "create_time": 1_700_000_000.0, "mapping": mapping} | fields


def write(path: Path, value: Any) -> Path:
    """A file of JSON."""
    path.write_text(json.dumps(value))
    return path
