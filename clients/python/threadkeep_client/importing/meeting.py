"""What stands here already, beside what an export says of it: which fields of a message or conversation are others."""

from __future__ import annotations

import json
from typing import Any, Final, cast

from threadkeep_client.frames import clean, to_json
from threadkeep_client.importing.building import Built, Message
from threadkeep_client.importing.draft import Content
from threadkeep_client.wire import Conversation, JsonObject, Part, text_of
from threadkeep_client.wire import Message as Stored

_WORDS: Final = {
    "parent": "it follows another message",
    "role": "its author is another",
    "status": "it ended otherwise",
    "parts": "its content is another",
    "metadata": "its metadata are others",
    "model": "its model is another",
    "usage": "its usage is another",
    "error": "its error is another",
    "reply": "it asked for another answer",
}
_SHOWN_CHARS: Final = 60
"""What is quoted of a text that differs."""
_LEAD_CHARS: Final = 15
"""What of it is the same on both sides, where the difference comes late."""


def differences(stored: Stored, message: Message, content: Content) -> list[str]:
    """What says something else here than in the export: a clause each.

    Args:
        stored: as it stands here, whole.
        message: of the export.
        content: what that says.
    """
    here = cast("JsonObject", stored)
    told: JsonObject = {
        "parent": message.parent,
        "role": content.role,
        "status": content.status,
        "parts": content.parts,
        "metadata": content.metadata,
        "model": content.model,
        "usage": content.usage,
        "error": content.error,
        "reply": message.reply,
    }
    kept = [without_file(part) for part in content.parts]
    found: list[str] = []
    for name, value in told.items():
        if _same(here.get(name), value) or (name == "parts" and _same(here.get(name), kept)):
            continue
        found.append(_WORDS[name] + (_beginnings(stored["parts"], content.parts) if name == "parts" else ""))
    return found


def why_refused(found: list[str], message: Message) -> str | None:
    """The reason, of what `differences` found; None where that is nothing."""
    if not found:
        return None
    return f"stands here already as {message.id} and says something else: {', '.join(found)}. It stays as it is here"


def head_differences(here: Conversation, built: Built) -> str:
    """What of the conversation is another here: its title, its retention, or metadata that were ours."""
    told: JsonObject = {"title": built.title, "retention_days": built.retention_days}
    known = cast("JsonObject", here)
    found = [
        f"its {name.replace('_', ' ')} here is {_quoted(known.get(name))}, in the export {_quoted(value)}"
        for name, value in told.items()
        if value is not None and not _same(known.get(name), value)
    ]
    if built.form == "threadkeep" and not _same(known.get("metadata"), built.metadata):
        found.append("its metadata are others")
    return f"{built.id} stays as it is here: {'; '.join(found)}" if found else ""


def _beginnings(here: list[Part], told: list[Part]) -> str:
    """How both begin, or go on from shortly before the first difference, if that is not among their first letters."""
    texts = text_of(here), text_of(told)
    if texts[0] == texts[1]:
        texts = _canonical(here), _canonical(told)
    same = next((at for at, (one, other) in enumerate(zip(*texts, strict=False)) if one != other), min(map(len, texts)))
    start = 0 if same < _SHOWN_CHARS // 2 else same - _LEAD_CHARS
    return f" (here {_quoted(texts[0], start)}, in the export {_quoted(texts[1], start)})"


def _quoted(value: Any, start: int = 0) -> str:
    """On one line, what is longer cut."""
    if not isinstance(value, str):
        return "none" if value is None else str(value)
    shown = " ".join(clean(value[start : start + _SHOWN_CHARS]).split())
    return f'"{"…" if start else ""}{shown}{"…" if len(value) > start + _SHOWN_CHARS else ""}"'


def without_file(part: Part) -> Part:
    """What is known of a file that is not here, in its place."""
    if part.get("type") != "blob":
        return part
    return cast("Part", {"type": "data", "kind": "blob", "value": part})


def _same(one: Any, other: Any) -> bool:
    """Whether they mean the same JSON, as the service would keep it: order of names apart, kinds of numbers not."""
    return _canonical(one) == _canonical(other)


def _canonical(value: Any) -> str:
    return json.dumps(json.loads(to_json(value)), sort_keys=True)
