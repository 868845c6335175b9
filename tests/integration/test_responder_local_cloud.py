"""The responder in the deployed service, where it has no Valkey and its answers are written by `produce`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest_asyncio
from botocore.config import Config

from local.deploy import aws_session
from local.state import STAGE
from tests.support.services import DeployedCloud
from threadkeep.domain.json_values import encode
from threadkeep.ports import AnswerRequest
from threadkeep.responder.recorded import RecordedAnswer, read_answers
from threadkeep_client import Client, new_id
from threadkeep_client.updates import Update

PATIENCE_S: Final = 120
"""Far longer than it takes, on a busy machine too."""
PATIENT: Final = Config(read_timeout=PATIENCE_S, retries={"total_max_attempts": 1})
SHORTEST: Final = min(read_answers(), key=lambda answer: len(answer.pieces))
LONGEST: Final = max(read_answers(), key=lambda answer: len(answer.pieces))


@pytest_asyncio.fixture
async def client(local_cloud: DeployedCloud) -> AsyncIterator[Client]:
    async with Client(local_cloud.state.url, local_cloud.mint_token()) as connected:
        yield connected


class Asked:
    """A question that the responder was asked, watched."""

    def __init__(self, client: Client, conversation: str) -> None:
        self.client = client
        self.conversation = conversation
        self.question = new_id()
        self.reply = new_id(after=self.question)
        self.updates: list[Update] = []

    async def settled(self, answer: RecordedAnswer) -> Update:
        """Ask, and watch until the reply has settled."""
        async with self.client.watch(self.conversation) as viewer:
            await self.client.create_message(
                self.conversation, answer.question, parent=None, message=self.question, reply=self.reply
            )
            async with asyncio.timeout(PATIENCE_S):
                async for update in viewer:
                    self.updates += [update] if update.id == self.reply else []
                    if update.id == self.reply and update.kind == "settled":
                        return update
        raise AssertionError([update.kind for update in self.updates])


@pytest_asyncio.fixture
async def asked(client: Client) -> Asked:
    return Asked(client, (await client.create_conversation(title="asked"))["id"])


def environment(cloud: DeployedCloud, function: str) -> dict[str, str]:
    functions: Any = aws_session().client("lambda", endpoint_url=cloud.state.endpoint)
    told = functions.get_function_configuration(FunctionName=f"threadkeep-{STAGE}-{function}")
    return dict(told["Environment"]["Variables"])


def invoke(cloud: DeployedCloud, function: str, request: AnswerRequest) -> dict[str, Any]:
    functions: Any = aws_session().client("lambda", endpoint_url=cloud.state.endpoint, config=PATIENT)
    answer = functions.invoke(FunctionName=f"threadkeep-{STAGE}-{function}", Payload=encode(request))
    assert "FunctionError" not in answer, answer["Payload"].read()
    return dict(json.loads(answer["Payload"].read()))


def test_the_responder_does_not_know_where_valkey_is(local_cloud: DeployedCloud) -> None:
    """So that what the next tests see has come by `produce`."""
    told = environment(local_cloud, "responder")
    assert not [name for name in told if name.startswith("THREADKEEP_HOT_")]
    assert told["THREADKEEP_PRODUCE_FUNCTION"] == f"threadkeep-{STAGE}-produce"
    assert "THREADKEEP_HOT_HOST" in environment(local_cloud, "produce")


async def test_an_answer_is_seen_as_it_grows_and_stored_as_it_was_given(asked: Asked) -> None:
    settled = await asked.settled(SHORTEST)
    kinds = [update.kind for update in asked.updates]
    assert kinds[0] == "opened"
    assert "delta" in kinds
    assert settled.message is not None
    assert settled.message["status"] == "complete"
    question, answer = await asked.client.history(asked.conversation)
    assert (question["id"], answer["id"]) == (asked.question, asked.reply)
    assert (answer["model"], answer["parent"], answer["status"]) == ("recorded", asked.question, "complete")
    assert answer["parts"] == [{"type": "text", "text": SHORTEST.answer}]


async def test_a_stop_reaches_the_responder_by_the_same_way(local_cloud: DeployedCloud, asked: Asked) -> None:
    """Invoked by the test, which so hears what came of it."""
    conversation = asked.conversation
    await asked.client.create_message(conversation, LONGEST.question, parent=None, message=asked.question)
    request = AnswerRequest(
        tenant="acme", user="ada", conversation=conversation, parent=asked.question, reply=asked.reply
    )
    async with asked.client.watch(conversation) as viewer, asyncio.timeout(PATIENCE_S):
        answering = asyncio.create_task(asyncio.to_thread(invoke, local_cloud, "responder", request))
        async for update in viewer:
            if update.kind == "delta":
                break
        await asked.client.connection.request("stream.cancel", conversation=conversation)
        assert await answering == {"outcome": "closed"}
    _, answer = await asked.client.history(conversation)
    assert (answer["id"], answer["status"]) == (asked.reply, "stopped")
    (part,) = answer["parts"]
    assert LONGEST.answer.startswith(part["text"])
    assert part["text"] != LONGEST.answer
