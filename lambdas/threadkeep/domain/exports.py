"""Exports: a user's conversations, or one of them, as a file that lives a day."""

from __future__ import annotations

from typing import Literal

import msgspec

Format = Literal["jsonl", "chatgpt", "markdown"]
State = Literal["running", "done", "failed"]


class Export(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An export as its owner sees it, without its link.

    Attributes:
        region: whose bucket has the file.
        conversation: the one that is exported; None: all of the owner's.
        expires_at: when the file and this are gone.
        conversations, messages, bytes: so far; final once it is done.
        skipped: messages that no store could give; the file says where they stood.
        error: with ``failed``, a code.
    """

    id: str
    owner: str
    region: str
    format: Format
    state: State
    created_at: str
    expires_at: str
    conversation: str | None = None
    conversations: int = 0
    messages: int = 0
    bytes: int = 0
    skipped: int = 0
    error: str | None = None


class ExportJob(msgspec.Struct, frozen=True, kw_only=True, tag_field="internal", tag="threadkeep.export"):
    """An export that is to be made, as it goes through the queue. Delivered twice, it is made once or made again.

    Attributes:
        attempt: how often it has been tried before.
    """

    tenant: str
    export: str
    attempt: int = 0
