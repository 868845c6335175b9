"""From a request to a settled answer: each way to end, told apart (the case numbers are those of public reports)."""

from __future__ import annotations

import pytest
from msgspec import UNSET

from tests.support.conversations import tombstone
from tests.support.house import LAPTOP, WORKER
from tests.unit.threadkeep.responder.scene import Said, Scene, hot_is_away, nothing
from threadkeep.domain.bounds import STREAM_BYTES_MAX
from threadkeep.domain.commands import AppendStream, CloseStream, OpenStream
from threadkeep.domain.errors import Refused, TierUnavailable, WarmUnavailable
from threadkeep.responder.answers import (
    Cut,
    Ended,
    Failed,
    ReasoningPiece,
    TextPiece,
    ToolCallBegun,
    ToolCallEnded,
    ToolCallPiece,
    Usage,
)
from threadkeep.responder.prompt import INTERRUPTED, AssistantTurn, ToolUse, UserTurn


def stop(scene: Scene) -> None:
    """The reader stops the answer, from another device than it asks from."""
    scene.house.ok(LAPTOP, "stream.cancel", conversation=scene.conversation, stream=scene.reply)


# --- the good end -------------------------------------------------------------------------------------------------


def test_an_answer_is_complete_with_its_text_usage_and_stop_reason(scene: Scene) -> None:
    assert (
        scene.respond(
            (0.3, ReasoningPiece("Think")),
            (0.4, ReasoningPiece("ing.")),
            (0.5, TextPiece("A stream ")),
            (0.6, TextPiece("flows.")),
            (0.7, Usage(7, 5)),
            (0.7, Ended("stop")),
        )
        == "complete"
    )
    assert scene.parts == [{"type": "reasoning", "text": "Thinking."}, {"type": "text", "text": "A stream flows."}]
    stored = scene.stored
    assert (stored.status, stored.role, stored.parent, stored.model) == (
        "complete",
        "assistant",
        scene.question,
        "scripted",
    )
    assert stored.tokens.count == 5
    assert {name: bytes(value) for name, value in stored.metadata.items()} == {"stop_reason": b'"stop"'}
    assert scene.model.prompts[0].turns == (UserTurn("What is a stream?"),)
    assert scene.house.hot.live(scene.key) == ()


def test_its_viewers_see_it_grow_and_settle(scene: Scene) -> None:
    scene.watch()
    scene.respond((0.2, TextPiece("one ")), (1.4, TextPiece("two")), (3.0, Ended("stop")))
    assert len(scene.frames("stream.opened")) == 1
    texts = [op[2] for frame in scene.frames("stream.delta") for op in frame["ops"] if op[0] == "text"]
    assert texts == ["one ", "two"]
    assert scene.frames("message.created")[-1]["message"]["parts"] == [{"type": "text", "text": "one two"}]


def test_it_beats_every_second_while_the_model_is_silent(scene: Scene) -> None:
    scene.respond((60.0, TextPiece("at last")), (60.1, Ended("stop")))
    beats = [command for command in scene.transport.of(AppendStream) if bytes(command.ops) == b"[]"]
    assert len(beats) == 59
    assert scene.text == "at last"


# --- A17, A22, A25: four ends, told apart ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("end", "status", "error"),
    [
        (
            (2.0, Failed("model_overloaded", retryable=True)),
            "failed",
            {"code": "model_overloaded", "message": "The model's provider failed.", "retryable": True},
        ),
        (
            (2.0, Failed("content_policy", retryable=False)),
            "failed",
            {"code": "content_policy", "message": "The model's provider failed.", "retryable": False},
        ),
        (
            (2.0, Cut()),
            "interrupted",
            {"code": "connection_lost", "message": "The connection to the model broke off.", "retryable": True},
        ),
        (
            (2.0, Failed("silent", retryable=True)),
            "failed",
            {"code": "silent", "message": "The model said nothing for too long.", "retryable": True},
        ),
        (
            (2_000.0, Ended("stop")),  # later than anybody waits
            "failed",
            {"code": "silent", "message": "The model said nothing for too long.", "retryable": True},
        ),
    ],
)
@pytest.mark.parametrize("text", ["", "half an answ"])
def test_each_end_has_its_status_and_code_and_keeps_what_was_said(
    scene: Scene, end: Said, status: str, error: dict[str, object], text: str
) -> None:
    assert scene.respond(*([(1.0, TextPiece(text))] if text else []), end) == status
    assert scene.stored.status == status
    assert scene.error == error
    assert scene.parts == ([{"type": "text", "text": text}] if text else [])


