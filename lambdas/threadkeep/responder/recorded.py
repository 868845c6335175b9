"""A model that replays recorded answers, at a model's pace: what a deployment answers with where no model is set.

The answers are real ones; `recorded_answers.jsonl` says of each where it comes from.
"""

from __future__ import annotations

import re
import threading
import zlib
from collections.abc import Callable, Iterator
from importlib import resources
from typing import Final

import msgspec

from threadkeep.responder.answers import Ended, Event, TextPiece, Usage
from threadkeep.responder.prompt import Prompt, UserTurn

PIECES_A_SECOND: Final = 50.0
_PIECE: Final = re.compile(r"\s*\S{1,8}|\s+")
_FILE: Final = "recorded_answers.jsonl"


class RecordedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A question and how a model once answered it.

    Attributes:
        model: which one.
        source: the collection that it is of.
    """

    question: str
    answer: str
    model: str
    source: str

    @property
    def pieces(self) -> tuple[str, ...]:
        """The answer in pieces of about the size of tokens; joined they are the answer."""
        return tuple(_PIECE.findall(self.answer))


class Recorded:
    """`Model` that replays.

    Args:
        answers: to choose from; at least one.
        pieces_a_second: how fast.
        wait: waits for so many seconds, or until the answer is cancelled, and says whether it was.
    """

    def __init__(
        self,
        answers: tuple[RecordedAnswer, ...],
        *,
        pieces_a_second: float = PIECES_A_SECOND,
        wait: Callable[[threading.Event, float], bool] = threading.Event.wait,
    ) -> None:
        self._answers = answers
        self._pause_s = 1 / pieces_a_second
        self._wait = wait

    @property
    def name(self) -> str:
        """See `Model`."""
        return "recorded"

    def answer(self, prompt: Prompt) -> RecordedStream:
        """See `Model`: to a question that was recorded its own answer, to any other always the same one."""
        question = next((turn.text for turn in reversed(prompt.turns) if isinstance(turn, UserTurn)), "")
        matching = [answer for answer in self._answers if answer.question == question]
        chosen = matching or [self._answers[zlib.crc32(question.encode()) % len(self._answers)]]
        return RecordedStream(chosen[0].pieces, pause_s=self._pause_s, wait=self._wait)


class RecordedStream:
    """One answer."""

    def __init__(
        self, pieces: tuple[str, ...], *, pause_s: float, wait: Callable[[threading.Event, float], bool]
    ) -> None:
        self._pieces = pieces
        self._pause_s = pause_s
        self._wait = wait
        self._is_cancelled = threading.Event()

    def __iter__(self) -> Iterator[Event]:
        """See `AnswerStream`."""
        for piece in self._pieces:
            if self._wait(self._is_cancelled, self._pause_s):
                return
            yield TextPiece(piece)
        yield Usage(0, len(self._pieces))
        yield Ended("stop")

    def cancel(self) -> None:
        """See `AnswerStream`."""
        self._is_cancelled.set()


def read_answers() -> tuple[RecordedAnswer, ...]:
    """The answers that come with this package."""
    lines = resources.files(__package__).joinpath(_FILE).read_bytes().splitlines()
    return tuple(msgspec.json.decode(line, type=RecordedAnswer) for line in lines)
