"""The service over a metered table, and conversations of the usual sizes in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count, cycle, islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import boto3
import pytest
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
_CHATS: Final = Path(__file__).parents[1] / "data" / "chats-real.jsonl"
REAL: Final = [
    (message["role"], message["text"])
    for line in _CHATS.read_text("utf-8").splitlines()
    for message in json.loads(line)["messages"]
]
"""Real messages in their order: by whom, and what."""
REAL_TURNS: Final = [
    (question, answer)
    for (_, question), (by, answer) in pairwise(REAL)
    if by == "assistant" and 3_800 <= len(answer.encode()) <= 4_400
]
"""Questions that had an answer of about a thousand tokens, with it."""


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


@pytest.fixture(scope="module")
def table(dynalite: str) -> Iterator[DynamoDBClient]:
    """A client of a table whose reads are metered."""
    client = table_client(dynalite)
    yield client
    client.close()


@pytest.fixture
def metered(house: House, table: DynamoDBClient) -> Meter:
    """What is asked of the table behind the house."""
    return meter(house, table)


class Texts:
    """Texts as people and models wrote them (tests/data/README.md), cut to the usual sizes; each time others."""

    def __init__(self) -> None:
        self._said = {role: "\n\n".join(text for by, text in REAL if by == role) for role in ("user", "assistant")}

    def cut(self, role: str, number: int, characters: int) -> str:
        """So many characters, the next that there are; beyond the end they begin anew, at another place."""
        said = self._said[role]
        start = number * characters % (len(said) - characters)
        return said[start : start + characters]


TEXTS: Final = Texts()


def of_usual_sizes() -> Iterator[tuple[str, str]]:
    """Questions and answers in turn, with their roles, of the sizes that other stores were measured with."""
    for number in count():
        yield "user", TEXTS.cut("user", number, QUESTION_CHARS)
        yield "assistant", TEXTS.cut("assistant", number, ANSWER_CHARS)


def as_written(first: int = 0) -> Iterator[tuple[str, str]]:
    """Messages as people and models wrote them, in their order from one on, with their roles, over and over.

    There are more of them than a member of a segment holds: none meets itself again in one.
    """
    return islice(cycle(REAL), first, None)


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
