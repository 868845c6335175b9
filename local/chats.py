"""Recorded conversations, one JSON object a line (see ``tests/data/README.md``)."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

import msgspec

from local.errors import LocalCloudError
from local.tools import ROOT

DEMO_FILE: Final = ROOT / "tests" / "data" / "chats-demo.jsonl"


class Alternate(msgspec.Struct, frozen=True):
    """Another answer to the same question: a branch."""

    text: str


class Turn(msgspec.Struct, frozen=True):
    """A question, or an answer with its alternates."""

    role: Literal["user", "assistant"]
    text: str
    model: str | None = None
    alternates: tuple[Alternate, ...] = ()


class Chat(msgspec.Struct, frozen=True):
    """A conversation."""

    title: str
    messages: tuple[Turn, ...]

    @property
    def message_count(self) -> int:
        """Messages on all branches."""
        return sum(1 + len(turn.alternates) for turn in self.messages)


def read_chats(file: Path) -> list[Chat]:
    """Read a file of them.

    Raises:
        LocalCloudError: it is absent, or a line is malformed; names the line.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise LocalCloudError(f"{file} cannot be read: {error.strerror}") from error
    chats = []
    for number, line in enumerate(lines, start=1):
        try:
            chats.append(msgspec.json.decode(line, type=Chat))
        except msgspec.DecodeError as error:
            raise LocalCloudError(f"{file}, line {number}: {error}") from error
    return chats
