"""What a viewer holds: the answers that are being written, which have ended, and what is to be told of them. No I/O."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import cast

from threadkeep_client.answer import Answer
from threadkeep_client.reading import Page
from threadkeep_client.updates import Kind, Update
from threadkeep_client.wire import Message, Op


class Held:
    """The answers of one conversation, or one of them.

    Args:
        stream: the only one that is watched; None: all.
        ended_max: ids of settled messages kept.
        now: the event loop's clock.

    Attributes:
        answers: by id.
        told: updates for the consumer.
        heads: settled messages whose parts are still to be read, by id.
    """

    def __init__(self, *, stream: str | None, ended_max: int, now: Callable[[], float]) -> None:
        self.answers: dict[str, Answer] = {}
        self.told: deque[Update] = deque()
        self.heads: dict[str, Message] = {}
        self._stream = stream
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._ended_max = ended_max
        self._now = now

    def watches(self, stream: str) -> bool:
        """Whether frames of that stream are of interest."""
        return stream not in self._ended and self._stream in {None, stream}

    def knows(self, message: str) -> bool:
        """Whether it is followed, or was told."""
        return message in self._ended or message in self.answers

    def follow(self, stream: str, *, parent: str | None = None, role: str | None = None) -> Answer:
        """The answer of that id; the consumer is told where it is new."""
        answer = self.answers.get(stream)
        if answer is None:
            answer = self.answers[stream] = Answer(stream, heard_at=self._now())
            answer.shown = stream not in self.heads
            if answer.shown:
                self.told.append(Update(kind="opened", id=stream, answer=answer))
        answer.parent = parent or answer.parent
        answer.role = role or answer.role
        return answer

    def grow(self, answer: Answer, ops: list[Op], *, epoch: int, following: int) -> None:
        """Take a delta, or a page, that begins at the answer's place."""
        answer.take(ops, epoch=epoch, following=following)
        if ops:
            self.told.append(Update(kind="delta", id=answer.id, answer=answer, ops=tuple(ops)))

    def take_page(self, answer: Answer, page: Page) -> bool:
        """Take a page of a live stream, asked for from the answer's place; False if it is another page than that.

        What is older than what is held is passed over: the next delta, or the silence, asks again.
        """
        if page.epoch < answer.epoch:
            return True
        if page.epoch > answer.epoch or page.at != answer.offset:
            was_empty = answer.is_empty
            answer.restart(page.epoch)
            if not was_empty:
                self.told.append(Update(kind="restarted", id=answer.id, answer=answer))
        if page.at != answer.offset:
            return False
        self.grow(answer, page.ops, epoch=page.epoch, following=page.following)
        return True

    def settle(self, message: Message) -> None:
        """The end of a stream, or a message that had none: it replaces what was assembled."""
        answer = self.answers.get(message["id"])
        whole = cast("Message", {name: value for name, value in message.items() if name != "bytes"})
        self._forget(message["id"])
        kind: Kind = "settled" if answer is not None and answer.shown else "created"
        self.told.append(Update(kind=kind, id=message["id"], answer=answer, message=whole))

    def lose(self, answer: Answer) -> None:
        """The service does not know it any more."""
        self._forget(answer.id)
        self.told.append(Update(kind="lost", id=answer.id, answer=answer))

    def _forget(self, stream: str) -> None:
        self.answers.pop(stream, None)
        self.heads.pop(stream, None)
        self._ended[stream] = None
        while len(self._ended) > self._ended_max:
            self._ended.popitem(last=False)
