"""A settled message, read as a log of its own (docs/protocol.md, section 6)."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, Raw

from threadkeep.domain import frames, ops
from threadkeep.domain.json_values import encode
from threadkeep.domain.model import ConversationKey, StoredMessage

Page = dict[str, object]
"""The fields of a reply to `stream.resume`."""


class SettledLog(msgspec.Struct, frozen=True, kw_only=True):
    """A settled message as its pages hold it.

    Attributes:
        epoch: one above that of the message's stream.
        message: as JSON; without its parts where it does not fit a frame.
        is_whole: the message fits, and is all that there is to read.
        pieces: the ops from each place to the next, as JSON.
    """

    epoch: int
    message: bytes
    is_whole: bool
    pieces: tuple[bytes, ...]

    @classmethod
    def from_stored(cls, stored: StoredMessage) -> SettledLog:
        """Cut it."""
        message = stored.message
        whole = encode(message)
        pieces = tuple(encode(piece) for piece in ops.pieces(() if message.parts is UNSET else message.parts))
        if len(whole) <= frames.MESSAGE_BYTES_MAX:
            return cls(epoch=stored.epoch + 1, message=whole, is_whole=True, pieces=pieces)
        bare = encode(message.without_parts())
        if len(pieces[-1]) + len(bare) > frames.MESSAGE_BYTES_MAX:
            pieces = (*pieces, b"[]")  # so that there is a page with room for the message
        return cls(epoch=stored.epoch + 1, message=bare, is_whole=False, pieces=pieces)

    def page(self, *, epoch: int, offset: int) -> Page:
        """The page from a place on, or from 0 where that is of another epoch or beyond the end."""
        end = len(self.pieces)
        at = offset if epoch == self.epoch and offset <= end else 0
        if self.is_whole:
            at = end
        after = min(at + 1, end)
        piece = self.pieces[at] if at < end else b"[]"
        page: Page = {"epoch": self.epoch, "state": "settled", "at": at, "ops": Raw(piece)}
        page |= {"offset": after, "more": after < end}
        if len(piece) + len(self.message) <= frames.MESSAGE_BYTES_MAX:
            page["message"] = Raw(self.message)
        return page


class LastLog:
    """The log that was read last, if it has more than one page: who reads a page of it asks for the next one.

    Kept since a page must not cost what the whole message costs. It is one message of at most `STREAM_BYTES_MAX`, and
    whoever reads it was authorized for it first. A settled message never changes, but where another region's takes its
    place: there it is kept for a while only.
    """

    def __init__(self) -> None:
        self._kept: tuple[ConversationKey, str, SettledLog, int | None] | None = None

    def get(self, key: ConversationKey, message: str, *, now_ms: int) -> SettledLog | None:
        """That message's log, if it is the one that is kept, and still trusted."""
        kept = self._kept
        if kept is None or kept[:2] != (key, message) or (kept[3] is not None and now_ms >= kept[3]):
            return None
        return kept[2]

    def note(self, key: ConversationKey, message: str, log: SettledLog, *, until_ms: int | None) -> None:
        """Keep it in place of the one before, to be trusted until then (None: for good)."""
        if not log.is_whole:
            self._kept = (key, message, log, until_ms)