@pytest.mark.parametrize("at_s", [0.5, 3.0])
def test_a_reader_who_stops_it_ends_it_as_stopped_and_the_model_is_told_within_two_seconds(
    scene: Scene, at_s: float
) -> None:
    said = [(0.2 * n, TextPiece(f"{n} ")) for n in range(1, 100)]
    before = [event for event in said if event[0] < at_s]
    assert scene.respond(*before, (at_s, lambda: stop(scene)), *said[len(before) :]) == "closed"
    assert scene.stored.status == "stopped"
    assert scene.stored.error is UNSET
    assert scene.text == "".join(f"{n} " for n in range(1, 100))[: len(scene.text)]
    assert scene.model.stopped_s[0] - at_s <= 2.0
    assert scene.transport.of(CloseStream) == []


def test_stopped_in_silence_the_model_is_told_at_the_next_beat(scene: Scene) -> None:
    assert scene.respond((1.0, TextPiece("a")), (7.3, lambda: stop(scene)), (500.0, TextPiece("b"))) == "closed"
    assert scene.model.stopped_s[0] - 7.3 <= 1.0
    assert scene.text == "a"


def test_an_error_after_nine_minutes_is_stored_by_its_code_without_stack_or_prompt(scene: Scene) -> None:
    said = [(30.0 * n, TextPiece(f"minute {n / 2} ")) for n in range(1, 18)]
    assert scene.respond(*said, (540.0, Failed("X", retryable=True))) == "failed"
    assert scene.error == {"code": "X", "message": "The model's provider failed.", "retryable": True}
    assert scene.text.endswith("minute 8.5 ")
    assert scene.time.now_s() < 541


def test_an_answer_that_never_ends_is_kept_as_far_as_it_came_by_minute_fourteen(scene: Scene) -> None:
    said = [(10.0 * n - 5.0, TextPiece("x")) for n in range(1, 200)]
    assert scene.respond(*said) == "failed"
    assert scene.error["code"] == "time_limit"
    assert scene.text == "x" * 84
    assert 840 <= scene.time.now_s() < 842


def test_an_answer_that_outgrows_its_bound_keeps_what_it_has(scene: Scene) -> None:
    piece = "x" * 1_000_000
    assert scene.respond(*[(n, TextPiece(piece)) for n in range(1, 20)]) == "failed"
    assert scene.error["code"] == "too_large"
    assert STREAM_BYTES_MAX - 1_100_000 < len(scene.text) <= STREAM_BYTES_MAX


def test_no_tool_is_called_again_after_an_error(scene: Scene) -> None:
    scene.respond((0.1, Failed("overloaded", retryable=True)))
    assert len(scene.model.prompts) == 1


# --- A28, A29: what an ended answer leaves for the next --------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "turns"),
    [
        ([], ()),
        ([(0.5, ReasoningPiece("Hm, let me"))], ()),
        ([(0.5, TextPiece(" \n"))], ()),
        ([(0.5, TextPiece("A str"))], (AssistantTurn("A str"),)),
    ],
)
def test_after_a_stop_the_next_turn_is_accepted_and_holds_no_empty_text(
    scene: Scene, said: list[Said], turns: tuple[AssistantTurn, ...]
) -> None:
    scene.respond(*said, (1.5, lambda: stop(scene)))
    assert scene.stored.status == "stopped"
    assert all(part["text"] for part in scene.parts)
    scene.ask_again()
    assert scene.respond((0.1, TextPiece("Yes.")), (0.2, Ended("stop"))) == "complete"
    asked = scene.model.prompts[-1].turns
    if turns:
        assert asked == (UserTurn("What is a stream?"), *turns, UserTurn("And then?"))
    else:
        assert asked == (UserTurn("What is a stream?\n\nAnd then?"),)


