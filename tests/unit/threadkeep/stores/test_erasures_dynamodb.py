"""Receipts and clearing in DynamoDB: pages of any kind, and batches that are done in part."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.conversations import tombstone
from threadkeep.domain.bounds import ERASURE_ITEMS_MAX
from threadkeep.domain.errors import Unreadable, WarmUnavailable
from threadkeep.domain.model import ConversationKey
from threadkeep.schema import SORT_GONE
from threadkeep.stores import erasure_items
from threadkeep.stores.batch_delete import ATTEMPTS_MAX, ITEMS_MAX
from threadkeep.stores.erasures_dynamodb import ErasuresDynamoDB
from threadkeep.stores.warm_items import primary_key, text

KEY = ConversationKey("acme", "0193e4a0-0000-7000-8000-000000000001")
RECEIPT = [SORT_GONE, f"{SORT_GONE}#eu-central-1#hot", f"{SORT_GONE}#eu-central-1#table"]


class Client:
    """DynamoDB, as far as clearing asks it: the pages of one query, and batches of which a part is left undone.

    Args:
        pages: sort keys, page by page.
        undone: how many of each batch's requests are left, as long as attempts are.
    """

    def __init__(self, *pages: list[str], undone: int = 0, attempts: int = 10**6) -> None:
        self.pages = pages
        self.asked: list[dict[str, Any]] = []
        self.deleted: list[str] = []
        self.batches: list[int] = []
        self._undone = undone
        self._attempts = attempts

    def query(self, **request: Any) -> dict[str, Any]:
        self.asked.append(request)
        number = int(request.get("ExclusiveStartKey", {"page": 0})["page"])
        answer: dict[str, Any] = {"Items": [primary_key(KEY, name) for name in self.pages[number]]}
        return answer | ({"LastEvaluatedKey": {"page": number + 1}} if number + 1 < len(self.pages) else {})

    def batch_write_item(self, *, RequestItems: dict[str, list[Any]]) -> dict[str, Any]:  # noqa: N803 -- boto3's own
        ((table, requests),) = RequestItems.items()
        self.batches.append(len(requests))
        left = self._undone if len(self.batches) <= self._attempts else 0
        done = requests[: len(requests) - left]
        self.deleted += [request["DeleteRequest"]["Key"]["sk"]["S"] for request in done]
        return {"UnprocessedItems": {table: requests[len(done) :]} if left else {}}


def store(client: Client) -> ErasuresDynamoDB:
    made: Any = client
    return ErasuresDynamoDB(made, "table", sleep=lambda _seconds: None)


def test_pages_of_nothing_but_the_receipt_and_empty_ones_are_passed_over() -> None:
    client = Client(RECEIPT, [], ["head", "m#1"], ["pulse"])
    assert store(client).clear(KEY) == 3
    assert client.deleted == ["head", "m#1", "pulse"]
    assert len(client.asked) == 4
    assert all(request["ConsistentRead"] for request in client.asked)


def test_no_content_is_read() -> None:
    client = Client(["head"])
    store(client).clear(KEY)
    names = client.asked[0]["ExpressionAttributeNames"]
    assert {names[name.strip()] for name in client.asked[0]["ProjectionExpression"].split(",")} == {"pk", "sk"}


def test_one_step_takes_a_bounded_number_and_the_next_takes_the_rest() -> None:
    messages = [f"m#{number:04}" for number in range(ERASURE_ITEMS_MAX + 7)]
    client = Client([*RECEIPT, *messages[:200]], messages[200:])
    assert store(client).clear(KEY) == ERASURE_ITEMS_MAX
    assert client.deleted == messages[:ERASURE_ITEMS_MAX]
    assert max(client.batches) == ITEMS_MAX


def test_what_a_batch_left_undone_is_asked_for_again() -> None:
    messages = [f"m#{number:04}" for number in range(25)]
    client = Client(messages, undone=3, attempts=2)
    assert store(client).clear(KEY) == 25
    assert sorted(client.deleted) == messages
    assert client.batches == [25, 3, 3]


def test_what_stays_undone_is_told_aloud() -> None:
    client = Client(["head", "m#1"], undone=1)
    with pytest.raises(WarmUnavailable, match="1 items left unprocessed"):
        store(client).clear(KEY)
    assert len(client.batches) == ATTEMPTS_MAX


def test_a_line_is_added_to_where_it_lies_so_that_two_passes_at_once_lose_nothing_of_each_others() -> None:
    asked: list[dict[str, Any]] = []
    client: Any = Client()
    client.update_item = lambda **request: asked.append(request)
    store(client).note(KEY, "eu-central-1", "table", count=7, is_pass=True, is_done=False, now_ms=0)
    (request,) = asked
    adds, _, sets = request["UpdateExpression"].removeprefix("ADD ").partition(" SET ")
    names = request["ExpressionAttributeNames"]
    added = dict(word.split() for word in adds.split(", "))
    assert {names[name]: request["ExpressionAttributeValues"][value] for name, value in added.items()} == {
        "found": {"N": "7"},
        "removed": {"N": "7"},
        "passes": {"N": "1"},
    }
    assert "#state = if_not_exists(#state, :state)" in sets


def test_a_tombstone_of_another_format_is_not_guessed_at() -> None:
    item = primary_key(KEY, SORT_GONE) | erasure_items.tombstone_attributes(tombstone())
    assert erasure_items.tombstone_from(item) == tombstone()
    with pytest.raises(Unreadable, match="format 2"):
        erasure_items.tombstone_from(item | {"v": {"N": "2"}})


def test_a_tombstone_with_a_value_that_it_cannot_have_is_refused() -> None:
    item = primary_key(KEY, SORT_GONE) | erasure_items.tombstone_attributes(tombstone())
    with pytest.raises(ValueError, match="reason"):
        erasure_items.tombstone_from(item | {"reason": text("boredom")})
