"""A conversation's JSON, in whatever form, into a draft."""

from __future__ import annotations

from pathlib import Path

from threadkeep_client.importing import chatgpt, claude, threadkeep
from threadkeep_client.importing.draft import Draft, Form, RefusedError
from threadkeep_client.importing.spans import Places, Span
from threadkeep_client.importing.values import digest
from threadkeep_client.wire import JsonObject

NO_CHAT = "holds neither `mapping` (ChatGPT) nor `chat_messages` (Claude), and is no line of Threadkeep's own form"
_REPLAYED = "is no export: it holds `messages`, the form that `threadkeep replay` reads"


def form_of(value: object) -> Form:
    """The form of a value, told by what it holds.

    Raises:
        RefusedError: It is no conversation.
    """
    if not isinstance(value, dict):
        raise RefusedError("is no JSON object, and each conversation is one")
    if "mapping" in value:
        return "chatgpt"
    if "chat_messages" in value:
        return "claude"
    if value.get("type") == "conversation" and "id" in value:
        return "threadkeep"
    raise RefusedError(_REPLAYED if isinstance(value.get("messages"), list) else NO_CHAT)


def is_behind_conversation(value: object) -> bool:
    """Whether it is of the lines that stand behind a conversation of Threadkeep's own form."""
    return isinstance(value, dict) and isinstance(value.get("type"), str) and isinstance(value.get("conversation"), str)


def source_of(value: JsonObject, path: Path, span: Span) -> str:
    """The conversation's id in the export; of one that says none, a digest of what it holds."""
    for name in ("conversation_id", "id", "uuid"):
        source = value.get(name)
        if isinstance(source, str) and source:
            return source
    return "sha256:" + digest(path, span)


def read_draft(form: Form, path: Path, places: Places, source: str) -> Draft:
    """Read a conversation: one object, or in Threadkeep's own form a line each for it and its messages.

    Raises:
        RefusedError: It cannot be imported; the message says why.
    """
    if form == "threadkeep":
        return threadkeep.read(path, places)
    if form == "chatgpt":
        return chatgpt.read(path, places[0], source)
    return claude.read(path, places[0], source)