def call_weather(scene: Scene) -> None:
    scene.respond(
        (0.1, ToolCallBegun(0, "call_a", "weather")),
        (0.2, ToolCallPiece(0, '{"town":')),
        (0.3, ToolCallPiece(0, '"Oslo"}')),
        (0.3, ToolCallEnded(0)),
        (0.4, Ended("tool_calls")),
    )


def test_a_tool_call_whose_result_could_not_be_stored_goes_on_with_a_result_that_says_so(scene: Scene) -> None:
    call_weather(scene)
    assert scene.parts == [
        {
            "type": "tool_call",
            "call_id": "call_a",
            "name": "weather",
            "arguments": '{"town":"Oslo"}',
            "state": "incomplete",
        }
    ]
    scene.house.warm.unavailable = True
    result = [{"type": "tool_result", "call_id": "call_a", "output": "rain"}]
    refused = scene.house.say(
        WORKER, "message.create", conversation=scene.conversation, parent=scene.reply, role="tool", parts=result
    )
    assert refused["code"] == "unavailable"
    scene.house.warm.unavailable = False
    scene.ask_again()
    assert scene.respond((0.1, TextPiece("Yes.")), (0.2, Ended("stop"))) == "complete"
    assert scene.model.prompts[-1].turns == (
        UserTurn("What is a stream?"),
        AssistantTurn("", (ToolUse("call00000", "weather", '{"town":"Oslo"}', INTERRUPTED),)),
        UserTurn("And then?"),
    )


def test_a_tool_call_whose_result_was_stored_at_the_second_try_is_a_pair(scene: Scene) -> None:
    call_weather(scene)
    result = [{"type": "tool_result", "call_id": "call_a", "output": "rain"}]
    stored = scene.house.ok(
        WORKER, "message.create", conversation=scene.conversation, parent=scene.reply, role="tool", parts=result
    )
    scene.question, scene.reply = stored["message"]["id"], scene.house.new_id()
    assert scene.respond((0.1, TextPiece("It rains.")), (0.2, Ended("stop"))) == "complete"
    assert scene.model.prompts[-1].turns[-1] == AssistantTurn(
        "", (ToolUse("call00000", "weather", '{"town":"Oslo"}', "rain"),)
    )


def test_a_conversation_without_a_question_fails_without_asking_the_model(scene: Scene) -> None:
    scene.conversation = scene.house.conversation()
    scene.question = scene.house.message(scene.conversation, None, " ")
    scene.reply = scene.house.new_id()
    assert scene.respond() == "failed"
    assert scene.error["code"] == "no_question"
    assert scene.parts == []
    assert scene.model.prompts == []


# --- delivered twice ------------------------------------------------------------------------------------------------


def test_a_second_delivery_while_the_first_writes_ends_quietly_and_asks_no_model(scene: Scene) -> None:
    twice: list[str] = []

    def deliver_again() -> None:
        first, scene.transport = scene.transport, scene.new_transport()
        script = scene.model.script
        twice.append(scene.respond((0.0, TextPiece("another")), (0.1, Ended("stop"))))
        scene.transport, scene.model.script = first, script

    assert scene.respond((0.1, TextPiece("one")), (0.5, deliver_again), (1.0, Ended("stop"))) == "complete"
    assert twice == ["held"]
    assert len(scene.model.prompts) == 1
    assert scene.text == "one"


def test_a_second_delivery_after_the_first_settled_ends_quietly_and_asks_no_model(scene: Scene) -> None:
    said: list[Said] = [(0.1, TextPiece("one")), (0.2, Ended("stop"))]
    assert scene.respond(*said) == "complete"
    scene.lose_hot()
    scene.transport = scene.new_transport()
    assert scene.respond(*said) == "closed"
    assert len(scene.model.prompts) == 1
    assert scene.text == "one"


def test_stopped_before_the_opening_the_model_is_never_asked(scene: Scene) -> None:
    stop(scene)
    assert scene.respond((0.1, TextPiece("y")), (0.2, Ended("stop"))) == "closed"
    assert scene.model.prompts == []
    assert scene.house.warm.read_message(scene.key, scene.reply) is None


# --- where it has no place ------------------------------------------------------------------------------------------


