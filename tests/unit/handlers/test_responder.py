"""The function that answers: what it is told by event and environment, and what it tells Lambda."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from handlers import produce, responder
from tests.support.house import House, LambdaContext
from tests.support.logs import logged
from tests.support.model_server import ModelServer, model_server
from threadkeep import container
from threadkeep.config import Config, ModelConfig
from threadkeep.domain.errors import HotUnavailable
from threadkeep.domain.json_values import encode
from threadkeep.domain.model import Message
from threadkeep.ports import AnswerRequest
from threadkeep.responder.bedrock import Bedrock
from threadkeep.responder.recorded import Recorded, read_answers
from threadkeep.responder.transport import DirectTransport, InvokeTransport

__all__ = ["logged"]


class Deployment:
    """A question in a house, and the function's environment."""

    def __init__(self, house: House, patch: pytest.MonkeyPatch) -> None:
        self.house = house
        self.conversation = house.conversation()
        self.question = house.message(self.conversation, text=read_answers()[0].question)
        self.reply = house.new_id()
        self._patch = patch

    def configure(self, model: ModelConfig | None, **fields: Any) -> None:
        config = Config(stage="test", region="eu-central-1", model=model, **fields)
        self._patch.setattr(container, "config", lambda: config)
        responder._answering.cache_clear()
        responder._lambda_client.cache_clear()

    def event(self, **fields: Any) -> dict[str, Any]:
        """As `ports.Responder` sends it."""
        request = AnswerRequest(
            tenant="acme", user="ann", conversation=self.conversation, parent=self.question, reply=self.reply
        )
        event: dict[str, Any] = json.loads(encode(request))
        return event | fields

    def invoke(self, **fields: Any) -> dict[str, Any]:
        return responder.handler(self.event(**fields), LambdaContext())

    @property
    def stored(self) -> Message:
        stored = self.house.warm.read_message(self.house.key(self.conversation), self.reply)
        assert stored is not None
        return stored.message


@pytest.fixture
def deployment(house: House, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployment]:
    yield Deployment(house, monkeypatch)
    responder._answering.cache_clear()


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as started:
        started.script = [
            b'data: {"choices":[{"delta":{"content":"canary answer"},"finish_reason":"stop"}]}\n\n',
            b"data: [DONE]\n\n",
        ]
        yield started


def test_it_replays_recorded_answers_where_no_model_is_set(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("threadkeep.responder.recorded.Recorded", partial(Recorded, pieces_a_second=5_000.0))
    deployment.configure(ModelConfig())
    assert deployment.invoke() == {"outcome": "complete"}
    assert encode(deployment.stored.parts) == encode([{"type": "text", "text": read_answers()[0].answer}])
    assert deployment.invoke() == {"outcome": "closed"}


def test_it_asks_the_endpoint_that_is_set_with_the_key_from_its_secret(
    deployment: Deployment, server: ModelServer, monkeypatch: pytest.MonkeyPatch, logged: Callable[[], str]
) -> None:
    secrets = {"model-key": "canary-key"}
    monkeypatch.setattr(
        "aws_lambda_powertools.utilities.parameters.get_secret",
        lambda name, max_age: secrets[name] if max_age else None,
    )
    deployment.configure(
        ModelConfig(kind="openai", name="m", base_url=server.url, api_key_secret="model-key", system="Be kind.")
    )
    assert deployment.invoke() == {"outcome": "complete"}
    ((_, headers, request),) = server.requests
    assert headers["Authorization"] == "Bearer canary-key"
    assert request["messages"][0] == {"role": "system", "content": "Be kind."}
    assert deployment.stored.model == "m"
    assert "canary" not in logged()


def test_it_reads_no_more_of_the_conversation_than_is_set(deployment: Deployment, server: ModelServer) -> None:
    deployment.question = deployment.house.message(deployment.conversation, deployment.question, "And in short?")
    deployment.reply = deployment.house.new_id()
    deployment.configure(ModelConfig(kind="openai", name="m", base_url=server.url, context_messages_max=1))
    deployment.invoke()
    assert server.requests[0][2]["messages"] == [{"role": "user", "content": "And in short?"}]


def test_bedrock_is_asked_in_the_functions_region(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "made-up")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "made-up")
    deployment.configure(ModelConfig(kind="bedrock", name="some.model"))
    model = responder._answering()._model
    assert isinstance(model, Bedrock)
    assert model.name == "some.model"
    meta = model._client.meta  # type: ignore[attr-defined]
    assert meta.region_name == "eu-central-1"
    assert meta.config.retries["total_max_attempts"] == 1


def test_it_writes_through_the_produce_function_where_one_is_set(
    deployment: Deployment, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    invoked: list[str] = []

    class Client:
        def invoke(self, **request: Any) -> dict[str, Any]:
            invoked.append(request["FunctionName"])
            answer = produce.handler(json.loads(request["Payload"]), LambdaContext())
            return {"Payload": io.BytesIO(json.dumps(answer).encode())}

    monkeypatch.setattr("boto3.client", lambda _name, **_options: Client())
    deployment.configure(ModelConfig(kind="openai", name="m", base_url=server.url), produce_function="the-produce")
    assert deployment.invoke() == {"outcome": "complete"}
    assert set(invoked) == {"the-produce"}
    assert len(invoked) >= 3
    request = AnswerRequest(
        tenant="t", user="u", conversation=deployment.conversation, parent=deployment.question, reply=deployment.reply
    )
    assert isinstance(responder._transport(request), InvokeTransport)
    deployment.configure(ModelConfig())
    assert isinstance(responder._transport(request), DirectTransport)


def test_a_conversation_that_has_gone_on_is_no_failure(deployment: Deployment) -> None:
    deployment.configure(ModelConfig())
    deployment.house.message(deployment.conversation, deployment.question, "Never mind.")
    assert deployment.invoke() == {"outcome": "refused"}


@pytest.mark.parametrize(
    "fields",
    [
        {"tenant": ""},
        {"reply": "canary"},
        {"parent": None},
        {"internal": "threadkeep.produce"},
        {"internal": None},
        {"command": "canary", "internal": "threadkeep.produce"},
        {"fork": "canary"},
    ],
)
def test_an_event_that_is_none_fails_and_its_content_is_not_logged(
    deployment: Deployment, fields: dict[str, Any], logged: Callable[[], str]
) -> None:
    deployment.configure(ModelConfig())
    with pytest.raises(responder.AnswerFailed) as failed:
        deployment.invoke(**fields)
    assert failed.value.__cause__ is None
    assert failed.value.__suppress_context__
    printed = logged()
    assert "ValidationError" in printed
    assert "canary" not in printed


def test_what_cannot_be_opened_is_told_to_lambda_which_tries_again(deployment: Deployment) -> None:
    class Away:
        def __getattr__(self, _name: str) -> Any:
            raise HotUnavailable("away")

    deployment.configure(ModelConfig())
    responder._answering()._timing = Hasty()
    deployment.house.replace(hot=Away())
    with pytest.raises(responder.AnswerFailed):
        deployment.invoke()


class Hasty:
    """Time that passes by waiting alone."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def now_s(self) -> float:
        return self._now_s

    def sleep(self, seconds: float) -> None:
        self._now_s += seconds


def test_without_a_model_it_says_which_setting_is_missing(deployment: Deployment, logged: Callable[[], str]) -> None:
    deployment.configure(None)
    with pytest.raises(responder.AnswerFailed):
        deployment.invoke()
    assert "ConfigError" in logged()
