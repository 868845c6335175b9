"""The objects of the protocol as they come (section 5): plain dicts, typed.

They stay dicts so that fields of a later version, unknown parts and every JSON value in `metadata` and `parts` remain
exactly as they were read.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

JsonObject = dict[str, Any]
Part = dict[str, Any]
Op = list[Any]
"""`["part", index, {part}]`, `["text", index, "…"]`, `["set", index, {fields}]` or `["meta", {fields}]`."""
Frame = dict[str, Any]
"""A reply or an event."""

Role = Literal["system", "user", "assistant", "tool"]
Status = Literal["complete", "stopped", "failed", "interrupted"]


class Conversation(TypedDict):
    """A conversation as its owner sees it."""

    id: str
    owner: str
    metadata: JsonObject
    created_at: str
    active_at: str
    title: NotRequired[str]
    retention_days: NotRequired[int]


class Tokens(TypedDict):
    """What a message takes in a model's context; `estimated` where no usage was told."""

    count: int
    estimated: NotRequired[bool]


class Message(TypedDict):
    """A settled message. Without `parts` (and with `bytes`) where it does not fit a frame."""

    id: str
    conversation: str
    parent: str | None
    role: Role
    status: Status
    created_at: str
    metadata: JsonObject
    tokens: Tokens
    parts: NotRequired[list[Part]]
    bytes: NotRequired[int]
    usage: NotRequired[JsonObject]
    error: NotRequired[Any]
    model: NotRequired[str]
    reply: NotRequired[str]


def text_of(parts: list[Part]) -> str:
    """The text that a reader sees: all text parts, one after the other."""
    return "".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")
