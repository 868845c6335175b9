"""The internal entry: a form of its own, the same use cases, and the transport that calls it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from msgspec import Raw

from handlers import produce
from tests.support.house import PHONE, WORKER, House, LambdaContext, message_event
from tests.support.logs import logged
from threadkeep.domain.commands import AppendStream, CloseStream, OpenStream
from threadkeep.domain.errors import HotUnavailable, Refused, TierUnavailable
from threadkeep.domain.json_values import encode
from threadkeep.ports import AnswerRequest
from threadkeep.responder.transport import InvokeTransport, ProduceRequest, producing

__all__ = ["logged"]


class Function:
    """What a Lambda client is to the transport: it invokes the handler, by way of JSON, or fails as it is told."""

    def __init__(self) -> None:
        self.invoked: list[dict[str, Any]] = []
        self.error: Exception | None = None
        self.function_error = False

    def invoke(self, **request: Any) -> dict[str, Any]:
        self.invoked.append(request)
        if self.error is not None:
            raise self.error
        if self.function_error:
            return {"FunctionError": "Unhandled", "Payload": io.BytesIO(b'{"errorMessage":"canary"}')}
        answer = produce.handler(json.loads(request["Payload"]), LambdaContext())
        return {"Payload": io.BytesIO(json.dumps(answer).encode())}


class Written:
    """A conversation with a question, and a transport to its answer."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.function = Function()
        self.transport = InvokeTransport(self.function, "produce", producing("acme", "ann"))  # type: ignore[arg-type]
        self.conversation = house.conversation()
        self.question = house.message(self.conversation)
        self.stream = house.new_id()

    def open(self, producer: str = "run-1") -> dict[str, Any]:
        return self.transport.send(
            OpenStream(
                conversation=self.conversation,
                message=self.stream,
                parent=self.question,
                role="assistant",
                producer=producer,
                metadata={"n": Raw(b"1.0")},
            )
        )

    def append(self, epoch: int, offset: int, text: str) -> dict[str, Any]:
        return self.transport.send(
            AppendStream(
                conversation=self.conversation,
                stream=self.stream,
                epoch=epoch,
                offset=offset,
                ops=Raw(encode([["text", 0, text]])),
            )
        )

    def close(self, epoch: int, offset: int, **fields: Any) -> dict[str, Any]:
        return self.transport.send(
            CloseStream(
                conversation=self.conversation,
                stream=self.stream,
                epoch=epoch,
                offset=offset,
                status="complete",
                usage={"output_tokens": Raw(b"3")},
                **fields,
            )
        )


@pytest.fixture
def written(house: House) -> Written:
    return Written(house)


def test_an_answer_is_written_through_the_function(written: Written) -> None:
    epoch = written.open()["epoch"]
    assert written.append(epoch, 0, "Hé ") == {"epoch": None, "offset": 1}
    assert written.append(epoch, 1, "界") == {"epoch": None, "offset": 2}
    written.close(epoch, 2)
    stored = written.house.warm.read_message(written.house.key(written.conversation), written.stream)
    assert stored is not None
    assert encode(stored.message.parts) == '[{"type":"text","text":"Hé 界"}]'.encode()
    assert bytes(stored.message.metadata["n"]) == b"1.0", "numbers keep their kind"
    assert stored.message.tokens.count == 3


def test_a_body_is_carried_whole(written: Written) -> None:
    epoch = written.open()["epoch"]
    written.house.lose_hot()
    part = {"type": Raw(b'"text"'), "text": Raw(encode("x" * 300_000)), "n": Raw(b"1e0")}
    written.close(epoch, 1, body=[part], parent=written.question, role="assistant")
    stored = written.house.warm.read_message(written.house.key(written.conversation), written.stream)
    assert stored is not None
    assert encode(stored.message.parts) == encode([part])


def test_verdicts_come_back_as_what_they_are(written: Written) -> None:
    epoch = written.open()["epoch"]
    with pytest.raises(Refused) as gap:
        written.append(epoch, 7, "a")
    assert (gap.value.code, gap.value.detail) == ("gap", {"expected": 0})
    with pytest.raises(Refused) as held:
        written.open("run-2")
    assert (held.value.code, held.value.reason) == ("conflict", "held")
    with pytest.raises(Refused) as unknown:
        written.append(epoch + 1, 0, "a")
    assert unknown.value.code == "not_found"
    written.close(epoch, 0)
    with pytest.raises(Refused) as closed:
        written.append(epoch, 0, "a")
    assert (closed.value.code, closed.value.detail) == ("closed", None)


def test_a_tier_that_is_away_is_so_on_the_other_side(written: Written) -> None:
    class Away:
        def __getattr__(self, _name: str) -> Any:
            raise HotUnavailable("away")

    epoch = written.open()["epoch"]
    written.house.replace(hot=Away())
    with pytest.raises(TierUnavailable):
        written.append(epoch, 0, "a")


@pytest.mark.parametrize(
    "error",
    [
        ClientError({"Error": {"Code": "TooManyRequestsException"}}, "Invoke"),
        EndpointConnectionError(endpoint_url="http://lambda"),
    ],
)
def test_a_function_that_cannot_be_invoked_is_a_tier_that_is_away(written: Written, error: Exception) -> None:
    written.function.error = error
    with pytest.raises(TierUnavailable):
        written.open()


def test_a_function_that_fails_is_a_tier_that_is_away(written: Written) -> None:
    written.function.function_error = True
    with pytest.raises(TierUnavailable) as unavailable:
        written.open()
    assert "canary" not in str(unavailable.value)


def test_a_fault_of_ours_is_internal_and_noted_without_its_text(written: Written, logged: Callable[[], str]) -> None:
    class Broken:
        def __getattr__(self, _name: str) -> Any:
            raise ZeroDivisionError("canary")

    epoch = written.open()["epoch"]
    written.house.replace(hot=Broken())
    with pytest.raises(Refused) as refused:
        written.append(epoch, 0, "canary")
    assert refused.value.code == "internal"
    assert refused.value.retryable
    printed = logged()
    assert "ZeroDivisionError" in printed
    assert "canary" not in printed


def test_it_writes_for_the_tenant_that_the_event_names_and_no_other(written: Written) -> None:
    written.transport = InvokeTransport(written.function, "produce", producing("umbrella", "ann"))  # type: ignore[arg-type]
    with pytest.raises(Refused) as refused:
        written.open()
    assert refused.value.code == "not_found"


def test_no_frame_of_a_client_can_look_like_its_event(written: Written) -> None:
    request = ProduceRequest(
        tenant="acme",
        user="ann",
        command=encode(
            AppendStream(conversation=written.conversation, stream=written.stream, epoch=1, offset=0, ops=Raw(b"[]"))
        ).decode(),
    )
    body = encode(request).decode()
    assert json.loads(body)["internal"] == "threadkeep.produce"
    assert written.house.post(PHONE, body)["code"] == "bad_request", "it is no frame"
    answer = AnswerRequest(
        tenant="acme", user="ann", conversation=written.conversation, parent=written.question, reply=written.stream
    )
    events = [
        message_event(WORKER, body, route="stream.append"),
        message_event(WORKER, body) | json.loads(body),
        {name: value for name, value in json.loads(body).items() if name != "internal"},
        json.loads(body) | {"command": "{}"},
        json.loads(encode(answer)),
        json.loads(body) | {"command": '{"action":"conversation.create"}'},
    ]
    for event in events:
        assert produce.handler(event, LambdaContext())["refused"]["code"] == "bad_request"
    assert produce.handler(json.loads(body), LambdaContext())["refused"]["code"] == "not_found"
