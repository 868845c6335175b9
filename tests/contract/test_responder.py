"""Every responder takes on what it is asked, as it is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import boto3
import msgspec
import pytest
from botocore.stub import Stubber

from tests.support.hot import new_id, older_id
from threadkeep.domain.errors import TierUnavailable
from threadkeep.ports import AnswerRequest, Responder
from threadkeep.stores.responder_lambda import LambdaResponder
from threadkeep.stores.responder_memory import ResponderMemory


class Subject:
    """A responder, what it took on, and how to make it unavailable."""

    def __init__(
        self, responder: Responder, taken: Callable[[], list[AnswerRequest]], break_down: Callable[[], None]
    ) -> None:
        self.responder = responder
        self.taken = taken
        self.break_down = break_down


def in_memory() -> Subject:
    memory = ResponderMemory()

    def break_down() -> None:
        memory.unavailable = True

    return Subject(memory, lambda: memory.requests, break_down)


def on_lambda() -> Subject:
    """On the API as botocore knows it; the emulator and the account run the function itself."""
    client: Any = boto3.client(
        "lambda", region_name="eu-central-1", aws_access_key_id="made-up", aws_secret_access_key="made-up"
    )
    stubber = Stubber(client)
    stubber.activate()
    sent: list[dict[str, Any]] = []
    broken: list[bool] = []

    def answer(params: dict[str, Any], **_event: Any) -> None:
        if broken:
            stubber.add_client_error("invoke", service_error_code="TooManyRequestsException", http_status_code=429)
        else:
            sent.append(params)
            stubber.add_response("invoke", {"StatusCode": 202})

    client.meta.events.register("provide-client-params.lambda.Invoke", answer)

    def taken() -> list[AnswerRequest]:
        assert all(one["FunctionName"] == "answers" and one["InvocationType"] == "Event" for one in sent)
        return [msgspec.json.decode(one["Payload"], type=AnswerRequest) for one in sent]

    return Subject(LambdaResponder(client, "answers"), taken, lambda: broken.append(True))


@pytest.fixture(params=[in_memory, on_lambda], ids=["memory", "lambda"])
def subject(request: pytest.FixtureRequest) -> Subject:
    made: Subject = request.param()
    return made


def requested(**fields: Any) -> AnswerRequest:
    return AnswerRequest(
        **{
            "tenant": "acme",
            "user": "ünï",
            "conversation": older_id(),
            "parent": older_id(),
            "reply": new_id(),
            **fields,
        }
    )


def test_requests_are_taken_on_in_order_and_whole(subject: Subject) -> None:
    requests = [requested(), requested(fork=True)]
    for request in requests:
        subject.responder.start(request)
    assert subject.taken() == requests


def test_the_same_request_is_taken_on_again(subject: Subject) -> None:
    request = requested()
    subject.responder.start(request)
    subject.responder.start(request)
    assert subject.taken() == [request, request]


def test_what_cannot_be_taken_on_is_told(subject: Subject) -> None:
    subject.break_down()
    with pytest.raises(TierUnavailable):
        subject.responder.start(requested())
