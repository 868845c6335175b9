"""Bedrock, by a real boto3 client against a local server that streams its binary events."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, Final

import boto3
import pytest
from botocore.config import Config
from botocore.validate import ParamValidator

from tests.support import event_stream
from tests.support.model_server import ModelServer, model_server
from tests.unit.threadkeep.responder.scene import Scene
from threadkeep.responder.answers import (
    Cut,
    Ended,
    Event,
    Failed,
    ReasoningPiece,
    TextPiece,
    ToolCallBegun,
    ToolCallEnded,
    ToolCallPiece,
    Usage,
)
from threadkeep.responder.bedrock import Bedrock
from threadkeep.responder.prompt import AssistantTurn, Prompt, ToolUse, UserTurn
from threadkeep.responder.pump import Pump
from threadkeep.responder.respond import Answering, Settings
from threadkeep.usecases.tiers import Tiers

Said = tuple[str, dict[str, Any]]
"""An event's kind and payload."""

MODEL: Final = "some.model-v1:0"
PROMPT: Final = Prompt("", (UserTurn("Hi"),))
START: Final[Said] = ("messageStart", {"role": "assistant"})
METADATA: Final[Said] = (
    "metadata",
    {"usage": {"inputTokens": 12, "outputTokens": 34, "totalTokens": 46}, "metrics": {"latencyMs": 321}},
)


def text(index: int, piece: str) -> Said:
    return "contentBlockDelta", {"delta": {"text": piece}, "contentBlockIndex": index}


def stop(index: int) -> Said:
    return "contentBlockStop", {"contentBlockIndex": index}


def end(reason: str) -> Said:
    return "messageStop", {"stopReason": reason}


def tool(index: int, identifier: str, name: str) -> Said:
    return "contentBlockStart", {
        "start": {"toolUse": {"toolUseId": identifier, "name": name}},
        "contentBlockIndex": index,
    }


def arguments(index: int, piece: str) -> Said:
    return "contentBlockDelta", {"delta": {"toolUse": {"input": piece}}, "contentBlockIndex": index}


ANSWER: Final[list[Said]] = [
    START,
    ("contentBlockDelta", {"delta": {"reasoningContent": {"text": "Hm."}}, "contentBlockIndex": 0}),
    ("contentBlockDelta", {"delta": {"reasoningContent": {"signature": "c2ln"}}, "contentBlockIndex": 0}),
    stop(0),
    text(1, "Nä"),
    text(1, "ive 界"),
    ("contentBlockDelta", {"delta": {"citation": {"title": "a source"}}, "contentBlockIndex": 1}),
    stop(1),
    tool(2, "tooluse_a", "weather"),
    arguments(2, ""),
    arguments(2, '{"town":'),
    arguments(2, '"Oslo"}'),
    stop(2),
    tool(3, "tooluse_b", "clock"),
    stop(3),
    end("tool_use"),
    METADATA,
]


class Endpoint:
    """A server that stands for Bedrock."""

    def __init__(self, server: ModelServer) -> None:
        self.server = server
        server.headers = {"Content-Type": "application/vnd.amazon.eventstream"}

    @property
    def client(self) -> Any:
        return boto3.client(
            "bedrock-runtime",
            region_name="eu-central-1",
            endpoint_url=self.server.url.removesuffix("/v1"),
            aws_access_key_id="made-up",
            aws_secret_access_key="made-up",
            config=Config(read_timeout=0.3, connect_timeout=1, retries={"total_max_attempts": 1}),
        )

    @property
    def model(self) -> Bedrock:
        return Bedrock(self.client, MODEL)

    def say(self, *events: Said) -> None:
        self.server.script = [event_stream.event(kind, payload) for kind, payload in events]

    def ask(self, prompt: Prompt = PROMPT) -> list[Event]:
        return list(self.model.answer(prompt))


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with model_server() as server:
        yield Endpoint(server)


def test_the_events_of_these_tests_are_of_the_services_own_model(endpoint: Endpoint) -> None:
    shape = endpoint.client.meta.service_model.operation_model("ConverseStream").output_shape.members["stream"]
    for kind, payload in ANSWER:
        report = ParamValidator().validate(payload, shape.members[kind])
        assert not report.has_errors(), report.generate_report()


def test_an_answer_is_told_event_by_event(endpoint: Endpoint) -> None:
    endpoint.say(*ANSWER)
    assert endpoint.ask() == [
        ReasoningPiece("Hm."),
        TextPiece("Nä"),
        TextPiece("ive 界"),
        ToolCallBegun(0, "tooluse_a", "weather"),
        ToolCallPiece(0, '{"town":'),
        ToolCallPiece(0, '"Oslo"}'),
        ToolCallEnded(0),
        ToolCallBegun(1, "tooluse_b", "clock"),
        ToolCallEnded(1),
        Usage(12, 34),
        Ended("tool_use"),
    ]


