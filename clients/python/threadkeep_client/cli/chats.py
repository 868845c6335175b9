"""Conversations in a file: JSON Lines, `{"title", "messages": [{"role", "text", "model"?, "alternates"?}]}`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Self, cast

from threadkeep_client.cli.errors import CommandError
from threadkeep_client.frames import FRAME_BYTES_MAX, clean, json_bytes

_FRAME_ROOM_BYTES: Final = 1_024
"""What stands around the text in a request."""
_TITLE_CHARS_MAX: Final = 512
_FILE_BYTES_MAX: Final = 512 * 1024 * 1024


class MalformedError(Exception):
    """A line is no conversation; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A message, and other models' answers in its place.

    Half surrogates, which UTF-8 cannot carry, are read as U+FFFD, as the service would keep them.
    """

    role: Literal["user", "assistant"]
    text: str
    model: str | None = None
    alternates: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Read it.

        Raises:
            MalformedError: It is none; the message names the field.
        """
        value = value if isinstance(value, dict) else {}
        role, text, model = value.get("role"), value.get("text"), value.get("model")
        if role not in {"user", "assistant"}:
            raise MalformedError('each message must be an object whose `role` is "user" or "assistant"')
        if not isinstance(text, str):
            raise MalformedError("`text` must be a string")
        if model is not None and not isinstance(model, str):
            raise MalformedError("`model` must be a string")
        alternates = value.get("alternates", [])
        if not isinstance(alternates, list) or not all(
            isinstance(other, dict) and isinstance(other.get("text"), str) for other in alternates
        ):
            raise MalformedError("`alternates` must be a list of objects with `text`")
        if role == "user":
            if alternates:
                raise MalformedError("`alternates` stand at answers, not at questions")
            if json_bytes(text) > FRAME_BYTES_MAX - _FRAME_ROOM_BYTES:
                raise MalformedError(f"a user's message must fit a frame of {FRAME_BYTES_MAX:,} bytes")
        return cls(cast("Any", role), clean(text), model, tuple(clean(other["text"]) for other in alternates))


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation, and the line that it stands on."""

    line: int
    title: str
    turns: tuple[Turn, ...]

    @classmethod
    def from_line(cls, line: int, text: str) -> Self:
        """Read a line.

        Raises:
            MalformedError: It is no conversation.
            ValueError: It is not JSON.
        """
        value = json.loads(text)
        messages = value.get("messages") if isinstance(value, dict) else None
        if not isinstance(messages, list) or not messages:
            raise MalformedError("must be an object with a list of `messages`")
        title = value.get("title", "")
        if not isinstance(title, str) or len(title) > _TITLE_CHARS_MAX:
            raise MalformedError(f"`title` must be a string of at most {_TITLE_CHARS_MAX} characters")
        return cls(line, clean(title), tuple(Turn.from_json(turn) for turn in messages))


def read_chats(path: Path, limit: int | None = None) -> list[Chat]:
    """Read a file of conversations, up to a number of them; empty lines are passed over.

    Raises:
        CommandError: It cannot be read, or a line is malformed: the message names it.
    """
    chats: list[Chat] = []
    try:
        if path.stat().st_size > _FILE_BYTES_MAX:
            raise CommandError(f"{path} is larger than {_FILE_BYTES_MAX:,} bytes: split it")
        with path.open("rb") as file:
            for line, data in enumerate(file, start=1):
                if len(chats) == limit:
                    break
                if data.strip():
                    chats.append(_read_line(path, line, data))
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}") from error
    if not chats:
        raise CommandError(f"{path} holds no conversations")
    return chats


def _read_line(path: Path, line: int, data: bytes) -> Chat:
    try:
        return Chat.from_line(line, data.decode())
    except json.JSONDecodeError as error:
        raise CommandError(f"{path}, line {line}: not JSON ({error.msg})") from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{path}, line {line}: not UTF-8") from error
    except RecursionError as error:
        raise CommandError(f"{path}, line {line}: nested too deeply") from error
    except (MalformedError, ValueError) as error:
        raise CommandError(f"{path}, line {line}: {error}") from error
