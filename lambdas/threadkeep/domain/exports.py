"""Exports: a user's conversations, or one of them, as a file that lives a day."""

from __future__ import annotations

from typing import Literal

import msgspec

Format = Literal["jsonl", "chatgpt", "markdown"]


class Export(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An export as its owner sees it, without its link.

    Attributes:
        conversation: the one that is exported; None: all of the owner's.
        expires_at: when the file and this are gone.
        conversations, messages, bytes: so far; final once it is done.
        error: with ``failed``, a code.
    """

    id: str
    owner: str
    format: Format
    state: Literal["running", "done", "failed"]
    created_at: str
    expires_at: str
    conversation: str | None = None
    conversations: int = 0
    messages: int = 0
    bytes: int = 0
    error: str | None = None
