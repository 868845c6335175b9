"""What every form of export file has in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from msgspec import UNSET

from threadkeep.domain.archive import Damaged
from threadkeep.domain.json_values import encode
from threadkeep.domain.model import Conversation, Message
from threadkeep.domain.ops import Parts

Entry = Message | Damaged
"""A message with all its parts, or a stretch of messages that no store could give."""


class Form(Protocol):
    """Writes a file: `start`, the conversations, `end`. It holds no state between calls.

    Attributes:
        suffix: of the file's name.
        oldest_first: the order in which it wants a conversation's messages, by id.
    """

    @property
    def suffix(self) -> str: ...  # noqa: D102 -- see the class

    @property
    def oldest_first(self) -> bool: ...  # noqa: D102 -- see the class

    def start(self) -> bytes:
        """What stands before all conversations."""
        ...

    def conversation(self, conversation: Conversation, entries: Iterable[Entry], *, is_first: bool) -> Iterator[bytes]:
        """A conversation, in pieces of at most a message each."""
        ...

    def end(self) -> bytes:
        """What stands behind all conversations."""
        ...


def parts_of(message: Message) -> Parts:
    """The message's parts.

    Raises:
        ValueError: it comes without them. A file must not lose them in silence.
    """
    if message.parts is UNSET:
        raise ValueError(f"message {message.id} must be exported with its parts")
    return message.parts


def in_one_line(value: object) -> bytes:
    """A value's JSON without line breaks.

    What clients wrote stands in it byte for byte, and may have been spread over lines. In JSON a line break stands
    between two tokens only (in a string it is escaped), where a space means the same.
    """
    return encode(value).replace(b"\n", b" ").replace(b"\r", b" ")
