"""A conversation as an export tells it, before it has ids of its own and before its tree is known to be sound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from threadkeep_client.wire import JsonObject, Part, Role, Status

Form = Literal["chatgpt", "claude", "threadkeep"]

TITLE_CHARS_MAX: Final = 512
NAME_CHARS_MAX: Final = 256
ROLES: Final[dict[str, Role]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "tool": "tool",
}


class RefusedError(Exception):
    """A value is no conversation that can be imported; the message says why, and quotes nothing of what it holds."""


def refusal_of(error: Exception) -> str:
    """Why it is refused, where reading it raised that.

    Nobody publishes a schema of what is read, so it may be anything. Of what was not foreseen the type alone is told:
    a message may quote what the conversation holds.
    """
    return str(error) if isinstance(error, RefusedError) else f"cannot be read ({type(error).__name__})"


@dataclass(slots=True, kw_only=True)
class Node:
    """A place in the tree. What its message says is read when it is wanted: `Draft.content_of`.

    Attributes:
        source: its id in the export.
        parent: the id of the one above, which may not be there; None for a root.
        place: which of the conversation's values it is, from 0 on.
        time_ms: when it was written, in ms since 1970; None where the export does not say, or says what cannot be.
        is_message: whether there is a message; else it only holds its children together.
        reply: the id of the answer that was asked for with it; only of what Threadkeep wrote itself.
        has_end: whether the message has `usage` or `error`, which `message.create` has no field for.
    """

    source: str
    parent: str | None
    place: int = 0
    time_ms: int | None = None
    is_message: bool = True
    reply: str | None = None
    has_end: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a message says."""

    role: Role
    parts: list[Part]
    status: Status = "complete"
    model: str | None = None
    metadata: JsonObject = field(default_factory=dict)
    usage: JsonObject | None = None
    error: JsonObject | None = None


@dataclass(slots=True, kw_only=True)
class Draft:
    """A conversation.

    Attributes:
        form: what it was read from.
        source: its id there.
        created_ms: as `Node.time_ms`.
        nodes: in the order of the file, each id once.
        content_of: reads what the message of a node says. Everything was read once before, and counted in the notes:
            it raises `RefusedError` only where the file has changed meanwhile.
        current: the id of the message at which its reader left it, if the export says so.
        keeps_ids: whether the ids are Threadkeep's own and stay.
        notes: what was repaired or left out, by kind: see `report.NOTES`.
    """

    form: Form
    source: str
    title: str | None = None
    created_ms: int | None = None
    nodes: list[Node] = field(default_factory=list)
    content_of: Callable[[Node], Content]
    current: str | None = None
    metadata: JsonObject = field(default_factory=dict)
    retention_days: int | None = None
    keeps_ids: bool = False
    notes: Counter[str] = field(default_factory=Counter)


def title_of(value: Any, notes: Counter[str]) -> str | None:
    """A title within its bound; None for what is no text."""
    if not isinstance(value, str):
        return None
    if len(value) > TITLE_CHARS_MAX:
        notes["titles_cut"] += 1
    return value[:TITLE_CHARS_MAX]


def model_of(value: Any) -> str | None:
    """A model's name; None for what is none."""
    return value if isinstance(value, str) and 0 < len(value) <= NAME_CHARS_MAX else None
