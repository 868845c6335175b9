"""What a region makes of the records of the table's stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.support.conversations import NOW_MS, conversation, message
from tests.support.erasing import record
from tests.support.moto_table import TABLE, moto_clients
from threadkeep.domain import ids
from threadkeep.domain.erasure import Landed
from threadkeep.domain.model import ConversationKey, LiveStream, StoredMessage
from threadkeep.domain.news import HeadNews, MessageNews, RootsNews, StreamNews
from threadkeep.schema import PARTITION_KEY, REGION_ATTRIBUTE, SORT_DUE, SORT_KEY, SORT_PULSE, TTL_ATTRIBUTE
from threadkeep.stores.bodies_memory import BodiesMemory
from threadkeep.stores.live_dynamodb import LiveDynamoDB
from threadkeep.stores.table_stream import read_landed, read_news, read_replaced
from threadkeep.stores.warm_dynamodb import WarmDynamoDB

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

EU, US = "eu-central-1", "us-east-1"
TENANT = "a/b#c"
UNTIL_MS = NOW_MS + 3_900_000


@pytest.fixture(scope="module")
def table() -> Iterator[DynamoDBClient]:
    with moto_clients() as (client, _):
        yield client


def item(table: DynamoDBClient, key: ConversationKey, prefix: str) -> dict[str, Any]:
    """The one item of a conversation whose sort key is that, or else begins so, as it was written."""
    items = [
        item for item in table.scan(TableName=TABLE)["Items"] if item[PARTITION_KEY]["S"].endswith(key.conversation)
    ]
    named = [item for item in items if item[SORT_KEY]["S"] == prefix]
    (only,) = named or [item for item in items if item[SORT_KEY]["S"].startswith(prefix)]
    return dict(only)


def change(new: dict[str, Any] | None, old: dict[str, Any] | None = None) -> dict[str, Any]:
    """A record of it."""
    image = new or old
    assert image is not None
    kind = "REMOVE" if new is None else "INSERT" if old is None else "MODIFY"
    made = record(image[PARTITION_KEY]["S"], image[SORT_KEY]["S"], kind=kind)
    made["dynamodb"] |= {name: value for name, value in (("NewImage", new), ("OldImage", old)) if value is not None}
    return made


def test_a_message_is_news_where_another_region_wrote_it(table: DynamoDBClient) -> None:
    key = ConversationKey(TENANT, ids.mint(NOW_MS))
    stored = StoredMessage(message(key))
    WarmDynamoDB(table, TABLE, BodiesMemory(), writer=EU).put_message(TENANT, stored)
    written = item(table, key, "m#")
    news = MessageNews(tenant=TENANT, conversation=key.conversation, message=stored.message.id)
    assert read_news(change(written), US) == (news,)
    assert read_news(change(written), EU) == ()
    # Of two that settled one stream the later stands, and those who watch are to see that.
    other = msgspec.structs.replace(news, is_other=True)
    assert read_news(change(written, written), US) == (other,)
    assert read_news(change(None, written), US) == ()


def test_that_there_are_several_roots_is_news_where_another_region_says_so(table: DynamoDBClient) -> None:
    key = ConversationKey(TENANT, ids.mint(NOW_MS))
    WarmDynamoDB(table, TABLE, BodiesMemory(), writer=EU).note_several(key)
    written = item(table, key, "m!")
    assert read_news(change(written), US) == (RootsNews(tenant=TENANT, conversation=key.conversation),)
    assert read_news(change(written), EU) == ()
    assert read_replaced(change(written, written)) is None
    assert read_landed(change(written)) == Landed(key, is_tombstone=False)


def test_a_changed_head_is_news_and_a_new_one_is_none(table: DynamoDBClient) -> None:
    new = conversation(now_ms=NOW_MS)
    key = ConversationKey(TENANT, new.id)
    warm = WarmDynamoDB(table, TABLE, BodiesMemory(), writer=EU)
    warm.create_conversation(TENANT, new)
    before = item(table, key, "head")
    # The region that changes it is the one that is named, whoever made it.
    WarmDynamoDB(table, TABLE, BodiesMemory(), writer=US).update_conversation(key, owner=new.owner, title="one")
    after = item(table, key, "head")
    assert read_news(change(before), US) == ()
    news = HeadNews(tenant=TENANT, conversation=key.conversation)
    assert read_news(change(after, before), EU) == (news,)
    assert read_news(change(after, before), US) == ()
    for sort_key in (SORT_PULSE, SORT_DUE):
        assert read_news(change(item(table, key, sort_key)), EU) == ()


def test_the_only_region_is_named_nowhere(table: DynamoDBClient) -> None:
    new = conversation(now_ms=NOW_MS)
    key = ConversationKey(TENANT, new.id)
    warm = WarmDynamoDB(table, TABLE, BodiesMemory())
    warm.create_conversation(TENANT, new)
    warm.update_conversation(key, owner=new.owner, title="one")
    warm.put_message(TENANT, StoredMessage(message(key)))
    warm.note_several(key)
    for prefix in ("head", "m#", "m!"):
        written = item(table, key, prefix)
        assert REGION_ATTRIBUTE not in written
        assert read_news(change(written, written), US) == ()


def live(stream: str, epoch: int, **fields: Any) -> LiveStream:
    return LiveStream(
        stream=stream,
        epoch=epoch,
        offset=0,
        **({"parent": None, "role": "assistant", "region": EU, "endpoint": "wss://eu.example.com/prod"} | fields),
    )


def test_a_stream_is_news_when_it_begins_and_when_it_begins_anew(table: DynamoDBClient) -> None:
    key = ConversationKey(TENANT, ids.mint(NOW_MS))
    register = LiveDynamoDB(table, TABLE, EU)
    one = live(ids.mint(NOW_MS), 5, parent=ids.mint(NOW_MS - 5))
    other = live(ids.mint(NOW_MS + 1), 6, role="tool")
    images = []
    for told in (one, other, msgspec.structs.replace(one, epoch=7)):
        register.put(key, told, until_ms=UNTIL_MS)
        images.append(item(table, key, "live#"))
    register.remove(key, other.stream)
    images.append(item(table, key, "live#"))
    found = [read_news(change(new, old), US) for new, old in zip(images, (None, *images[:-1]), strict=True)]
    begun = [[(news.stream, news.epoch) for news in each if isinstance(news, StreamNews)] for each in found]
    assert begun == [[(one.stream, 5)], [(other.stream, 6)], [(one.stream, 7)], []]
    assert found[0] == (
        StreamNews(
            tenant=TENANT,
            conversation=key.conversation,
            stream=one.stream,
            epoch=5,
            parent=one.parent,
            role="assistant",
            region=EU,
            endpoint="wss://eu.example.com/prod",
        ),
    )
    assert read_news(change(images[0]), EU) == ()
    assert read_news(change(None, images[0]), US) == ()


def test_what_runs_out_without_being_removed_is_dropped_by_the_next_word_and_in_the_end_by_the_table(
    table: DynamoDBClient,
) -> None:
    key = ConversationKey(TENANT, ids.mint(NOW_MS))
    register = LiveDynamoDB(table, TABLE, EU)
    lost, kept, new = (live(ids.mint(NOW_MS + number), 5) for number in range(3))
    register.put(key, lost, until_ms=UNTIL_MS)
    register.put(key, kept, until_ms=UNTIL_MS + 1)
    later_ms = UNTIL_MS + 3_900_000
    register.put(key, new, until_ms=later_ms)
    written = item(table, key, "live#")
    assert {name for name in written if ids.is_id(name)} == {kept.stream, new.stream}
    assert written[TTL_ATTRIBUTE] == {"N": str(later_ms // 1_000)}
