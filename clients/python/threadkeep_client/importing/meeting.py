"""What stands here already, beside what an export says of it: which fields of a message or conversation are others."""

from __future__ import annotations

import json
from typing import Any, Final, cast

from threadkeep_client.frames import to_json
from threadkeep_client.importing.building import Built, Message
from threadkeep_client.importing.draft import Content
from threadkeep_client.wire import Conversation, JsonObject, Part
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


def differences(stored: Stored, message: Message, content: Content) -> list[str]:
    """The fields that say something else here than in the export.

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
    found = [name for name, value in told.items() if not _same(here.get(name), value)]
    kept = [without_file(part) for part in content.parts]
    return [name for name in found if name != "parts" or not _same(here.get(name), kept)]


def why_refused(fields: list[str]) -> str | None:
    """The reason, of the fields that are others; None where there are none."""
    if not fields:
        return None
    told = ", ".join(_WORDS.get(name, f"its {name} is another") for name in fields)
    return f"stands here already and says something else: {told}. It stays as it is here"


def head_differs(here: Conversation, built: Built) -> bool:
    """Whether the conversation has another title or retention here, or other metadata than ours were."""
    told: JsonObject = {"title": built.title, "retention_days": built.retention_days}
    if built.form == "threadkeep":
        told["metadata"] = built.metadata
    known = cast("JsonObject", here)
    return any(value is not None and not _same(known.get(name), value) for name, value in told.items())


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
