"""Our own form: JSON Lines, a conversation and then its messages, oldest first. Nothing that is stored is missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from threadkeep.domain.archive import Damaged
from threadkeep.domain.model import Conversation
from threadkeep.exporting.form import Entry, in_one_line, parts_of


class JsonLines:
    """`Form`: objects as the protocol has them, each with its ``type``; every number as it was written."""

    suffix: Final = "jsonl"
    oldest_first: Final = True

    def start(self) -> bytes:
        """See `Form`."""
        return b""

    def conversation(self, conversation: Conversation, entries: Iterable[Entry], *, is_first: bool) -> Iterator[bytes]:  # noqa: ARG002 -- lines have nothing between them
        """See `Form`. What is damaged comes last, so that no reader takes it for a message's parent."""
        yield _line("conversation", conversation)
        damaged: list[Damaged] = []
        for entry in entries:
            if isinstance(entry, Damaged):
                damaged.append(entry)
            else:
                parts_of(entry)
                yield _line("message", entry)
        for entry in damaged:
            yield _line("damaged", {"conversation": conversation.id, **msgspec.structs.asdict(entry)})

    def end(self) -> bytes:
        """See `Form`."""
        return b""


def _line(kind: str, value: object) -> bytes:
    """A line; the object holds at least one field."""
    return b'{"type":"' + kind.encode() + b'",' + in_one_line(value)[1:] + b"\n"
