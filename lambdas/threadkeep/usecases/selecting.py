"""Which messages of a path a model is to read: the newest, within bounds, and never half of a tool's use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from typing import Final, Self

import msgspec

from threadkeep.domain.bounds import CONTEXT_MESSAGES_MAX
from threadkeep.domain.model import Message
from threadkeep.usecases.pairs import Pairs

_REACH: Final = 100
"""Messages beyond a bound that are looked through for the call of a result within it."""


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
        ahead: the prompt that goes before all of them.
        following: the id of the message that comes next on the path; None where the path has ended, with nothing of it
            left out.
    """

    newest_first: tuple[Message, ...]
    near: int
    following: str | None
    ahead: Message | None = None


class _Window:
    """A path as far as it was looked at, newest first, and how its messages belong together."""

    def __init__(self, path: Iterator[Message]) -> None:
        self._path = path
        self.messages: list[Message] = []
        self.pairs = Pairs()
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
                self.pairs.add(message)
        return len(self.messages) >= count

    def goes_on(self, most: int) -> bool:
        """Look at one more, unless these are so many already; whether there was one."""
        return len(self.messages) < most and self.reaches(len(self.messages) + 1)


def select(
    path: Iterator[Message], bounds: Bounds, prompt: Callable[[Message], Message | None] = lambda _: None
) -> Selection:
    """Select of a path, newest message first; it is read as far as is needed.

    The newest message is taken in any case, and where that is a tool's result, the call too. Of the newest
    ``messages_max`` messages the ``system`` ones are taken in any case too, and count first, where tokens are bounded.
    Then as many of the newest as fit. It ends before a result whose call does not fit, so that both are for the next
    page: but for what is taken in any case, nothing older than ``following`` is here, and all that is newer.

    ``prompt`` gives the one that the path has, by the oldest of its messages that was looked at. It is asked where that
    is not the root, and what it gives counts first, against all bounds.
    """
    window = _Window(path)
    if not window.reaches(1):
        return Selection(newest_first=(), near=0, following=None)
    bound = _bound_to_newest(window)
    selection = _select(window, bounds, bound)
    ahead = None if window.has_root else prompt(window.messages[-1])
    if ahead is None:
        return selection
    return msgspec.structs.replace(_select(window, bounds.beside(ahead), bound), ahead=ahead)


def _select(window: _Window, bounds: Bounds, bound: AbstractSet[str]) -> Selection:
    must = set(bound)
    if bounds.tokens_max is not None:
        # Without such a bound whoever reads on comes to them by the cursor; the way to them is not paid for twice.
        window.reaches(bounds.messages_max)
        newest = window.messages[: bounds.messages_max]
        must |= {message.id for message in newest if message.role == "system"}
    end = _fill(window, bounds, must)
    _look_for_calls(window, end)
    end = _before_what_is_torn(window, end, must)
    near = window.messages[:end]
    far = [message for message in window.messages[end:] if message.id in must]
    following = window.messages[end].id if end < len(window.messages) else near[-1].parent
    return Selection(newest_first=(*near, *far), near=end, following=following)


def _bound_to_newest(window: _Window) -> set[str]:
    """The newest message, and what it cannot be without."""
    bound: set[str] = set()
    waiting = window.pairs.gather(window.messages[0].id, bound)
    while waiting:
        if waiting[-1] not in window.pairs.open:
            waiting.pop()
        elif not window.goes_on(CONTEXT_MESSAGES_MAX):
            break
        elif not bound.isdisjoint(window.pairs.results.get(window.messages[-1].id, ())):
            waiting += window.pairs.gather(window.messages[-1].id, bound)
    return bound


def _look_for_calls(window: _Window, count: int) -> None:
    """Those of the newest messages' results, where they lie within reach beyond these."""
    waiting = [message.id for message in window.messages[:count]]
    while waiting:
        if waiting[-1] not in window.pairs.open:
            waiting.pop()
        elif not window.goes_on(count + _REACH):
            break


def _before_what_is_torn(window: _Window, end: int, must: AbstractSet[str]) -> int:
    """Where to end, there or before, so that all that belongs together is on one side, or is taken in any case.

    A result whose call was not seen is torn, unless the path was looked at up to its root: then it has none anywhere.
    """
    places = {message.id: place for place, message in enumerate(window.messages)}
    beyond = len(window.messages)
    spans: list[tuple[int, int]] = []  # of each group the oldest place, where that is to be on our side, and the newest
    for group in window.pairs.groups():
        inner = [places[message] for message in group if message not in must]
        is_torn = not window.has_root and any(message in window.pairs.open for message in group)
        if inner:
            spans.append((beyond if is_torn else max(inner), min(inner)))
    for oldest, newest in sorted(spans, reverse=True):
        if oldest < end:
            break  # as all that follow
        end = min(end, newest)
    return end


def _fill(window: _Window, bounds: Bounds, must: AbstractSet[str]) -> int:
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
