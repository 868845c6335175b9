"""The `content` of a message in ChatGPT's form, as parts: text, reasoning, tool calls and results; all else as data."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from threadkeep_client.importing.keeping import data_part
from threadkeep_client.wire import JsonObject, Part, Role

_PIECES: Final = frozenset({None, "text", "multimodal_text"})
_ONE_TEXT: Final = frozenset({"code", "execution_output", "system_error"})
_THOUGHTS: Final = {"thoughts": "thoughts", "reasoning_recap": "content"}
"""Kinds of reasoning, and the field that holds it."""
_EVERYBODY: Final = (None, "", "all")


def is_call(message: JsonObject) -> bool:
    """Whether an assistant's message is addressed to a tool."""
    author = message.get("author")
    role = author.get("role") if isinstance(author, dict) else author
    recipient = message.get("recipient")
    return role == "assistant" and isinstance(recipient, str) and recipient not in _EVERYBODY


def read_parts(
    message: JsonObject, *, role: Role | None, node: str, caller: str | None, notes: Counter[str]
) -> list[Part]:
    """The parts of a message, in their order; empty text is left out.

    Args:
        message: the export's object.
        role: as it was understood; None where it was not.
        node: the message's id, which a tool call goes by.
        caller: the id of the call that a tool's message answers.
        notes: counts what had to be left out.
    """
    parts = _content(message.get("content"), notes)
    texts = [part["text"] for part in parts if part["type"] == "text"]
    others = [part for part in parts if part["type"] != "text"]
    if role == "tool" and texts:
        return [{"type": "tool_result", "call_id": caller or node, "output": "\n".join(texts)}, *others]
    if role == "assistant" and texts and is_call(message):
        call = {"type": "tool_call", "call_id": node, "name": message["recipient"], "arguments": "\n".join(texts)}
        return [call | {"state": "complete"}, *others]
    return parts


def _content(content: Any, notes: Counter[str]) -> list[Part]:
    if not isinstance(content, dict):
        return _pieces(content, notes)
    kind = content.get("content_type")
    kind = kind if isinstance(kind, str) else None
    if kind in _PIECES and "parts" in content:
        return _pieces(content["parts"], notes)
    if (kind in _ONE_TEXT or kind in _PIECES) and isinstance(text := content.get("text"), str):
        return _text(text)
    thoughts = content.get(_THOUGHTS[kind]) if kind in _THOUGHTS else None
    if isinstance(thoughts, (list, str)):
        return _reasoning([_thought(thought) for thought in (thoughts if isinstance(thoughts, list) else [thoughts])])
    if kind in _PIECES and not set(content) - {"content_type"}:
        return []
    return [data_part("chatgpt", kind or "content", content, notes)]


def _pieces(pieces: Any, notes: Counter[str]) -> list[Part]:
    """Parts of a list that may hold text, objects and nothing; what should be a list may be one of these itself."""
    found: list[Part] = []
    for piece in pieces if isinstance(pieces, list) else [pieces]:
        if piece is None:
            continue
        if isinstance(piece, str):
            found += _text(piece)
            continue
        kind = piece.get("content_type", piece.get("type")) if isinstance(piece, dict) else None
        kind = kind if isinstance(kind, str) else None
        if kind in {"audio_transcription", "text"} and isinstance(text := piece.get("text"), str):
            found += _text(text)
        else:
            found.append(data_part("chatgpt", kind or "content", piece, notes))
    return found


def _text(text: str) -> list[Part]:
    return [{"type": "text", "text": text}] if text else []


def _thought(thought: Any) -> str:
    if not isinstance(thought, dict):
        return thought if isinstance(thought, str) else ""
    said = (thought.get("summary"), thought.get("content"))
    return "\n".join(text for text in said if isinstance(text, str) and text)


def _reasoning(texts: list[str]) -> list[Part]:
    text = "\n\n".join(text for text in texts if text)
    return [{"type": "reasoning", "text": text}] if text else []
