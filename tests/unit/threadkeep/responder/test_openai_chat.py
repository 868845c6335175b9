"""OpenAI-compatible endpoints, over real sockets (the case numbers are those of public reports)."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.model_server import ModelServer, model_server
from tests.support.serving import write_certificate
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
from threadkeep.responder.openai_chat import OpenAIChat
from threadkeep.responder.prompt import Prompt, UserTurn
from threadkeep.responder.pump import Pump
from threadkeep.responder.respond import Answering, Settings
from threadkeep.responder.timing import SystemTiming
from threadkeep.usecases.tiers import Tiers

DATA: Final = Path(__file__).parents[3] / "data"
PROMPT: Final = Prompt("Be kind.", (UserTurn("Hi"),))
DONE: Final = b"data: [DONE]\n\n"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as started:
        yield started


def model_of(server: ModelServer, **options: Any) -> OpenAIChat:
    return OpenAIChat(base_url=server.url, name="some-model", **options)


def ask(server: ModelServer, **options: Any) -> list[Event]:
    return list(model_of(server, **options).answer(PROMPT))


def event(**chunk: Any) -> bytes:
    return b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n"


def delta(finish_reason: str | None = None, **fields: Any) -> bytes:
    return event(choices=[{"index": 0, "delta": fields, "finish_reason": finish_reason}], usage=None)


def text_of(events: list[Event]) -> str:
    return "".join(said.text for said in events if isinstance(said, TextPiece))


# --- what is asked --------------------------------------------------------------------------------------------------


def test_the_model_is_asked_for_a_stream_with_its_usage(server: ModelServer) -> None:
    server.script = [delta("stop"), DONE]
    ask(server, api_key=lambda: "canary-key")
    ((path, headers, request),) = server.requests
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == "Bearer canary-key"
    assert request == {
        "model": "some-model",
        "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_without_a_key_none_is_sent(server: ModelServer) -> None:
    server.script = [DONE]
    ask(server)
    assert "Authorization" not in server.requests[0][1]


# --- what it says ---------------------------------------------------------------------------------------------------


def test_text_reasoning_usage_and_end_are_told(server: ModelServer) -> None:
    server.script = [
        delta(role="assistant", content=""),
        delta(reasoning_content="Hm"),
        delta(reasoning=", so"),
        delta(content="Hel"),
        b": keep-alive\n\n",
        delta(content="lo"),
        delta(refusal=" no"),
        delta("stop"),
        event(choices=[], usage={"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}),
        DONE,
    ]
    assert ask(server) == [
        ReasoningPiece("Hm"),
        ReasoningPiece(", so"),
        TextPiece("Hel"),
        TextPiece("lo"),
        TextPiece(" no"),
        Usage(9, 2),
        Ended("stop"),
    ]


def test_a_stream_may_end_without_done_once_it_gave_its_reason(server: ModelServer) -> None:
    server.script = [delta(content="a"), delta("length")]
    assert ask(server) == [TextPiece("a"), Ended("length")]
    server.is_cut = True
    assert ask(server) == [TextPiece("a"), Ended("length")]


def test_done_without_a_reason_is_an_end(server: ModelServer) -> None:
    server.script = [delta(content="a"), DONE]
    assert ask(server) == [TextPiece("a"), Ended("")]


def test_characters_cut_between_reads_are_whole(server: ModelServer, scene: Scene) -> None:
    """A27: of twelve network reads ten do not decode alone."""
    lines = (DATA / "stream-utf8-split.jsonl").read_text().splitlines()
    reads = [base64.b64decode(json.loads(line)["b64"]) for line in lines]
    expected = json.loads((DATA / "stream-utf8-split.expected.json").read_text())["text"]
    alone = []
    for read in reads:
        try:
            alone.append(read.decode())
        except UnicodeDecodeError:
            continue
    assert len(reads) - len(alone) == 10
    server.script = [
        b'data: {"choices":[{"delta":{"content":"' + reads[0],
        *(step for read in reads[1:] for step in (0.005, read)),
        b'"}}]}\n\n',
        delta("stop"),
        DONE,
    ]
    assert text_of(ask(server)) == expected
    assert answer(server, scene) == "complete"
    assert scene.text == expected
    assert "\ufffd" not in scene.text


def test_surrogate_pairs_cut_between_chunks_are_whole(server: ModelServer, scene: Scene) -> None:
    server.script = [
        b'data: {"choices":[{"delta":{"content":"a\\ud83d"}}]}\n\n',
        b'data: {"choices":[{"delta":{"content":"\\udc69b"}}]}\n\n',
        b'data: {"choices":[{"delta":{"content":"c\\ud83d"},"finish_reason":"stop"}]}\n\n',
        DONE,
    ]
    assert answer(server, scene) == "complete"
    assert scene.text == "a👩bc\ufffd"


# --- A26: tool calls ------------------------------------------------------------------------------------------------


def calls_of(events: list[Event]) -> list[list[str]]:
    calls: dict[int, list[str]] = {}
    for said in events:
        match said:
            case ToolCallBegun(call, call_id, name):
                calls[call] = [call_id, name, ""]
            case ToolCallPiece(call, arguments):
                calls[call][2] += arguments
    assert sum(isinstance(said, ToolCallEnded) for said in events) == len(calls)
    return [calls[call] for call in sorted(calls)]


def fragment(index: int | None, identifier: str | None = None, name: str | None = None, arguments: Any = "") -> Any:
    told = {"index": index, "id": identifier, "function": {"name": name, "arguments": arguments}}
    return {field: value for field, value in told.items() if value is not None}


def test_parallel_calls_grow_each_by_itself_and_a_changed_id_begins_another(server: ModelServer, scene: Scene) -> None:
    lines = (DATA / "stream-parallel-tools.jsonl").read_bytes().splitlines()
    server.script = [*(b"data: " + line + b"\n\n" for line in lines), DONE]
    expected = json.loads((DATA / "stream-parallel-tools.expected.json").read_text())
    events = ask(server)
    assert [[call_id, name, json.loads(arguments)] for call_id, name, arguments in calls_of(events)] == expected
    assert events[-1] == Ended("tool_calls")
    assert answer(server, scene) == "complete"
    assert [[part["call_id"], part["name"], json.loads(part["arguments"])] for part in scene.parts] == expected
    assert {part["state"] for part in scene.parts} == {"incomplete"}
    assert not any("error" in part for part in scene.parts)


@pytest.mark.parametrize(
    ("fragments", "calls"),
    [
        pytest.param(
            [fragment(0, "a", "f", "{"), fragment(0, "a", None, "}")], [["a", "f", "{}"]], id="id said every time"
        ),
        pytest.param(
            [fragment(0, "a", "f", "{}"), fragment(0, "b", "g", "{}")], [["a", "f", "{}"], ["b", "g", "{}"]], id="all 0"
        ),
        pytest.param(
            [fragment(None, "a", "f", "{"), fragment(None, None, None, "}"), fragment(None, "b", "g", "{}")],
            [["a", "f", "{}"], ["b", "g", "{}"]],
            id="no index",
        ),
        pytest.param([fragment(0, None, "f", "{"), fragment(0, "", None, "}")], [["call_0", "f", "{}"]], id="no id"),
        pytest.param([fragment(0, "a", "f", {"n": 1})], [["a", "f", '{"n": 1}']], id="an object at once"),
        pytest.param([fragment(0, "a", "f", None)], [["a", "f", ""]], id="no arguments"),
    ],
)
def test_servers_count_calls_in_their_own_ways(server: ModelServer, fragments: list[Any], calls: list[Any]) -> None:
    server.script = [*(delta(tool_calls=[told]) for told in fragments), delta("tool_calls"), DONE]
    assert calls_of(ask(server)) == calls


def test_malformed_arguments_stay_text_are_flagged_and_poison_no_later_turn(server: ModelServer, scene: Scene) -> None:
    server.script = [
        delta(tool_calls=[fragment(0, "a", "f", '{"town": "Os')]),
        delta(tool_calls=[fragment(1, "b", "g", '{"n": 1}')]),
        delta("tool_calls"),
        DONE,
    ]
    assert answer(server, scene) == "complete"
    malformed, well = scene.parts
    assert malformed["arguments"] == '{"town": "Os'
    assert malformed["error"] == {"code": "malformed_arguments"}
    assert "error" not in well
    scene.ask_again()
    server.script = [delta(content="Sorry."), delta("stop"), DONE]
    assert answer(server, scene) == "complete"
    sent = server.requests[-1][2]["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "tool", "user"]
    arguments = [json.loads(call["function"]["arguments"]) for call in sent[1]["tool_calls"]]
    assert arguments == [{"malformed_arguments": '{"town": "Os'}, {"n": 1}]


# --- how it fails ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "body", "failed"),
    [
        (
            429,
            b'{"error":{"message":"canary","type":"requests","code":"rate_limit_exceeded"}}',
            ("rate_limit_exceeded", True),
        ),
        (429, b'{"error":{"message":"canary","code":"insufficient_quota"}}', ("insufficient_quota", False)),
        (
            400,
            b'{"error":{"message":"canary","type":"invalid_request_error","code":"context_length_exceeded"}}',
            ("context_length_exceeded", False),
        ),
        (400, b'{"object":"error","message":"canary","type":"BadRequestError","code":400}', ("BadRequestError", False)),
        (404, b'{"error":"model canary not found"}', ("http_404", False)),
        (401, b'{"error":{"message":"canary","code":"a sentence about canary"}}', ("http_401", False)),
        (500, b"<html>canary</html>", ("http_500", True)),
        (503, b"", ("http_503", True)),
        (502, b"x" * 1_000_000, ("http_502", True)),
        (500, b"[" * 50_000, ("http_500", True)),
        (302, b"", ("http_302", False)),
    ],
)
def test_a_refusal_is_told_by_its_code(server: ModelServer, status: int, body: bytes, failed: tuple[str, bool]) -> None:
    server.status, server.script = status, [body] if body else []
    assert ask(server) == [Failed(*failed)]


@pytest.mark.parametrize(
    ("error", "failed"),
    [
        ({"message": "canary", "type": "server_error", "code": None}, ("server_error", True)),
        ({"message": "canary", "code": 502}, ("http_502", True)),
        ({"message": "canary", "code": 400}, ("http_400", False)),
        ("canary", ("provider_error", False)),
    ],
)
def test_an_error_in_mid_stream_ends_it(server: ModelServer, error: Any, failed: tuple[str, bool]) -> None:
    server.script = [delta(content="a"), event(error=error), delta(content="b"), DONE]
    assert ask(server) == [TextPiece("a"), Failed(*failed)]


@pytest.mark.parametrize(
    "junk", [b"data: {not json\n\n", b"data: []\n\n", b'data: {"choices":7}\n\n', b"data: " + b"[" * 50_000 + b"\n\n"]
)
def test_what_is_no_chunk_ends_it(server: ModelServer, junk: bytes) -> None:
    server.script = [delta(content="a"), junk, delta(content="b"), DONE]
    assert ask(server) == [TextPiece("a"), Failed("malformed_stream", retryable=True)]


@pytest.mark.parametrize("is_cut", [True, False])
def test_a_stream_that_ends_too_early_is_cut(server: ModelServer, *, is_cut: bool) -> None:
    server.script, server.is_cut = [delta(content="a"), b'data: {"choices":[{"delta":{"content":"b'], is_cut
    assert ask(server) == [TextPiece("a"), Cut()]


def test_a_stream_that_is_silent_for_too_long_has_failed(server: ModelServer) -> None:
    server.script = [delta(content="a"), 0.5]
    assert ask(server, silence_s=0.05) == [TextPiece("a"), Failed("silent", retryable=True)]


def test_nobody_there_is_unreachable() -> None:
    model = OpenAIChat(base_url="http://127.0.0.1:9/v1", name="m")
    assert list(model.answer(PROMPT)) == [Failed("unreachable", retryable=True)]


# --- cancelled ------------------------------------------------------------------------------------------------------


def cancel_in_silence(server: ModelServer, *said: bytes) -> None:
    """Ask, stop once the server is silent, and see that it notices."""
    server.script = [*said, 30.0]
    pump = Pump(model_of(server).answer(PROMPT))
    deadline_s = time.monotonic() + 5
    while not server.requests and time.monotonic() < deadline_s:
        time.sleep(0.005)
    if said:
        assert pump.take(5.0) == TextPiece("a")
    start_s = time.monotonic()
    pump.stop()
    assert server.left.wait(5.0)
    assert server.left_s - start_s < 1.0
    assert not any(thread.name == "threadkeep model" for thread in threading.enumerate())


@pytest.mark.parametrize("said", [[], [delta(content="a")]], ids=["before its first word", "after it"])
def test_cancelled_in_silence_the_connection_is_closed_at_once(server: ModelServer, said: list[bytes]) -> None:
    cancel_in_silence(server, *said)


def test_so_it_is_under_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = write_certificate(tmp_path / "server.pem")
    monkeypatch.setattr("certifi.where", lambda: str(certificate))
    with model_server(certificate) as server:
        assert server.url.startswith("https:")
        cancel_in_silence(server, delta(content="a"))


def test_cancelled_before_it_connects_it_ends_all_the_same(server: ModelServer) -> None:
    server.script = [delta(content="a"), 30.0]
    stream = model_of(server).answer(PROMPT)
    stream.cancel()
    assert list(stream) in ([Cut()], [Failed("unreachable", retryable=True)])


# --- the whole, for real --------------------------------------------------------------------------------------------


def answer(server: ModelServer, scene: Scene) -> str:
    """Have the scene's question answered by the server."""
    answering = Answering(
        tiers=Tiers.of(scene.house.services), model=model_of(server), settings=Settings(), timing=SystemTiming()
    )
    return answering.respond(scene.request(), scene.transport)
