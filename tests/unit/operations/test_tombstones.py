"""Tombstones out of one table and into another: what was deleted after a backup stays deleted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from operations.tombstones import main, replay, saved
from tests.support.conversations import NOW_MS, conversation, message, tombstone
from tests.support.moto_table import REGION, TABLE, empty_table, moto_clients
from threadkeep.domain.model import Conversation, ConversationKey, StoredMessage
from threadkeep.ports import Gone
from threadkeep.stores.bodies_memory import BodiesMemory
from threadkeep.stores.erasures_dynamodb import ErasuresDynamoDB
from threadkeep.stores.warm_dynamodb import WarmDynamoDB

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@pytest.fixture
def table() -> Iterator[DynamoDBClient]:
    with moto_clients() as (client, _):
        yield client


class Talks:
    """Three conversations in a table: of a tenant with an awkward name, one that is deleted later, one that is not."""

    def __init__(self, client: DynamoDBClient) -> None:
        self.client = client
        self.erasures = ErasuresDynamoDB(client, TABLE)
        self.warm = WarmDynamoDB(client, TABLE, BodiesMemory())
        self.all = [
            (tenant, conversation(now_ms=NOW_MS + number)) for number, tenant in enumerate(("a#b", "acme", "acme"))
        ]
        self.keys = [ConversationKey(tenant, new.id) for tenant, new in self.all]
        self.fill()

    def fill(self) -> None:
        """As the backup has them."""
        for tenant, new in self.all:
            assert self.warm.create_conversation(tenant, new) is None
            self.warm.put_message(tenant, StoredMessage(message(ConversationKey(tenant, new.id))))

    def delete(self) -> None:
        """The first two, with a receipt begun."""
        for key in self.keys[:2]:
            self.erasures.put_tombstone(key, tombstone("ann \u754c"))
            self.erasures.note(key, "eu-central-1", "hot", count=1, is_pass=True, is_done=False, now_ms=NOW_MS)


def test_what_was_deleted_after_the_backup_is_deleted_in_the_restored_table_too(table: DynamoDBClient) -> None:
    talks = Talks(table)
    talks.delete()
    lines = list(saved(table, TABLE))
    empty_table(table)
    talks.fill()
    assert isinstance(talks.warm.read_head(talks.keys[0]), Conversation)
    assert replay(table, TABLE, lines) == (2, 0)
    for key in talks.keys[:2]:
        assert talks.warm.read_head(key) == Gone(tombstone("ann \u754c"))
        assert talks.erasures.read(key)[1] == (), "its receipt is written anew"
    assert isinstance(talks.warm.read_head(talks.keys[2]), Conversation)
    assert replay(table, TABLE, lines) == (0, 2), "again, it does nothing"


def test_all_tombstones_are_saved_over_as_many_pages_as_it_takes(
    table: DynamoDBClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    talks = Talks(table)
    talks.delete()
    scan = table.scan
    monkeypatch.setattr(table, "scan", lambda **asked: scan(**asked, Limit=1))
    assert len(list(saved(table, TABLE))) == 2


@pytest.mark.parametrize("line", ["{}", '{"pk":{"S":"acme#x"},"sk":{"S":"head"}}', '{"sk":{"S":"gone"}}'])
def test_what_is_no_tombstone_is_not_put(table: DynamoDBClient, line: str) -> None:
    with pytest.raises(ValueError, match="no tombstone"):
        replay(table, TABLE, [line])
    assert table.scan(TableName=TABLE)["Count"] == 0


def test_by_the_command_line(table: DynamoDBClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talks = Talks(table)
    talks.delete()
    file = tmp_path / "tombstones.jsonl"
    words = ["--table", TABLE, "--region", REGION, "--file", str(file)]
    assert main(["save", *words]) == 0
    empty_table(table)
    talks.fill()
    assert main(["replay", *words]) == 0
    assert "2 tombstones put into threadkeep-test, 0 stood there already" in capsys.readouterr().out
    assert isinstance(talks.warm.read_head(talks.keys[1]), Gone)