def test_the_request_is_one_that_the_service_takes(endpoint: Endpoint) -> None:
    endpoint.say(START, end("end_turn"))
    uses = (ToolUse("call00000", "look", '{"n":1}', "seen"),)
    endpoint.ask(Prompt("Be kind.", (UserTurn("Hi"), AssistantTurn("", uses), UserTurn("Bye"))))
    ((path, _, request),) = endpoint.server.requests
    assert path == f"/model/{MODEL.replace(':', '%3A')}/converse-stream"
    assert request["system"] == [{"text": "Be kind."}]
    assert [message["role"] for message in request["messages"]] == ["user", "assistant", "user"]
    assert request["messages"][1]["content"] == [
        {"toolUse": {"toolUseId": "call00000", "name": "look", "input": {"n": 1}}}
    ]
    assert request["toolConfig"]["tools"][0]["toolSpec"]["name"] == "look"


@pytest.mark.parametrize("reason", ["malformed_model_output", "malformed_tool_use"])
def test_some_stop_reasons_are_failures(endpoint: Endpoint, reason: str) -> None:
    endpoint.say(START, text(0, "a"), end(reason), METADATA)
    assert endpoint.ask() == [TextPiece("a"), Usage(12, 34), Failed(reason, retryable=True)]


@pytest.mark.parametrize(
    ("kind", "retryable"),
    [
        ("modelStreamErrorException", True),
        ("throttlingException", True),
        ("internalServerException", True),
        ("serviceUnavailableException", True),
        ("validationException", False),
    ],
)
def test_an_exception_in_mid_stream_is_told_by_its_code(endpoint: Endpoint, kind: str, *, retryable: bool) -> None:
    endpoint.server.script = [
        event_stream.event(*START),
        event_stream.event(*text(0, "a")),
        event_stream.exception(kind, "canary"),
    ]
    assert endpoint.ask() == [TextPiece("a"), Failed(kind[0].upper() + kind[1:], retryable=retryable)]


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [(429, "ThrottlingException", True), (400, "ValidationException", False), (403, "AccessDeniedException", False)],
)
def test_a_refusal_is_told_by_its_code(endpoint: Endpoint, status: int, kind: str, *, retryable: bool) -> None:
    endpoint.server.status = status
    endpoint.server.headers = {"Content-Type": "application/json", "x-amzn-ErrorType": kind}
    endpoint.server.script = [b'{"message":"canary"}']
    assert endpoint.ask() == [Failed(kind, retryable=retryable)]


@pytest.mark.parametrize("kept", [9, 1_000_000])
def test_a_stream_that_breaks_off_is_cut(endpoint: Endpoint, kept: int) -> None:
    endpoint.say(START, text(0, "a"))
    endpoint.server.script = [*endpoint.server.script, event_stream.event(*text(0, "b"))[:kept]]
    endpoint.server.is_cut = True
    assert endpoint.ask()[-1] == Cut()
    endpoint.server.is_cut = False
    assert endpoint.ask()[-1] == Cut()


def test_silence_is_told(endpoint: Endpoint) -> None:
    endpoint.say(START, text(0, "a"))
    endpoint.server.script = [*endpoint.server.script, 2.0]
    assert endpoint.ask() == [TextPiece("a"), Failed("silent", retryable=True)]


def test_nobody_there_is_unreachable() -> None:
    with model_server() as server:
        endpoint = Endpoint(server)
        model = endpoint.model
    assert list(model.answer(PROMPT)) == [Failed("unreachable", retryable=True)]


def test_cancelled_it_ends_at_the_next_event(endpoint: Endpoint) -> None:
    endpoint.say(START, *(text(0, str(n)) for n in range(400)))
    endpoint.server.script = [step for said in endpoint.server.script for step in (said, 0.01)]
    pump = Pump(endpoint.model.answer(PROMPT))
    assert pump.take(5.0) == TextPiece("0")
    pump.stop()
    assert endpoint.server.left.wait(5.0)
    assert not any(thread.name == "threadkeep model" for thread in threading.enumerate())


def test_a_whole_answer_is_kept(endpoint: Endpoint, scene: Scene) -> None:
    endpoint.say(*ANSWER)
    answering = Answering(tiers=Tiers.of(scene.house.services), model=endpoint.model, settings=Settings())
    assert answering.respond(scene.request(), scene.transport) == "complete"
    assert [part["type"] for part in scene.parts] == ["reasoning", "text", "tool_call", "tool_call"]
    assert scene.text == "Näive 界"
    assert scene.parts[3] == {
        "type": "tool_call",
        "call_id": "tooluse_b",
        "name": "clock",
        "arguments": "",
        "state": "incomplete",
    }
    assert scene.stored.tokens.count == 34
    assert scene.stored.model == MODEL