def test_a_conversation_that_has_gone_on_refuses_it_and_a_fork_takes_it(scene: Scene) -> None:
    scene.house.message(scene.conversation, scene.question, "Never mind.")
    with pytest.raises(Refused) as refused:
        scene.respond((0.1, Ended("stop")))
    assert refused.value.reason == "stale_leaf"
    assert scene.model.prompts == []
    assert scene.respond((0.1, TextPiece("But")), (0.2, Ended("stop")), fork=True) == "complete"
    assert scene.stored.parent == scene.question
    assert scene.model.prompts[0].turns == (UserTurn("What is a stream?"),)


def test_a_deleted_conversation_refuses_it_in_the_middle_too(scene: Scene) -> None:
    def delete() -> None:
        scene.house.warm.gone[scene.key] = tombstone("ann")
        scene.lose_hot()
        scene.house.clock.ms += 60_000

    with pytest.raises(Refused) as refused:
        scene.respond((0.1, TextPiece("a")), (0.5, delete), (0.6, TextPiece("b")), (90.0, Ended("stop")))
    assert refused.value.code == "not_found"
    assert len(scene.model.stopped_s) == 1


def test_a_parent_that_is_not_there_yet_is_waited_for(scene: Scene) -> None:
    seen: list[OpenStream] = []

    def refuse(command: object) -> None:
        if isinstance(command, OpenStream):
            seen.append(command)
            if len(seen) < 3:
                raise Refused("conflict", "not yet", reason="parent_missing")

    scene.transport.before = refuse
    assert scene.respond((0.1, TextPiece("a")), (0.2, Ended("stop"))) == "complete"
    assert len(seen) == 3
    assert len({command.producer for command in seen}) == 1


def test_a_stream_that_cannot_be_opened_in_time_is_for_another_delivery(scene: Scene) -> None:
    scene.transport.before = hot_is_away
    with pytest.raises(TierUnavailable):
        scene.respond((0.1, Ended("stop")))
    assert 5 < scene.time.now_s() <= 10
    assert scene.model.prompts == []
    scene.transport.before = nothing
    assert scene.respond((0.1, TextPiece("a")), (0.2, Ended("stop"))) == "complete"


# --- faults ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_hot", [True, False])
def test_the_model_is_told_what_a_chat_of_300_messages_begins_with(scene: Scene, *, is_hot: bool) -> None:
    scene.house.hot.unavailable = not is_hot
    scene.conversation = scene.house.conversation()
    leaf = scene.house.message(scene.conversation, by=WORKER, role="system", text="Answer in verse.")
    for _ in range(299):
        leaf = scene.house.message(scene.conversation, leaf)
    scene.question, scene.reply = leaf, scene.house.new_id()
    scene.house.hot.unavailable = False
    assert scene.respond((0.1, TextPiece("Yes.")), (0.2, Ended("stop"))) == "complete"
    assert scene.model.prompts[0].system == "Answer in verse."
    assert len(scene.model.prompts[0].turns) == 1  # of one person, without an answer


def test_a_context_that_cannot_be_read_fails_the_answer_as_unavailable(scene: Scene) -> None:
    def table_goes(command: object) -> None:
        scene.house.warm.unavailable = isinstance(command, OpenStream)

    def table_comes(command: object) -> None:
        if isinstance(command, CloseStream):
            scene.house.warm.unavailable = False

    scene.transport.after, scene.transport.before = table_goes, table_comes
    assert scene.respond() == "failed"
    assert scene.error["code"] == "unavailable"
    assert scene.error["retryable"] is True


def test_a_fault_of_ours_closes_the_answer_and_is_raised(scene: Scene) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        scene.respond((0.1, TextPiece("a")), (0.5, fail))
    assert scene.stored.status == "failed"
    assert scene.error["code"] == "internal"
    assert scene.text == "a"


def test_an_answer_that_cannot_be_stored_is_raised_and_a_second_delivery_lets_it_be(scene: Scene) -> None:
    def table_is_away(command: object) -> None:
        if isinstance(command, CloseStream):
            raise WarmUnavailable("told to be")

    scene.transport.before = table_is_away
    with pytest.raises(TierUnavailable):
        scene.respond((0.1, TextPiece("a")), (0.2, Ended("stop")))
    assert 40 < scene.time.now_s() < 50
    assert scene.house.warm.read_message(scene.key, scene.reply) is None
    scene.transport.before = nothing
    assert scene.respond() == "held", "its log is there still: whoever finds its lease expired, settles it"
