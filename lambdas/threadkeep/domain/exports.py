"""Exports: a user's conversations, or one of them, with links to its file for a day."""

from __future__ import annotations

from typing import Literal

import msgspec

from threadkeep.domain.bounds import EXPORT_PART_BYTES

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
        notes: the name of those that its last run left for the next; None: there is no such run.
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
    notes: str | None = None


class Growing(msgspec.Struct, frozen=True):
    """A file that is written in parts of `EXPORT_PART_BYTES`, as far as it is.

    Attributes:
        upload: what its store calls it.
        parts: the tags of those that the store has, from the first on; another run's parts have others.
        held: what stands behind them, and is too little for a part yet.
    """

    upload: str
    parts: tuple[str, ...] = ()
    held: bytes = b""

    @property
    def size_bytes(self) -> int:
        """What has been written so far."""
        return len(self.parts) * EXPORT_PART_BYTES + len(self.held)


class Notes(msgspec.Struct, kw_only=True, omit_defaults=True, tag_field="v", tag=1):
    """Where one run of an export left off, always between two conversations, so that the next goes on.

    Attributes:
        passes: files that were begun before, and given up for what was deleted meanwhile.
        left: the conversations still to come, each with its last activity, the next one last; None: not listed yet.
        written: those in the file.
        expiring: those of them that have a retention, with its end (ms since the epoch).
        messages, skipped: so far.
        file: None: not begun, or there.
        size_bytes: of the file, once it is there.
    """

    passes: int = 0
    left: list[tuple[str, str]] | None = None
    written: list[str] = []
    expiring: list[tuple[str, int]] = []
    messages: int = 0
    skipped: int = 0
    file: Growing | None = None
    size_bytes: int | None = None


class ExportJob(msgspec.Struct, frozen=True, kw_only=True, tag_field="internal", tag="threadkeep.export"):
    """An export that is to be made, as it goes through the queue. Delivered twice, it is made once or made again.

    Attributes:
        attempt: how often it has been tried before.
    """

    tenant: str
    export: str
    attempt: int = 0
