from __future__ import annotations

import threading

import pytest

from tests.unit.threadkeep.responder.scene import Scene
from threadkeep.responder.answers import Ended, TextPiece, Usage
from threadkeep.responder.prompt import AssistantTurn, Prompt, UserTurn
from threadkeep.responder.pump import Pump
from threadkeep.responder.recorded import Recorded, RecordedAnswer, read_answers
from threadkeep.responder.respond import Answering, Settings
from threadkeep.usecases.tiers import Tiers

ONE = RecordedAnswer(question="one?", answer="One  is\n\nfirst, 界 of all-that-comes.", model="m", source="s")
TWO = RecordedAnswer(question="two?", answer="Two.", model="m", source="s")


def prompt(question: str) -> Prompt:
    return Prompt("", (UserTurn("two?"), AssistantTurn("Two."), UserTurn(question)))


def said(model: Recorded, question: str) -> str:
    return "".join(event.text for event in model.answer(prompt(question)) if isinstance(event, TextPiece))


def test_a_recorded_question_gets_its_answer_in_pieces_at_the_pace_told() -> None:
    waits: list[float] = []

    def wait(_cancelled: threading.Event, seconds: float) -> bool:
        waits.append(seconds)
        return False

    model = Recorded((TWO, ONE), pieces_a_second=10, wait=wait)
    *pieces, usage, end = model.answer(prompt("one?"))
    assert "".join(piece.text for piece in pieces if isinstance(piece, TextPiece)) == ONE.answer
    assert len(pieces) == 7
    assert waits == [0.1] * len(pieces)
    assert usage == Usage(0, len(pieces))
    assert end == Ended("stop")


def test_any_other_question_gets_always_the_same_answer() -> None:
    model = Recorded((ONE, TWO), pieces_a_second=1e9)
    answers = {question: said(model, question) for question in map(str, range(20))}
    assert set(answers.values()) == {ONE.answer, TWO.answer}
    assert {question: said(model, question) for question in answers} == answers


@pytest.mark.parametrize("answer", read_answers(), ids=lambda answer: answer.question[:20])
def test_the_answers_that_come_along_are_whole_and_say_where_they_come_from(answer: RecordedAnswer) -> None:
    assert "".join(answer.pieces) == answer.answer
    assert max(map(len, answer.pieces)) < 40
    assert answer.model
    assert "Apache-2.0" in answer.source


def test_cancelled_it_ends_at_once() -> None:
    pump = Pump(Recorded((ONE,), pieces_a_second=0.01).answer(prompt("one?")))
    pump.stop()
    assert not any(thread.name == "threadkeep model" for thread in threading.enumerate())


def test_it_answers_a_conversation(scene: Scene) -> None:
    answers = read_answers()
    scene.question = scene.house.message(scene.conversation, scene.question, answers[0].question)
    scene.reply = scene.house.new_id()
    answering = Answering(
        tiers=Tiers.of(scene.house.services), model=Recorded(answers, pieces_a_second=5_000), settings=Settings()
    )
    assert answering.respond(scene.request(), scene.transport) == "complete"
    assert scene.text == answers[0].answer
