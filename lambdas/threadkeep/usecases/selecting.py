"""Which messages of a path a model is to read: the newest, within bounds, and never half of a tool's use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final, Self

import msgspec

from threadkeep.domain.bounds import CONTEXT_MESSAGES_MAX
from threadkeep.domain.model import Message
from threadkeep.usecases.pairs import Pairs

_REACH: Final = 100
"""Messages beyond a bound that are looked through for the call of a result within it."""
_REACHES: Final = (*range(1, _REACH + 1), *range(_REACH + 50, CONTEXT_MESSAGES_MAX + 1, 50))
"""How far the call of the newest message is looked for: in steps, for each looks through all of them."""


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """How much may be selected.

    Attributes:
        messages_max: so many messages.
        tokens_max: so many tokens in all; None: any number.
        size_max: so much room in all, by ``size``; None: any.
        size: the room that a message takes.
    """

    messages_max: int
    tokens_max: int | None = None
    size_max: int | None = None
    size: Callable[[Message], int] = lambda _: 0

    def beside(self, message: Message) -> Self:
        """What is left of it beside that message."""
        return msgspec.structs.replace(
            self,
            messages_max=max(1, self.messages_max - 1),
            tokens_max=None if self.tokens_max is None else self.tokens_max - message.tokens.count,
            size_max=None if self.size_max is None else self.size_max - self.size(message),
        )


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """What was selected of a path.

    Attributes:
        newest_first: the messages.
        near: so many of them, from the newest, follow each other on the path; the others are from beyond ``following``.
        ahead: the conversation's first message, to be put before all of them.
        following: the id of the message that comes next on the path; None where the path has ended.
        is_truncated: the path goes on, or something of it was left out in between.
    """

    newest_first: tuple[Message, ...]
    near: int
    following: str | None
    is_truncated: bool
    ahead: Message | None = None


class _Window:
    """A path as far as it was looked at, newest first."""

    def __init__(self, path: Iterator[Message]) -> None:
        self._path = path
        self.messages: list[Message] = []
        self.is_ended = False

    @property
    def has_root(self) -> bool:
        """Whether the path was looked at up to its root."""
        return self.messages[-1].parent is None

    def reaches(self, count: int) -> bool:
        """Whether there are so many; looks no further."""
        while len(self.messages) < count and not self.is_ended:
            message = next(self._path, None)
            if message is None:
                self.is_ended = True
            else:
                self.messages.append(message)
        return len(self.messages) >= count

    def pairs(self, count: int) -> Pairs:
        """How the newest of them belong together; where a result lacks its call, that is looked for beyond them."""
        self.reaches(count)
        inner = Pairs.of(self.messages[:count])
        found, reach = inner, min(count, len(self.messages))
        while found.open and reach < count + _REACH and self.reaches(reach + 1):
            reach += 1
            found = Pairs.of(self.messages[:reach])
            if not found.open & inner.open:
                break
        return found


def select(path: Iterator[Message], bounds: Bounds, first: Callable[[], Message | None] = lambda: None) -> Selection:
    """Select of a path, newest message first; it is read as far as is needed.

    The newest message is taken in any case, and where that is a tool's result, the call too. Of the newest
    ``messages_max`` messages the ``system`` ones are taken in any case too, and count first, where tokens are bounded.
    Then as many of the newest as fit. It ends before a result whose call does not fit, so that both are for the next
    page: but for what is taken in any case, nothing older than ``following`` is here, and all that is newer.

    ``first`` gives the conversation's first message where it is a prompt. It is asked where the path was not looked at
    up to its root, and counts first, against all bounds.
    """
    window = _Window(path)
    if not window.reaches(1):
        return Selection(newest_first=(), near=0, following=None, is_truncated=False)
    selection = _select(window, bounds)
    ahead = None if window.has_root else first()
    if ahead is None:
        return selection
    return msgspec.structs.replace(_select(window, bounds.beside(ahead)), ahead=ahead)


def _select(window: _Window, bounds: Bounds) -> Selection:
    must = _bound_to_newest(window)
    if bounds.tokens_max is not None:
        # Without such a bound whoever reads on comes to them by the cursor; the way to them is not paid for twice.
        window.reaches(bounds.messages_max)
        newest = window.messages[: bounds.messages_max]
        must |= {message.id for message in newest if message.role == "system"}
    end = _fill(window, bounds, must)
    pairs = window.pairs(end)
    while True:
        near = window.messages[:end]
        far = [message for message in window.messages[end:] if message.id in must]
        torn = pairs.torn(frozenset(message.id for message in [*near, *far]), is_whole=window.has_root) - must
        if not torn:
            break
        end = next(place for place, message in enumerate(near) if message.id in torn)  # the newest is not
    following = window.messages[end].id if end < len(window.messages) else near[-1].parent
    return Selection(newest_first=(*near, *far), near=end, following=following, is_truncated=following is not None)


def _bound_to_newest(window: _Window) -> set[str]:
    """The newest message, and what it cannot be without."""
    bound = {window.messages[0].id}
    for reach, further in pairwise((*_REACHES, CONTEXT_MESSAGES_MAX + 1)):
        pairs = Pairs.of(window.messages[:reach])
        while more := {half for pair in pairs.links if bound & set(pair) for half in pair} - bound:
            bound |= more
        if not pairs.open & bound or not window.reaches(reach + 1):
            break
        window.reaches(further)
    return bound


def _fill(window: _Window, bounds: Bounds, must: set[str]) -> int:
    """How many of the newest messages fit, beside those that have to be there."""
    counted = [message for message in window.messages if message.id in must]
    tokens = sum(message.tokens.count for message in counted)
    size = sum(bounds.size(message) for message in counted)
    end = 0
    while end < bounds.messages_max and window.reaches(end + 1):
        message = window.messages[end]
        if message.id not in must:
            tokens += message.tokens.count
            size += bounds.size(message)
            if bounds.tokens_max is not None and tokens > bounds.tokens_max:
                break
            if bounds.size_max is not None and size > bounds.size_max:
                break
        end += 1
    while end < len(window.messages) and window.messages[end].id in must:
        end += 1
    return end
