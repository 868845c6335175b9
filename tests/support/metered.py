"""The service over a metered table, and conversations of the usual sizes in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count, cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import boto3
from botocore.exceptions import ClientError

from tests.support.conversations import text_parts
from tests.support.house import House
from tests.support.metering import Meter
from tests.support.moto_table import TABLE, create_table
from threadkeep.domain import ids
from threadkeep.domain.model import Message, StoredMessage
from threadkeep.stores import aws_config
from threadkeep.stores.bodies_memory import BodiesMemory
from threadkeep.stores.manifests_dynamodb import ManifestsDynamoDB
from threadkeep.stores.warm_dynamodb import WarmDynamoDB

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import WriteRequestTypeDef

QUESTION_CHARS: Final = 250
ANSWER_CHARS: Final = 1_500
_BATCH: Final = 25
"""DynamoDB takes no more puts at once."""
_ROOT: Final = Path(__file__).parents[2]
_CHATS: Final = _ROOT / "tests" / "data" / "chats-demo.jsonl"
_RECORDED: Final = _ROOT / "lambdas" / "threadkeep" / "responder" / "recorded_answers.jsonl"


def table_client(endpoint: str) -> DynamoDBClient:
    """A client of an emulator, where the table now is if it was not."""
    client = boto3.client(
        "dynamodb",
        region_name="eu-central-1",
        endpoint_url=endpoint,
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=aws_config.STORE,
    )
    try:
        create_table(client)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceInUseException":
            raise
    return client


def meter(house: House, client: DynamoDBClient) -> Meter:
    """Put the table behind the house, and count what is asked of it from now on."""
    house.replace(
        warm=WarmDynamoDB(client, TABLE, BodiesMemory()),
        manifests=ManifestsDynamoDB(client, TABLE),
    )
    return Meter(client)


class Texts:
    """Texts as people and models wrote them (tests/data/README.md), cut to the usual sizes; each time others."""

    def __init__(self) -> None:
        said: dict[str, list[str]] = {"user": [], "assistant": []}
        for line in _CHATS.read_text().splitlines():
            for message in json.loads(line)["messages"]:
                said[message["role"]].append(message["text"])
        self._said = {role: "\n\n".join(texts) for role, texts in said.items()}

    def cut(self, role: str, number: int, characters: int) -> str:
        """So many characters, from a place that depends on the number."""
        said = self._said[role]
        start = number * 997 % (len(said) - characters)
        return said[start : start + characters]


TEXTS: Final = Texts()


def of_usual_sizes() -> Iterator[tuple[str, str]]:
    """Questions and answers in turn, with their roles, of the sizes that other stores were measured with."""
    for number in count():
        yield "user", TEXTS.cut("user", 2 * number, QUESTION_CHARS)
        yield "assistant", TEXTS.cut("assistant", 2 * number + 1, ANSWER_CHARS)


def as_written() -> Iterator[tuple[str, str]]:
    """Messages as people and models wrote them, with their roles, over and over.

    Each comes again after 40 KB: beyond what DEFLATE remembers (32 KiB), so that they compress like others of them.
    """
    said = [
        (message["role"], message["text"])
        for line in _CHATS.read_text().splitlines()
        for message in json.loads(line)["messages"]
    ]
    for line in _RECORDED.read_text().splitlines():
        turn = json.loads(line)
        said += [("user", turn["question"]), ("assistant", turn["answer"])]
    return cycle(said)


def turns(
    house: House, conversation: str, number: int, said: Iterator[tuple[str, str]] | None = None
) -> list[StoredMessage]:
    """So many messages of a path as they are stored, of usual sizes unless told: their ids are a minute apart."""
    made: list[StoredMessage] = []
    parent: str | None = None
    for role, text in islice(said or of_usual_sizes(), number):
        is_answer = role == "assistant"
        house.clock.ms += 60_000
        extra: dict[str, Any] = {"model": "gpt-4o-2024-05-13"} if is_answer else {}
        message = Message.new(
            id=house.new_id(),
            conversation=conversation,
            parent=parent,
            role=role,  # type: ignore[arg-type]  # of the two that there are
            status="complete",
            parts=text_parts(text),
            metadata={},
            **extra,
        )
        parent = message.id
        made.append(StoredMessage(message, ids.time_ms(message.id) if is_answer else 0))
    return made


def fill(client: DynamoDBClient, tenant: str, stored: list[StoredMessage]) -> None:
    """Write messages as the store writes them, but in batches."""
    written = _Written()
    store = WarmDynamoDB(written, TABLE, BodiesMemory())  # type: ignore[arg-type]  # all that it is asked is to put
    for each in stored:
        store.put_message(tenant, each)
    for start in range(0, len(written.items), _BATCH):
        requests: list[WriteRequestTypeDef] = [
            {"PutRequest": {"Item": item}} for item in written.items[start : start + _BATCH]
        ]
        answer = client.batch_write_item(RequestItems={TABLE: requests})
        assert not answer["UnprocessedItems"]


class _Written:
    """Keeps what would be put."""

    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []

    def put_item(self, **request: Any) -> dict[str, Any]:
        self.items.append(request["Item"])
        return {}
