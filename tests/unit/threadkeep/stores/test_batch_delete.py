"""Case A49: a batch reports success and leaves items out. None may be taken for done that is not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from botocore.stub import Stubber

from tests.support.conversations import NOW_MS
from tests.support.moto_table import TABLE, moto_clients
from threadkeep.domain import ids
from threadkeep.domain.errors import WarmUnavailable
from threadkeep.domain.model import ConversationKey
from threadkeep.stores import table_keys
from threadkeep.stores.batch_delete import ATTEMPTS_MAX, ITEMS_MAX
from threadkeep.stores.manifests_dynamodb import ManifestsDynamoDB
from threadkeep.stores.warm_items import primary_key

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

KEY = ConversationKey("acme", ids.mint(NOW_MS))


@pytest.fixture
def client() -> Iterator[DynamoDBClient]:
    with moto_clients() as (table, _):
        yield table


def deletions(messages: list[str]) -> dict[str, Any]:
    return {TABLE: [{"DeleteRequest": {"Key": primary_key(KEY, table_keys.message(message))}} for message in messages]}


def new_messages(count: int) -> list[str]:
    return [ids.mint(NOW_MS + number) for number in range(count)]


def test_what_is_left_unprocessed_is_asked_again_until_all_is_done(client: DynamoDBClient) -> None:
    """A49: UnprocessedItems are dropped, and the batch counts as done."""
    messages = new_messages(ITEMS_MAX)
    left = messages[3:6]
    pauses: list[float] = []
    with Stubber(client) as stub:
        for asked, unprocessed in ((messages, left), (left, left), (left, [])):
            answer = {"UnprocessedItems": deletions(unprocessed) if unprocessed else {}}
            stub.add_response("batch_write_item", answer, {"RequestItems": deletions(asked)})
        ManifestsDynamoDB(client, TABLE, sleep=pauses.append).remove_messages(KEY, messages)
        stub.assert_no_pending_responses()
    assert len(pauses) == 2
    assert all(0 <= pause <= 1 for pause in pauses)


def test_after_so_many_attempts_it_is_a_loud_error_and_the_next_batch_is_not_begun(client: DynamoDBClient) -> None:
    """A49: the store never comes round, and nobody is told."""
    messages = new_messages(ITEMS_MAX + 1)
    pauses: list[float] = []
    with Stubber(client) as stub:
        asked = messages[:ITEMS_MAX]
        for _ in range(ATTEMPTS_MAX):
            answer = {"UnprocessedItems": deletions(messages[:1])}
            stub.add_response("batch_write_item", answer, {"RequestItems": deletions(asked)})
            asked = messages[:1]
        with pytest.raises(WarmUnavailable, match=f"1 items left unprocessed after {ATTEMPTS_MAX} attempts"):
            ManifestsDynamoDB(client, TABLE, sleep=pauses.append).remove_messages(KEY, messages)
        stub.assert_no_pending_responses()
    assert len(pauses) == ATTEMPTS_MAX - 1
    assert sum(pauses) < 15  # of the seconds that an archiver has


def test_a_batch_takes_no_more_than_dynamodb_does(client: DynamoDBClient) -> None:
    messages = new_messages(2 * ITEMS_MAX + 1)
    with Stubber(client) as stub:
        for start in range(0, len(messages), ITEMS_MAX):
            part = messages[start : start + ITEMS_MAX]
            stub.add_response("batch_write_item", {"UnprocessedItems": {}}, {"RequestItems": deletions(part)})
        ManifestsDynamoDB(client, TABLE).remove_messages(KEY, messages)
        stub.assert_no_pending_responses()


def test_throttled_as_a_whole_is_not_now(client: DynamoDBClient) -> None:
    with Stubber(client) as stub:
        stub.add_client_error("batch_write_item", "ProvisionedThroughputExceededException", http_status_code=400)
        with pytest.raises(WarmUnavailable):
            ManifestsDynamoDB(client, TABLE).remove_messages(KEY, new_messages(1))
