"""The warm tier on DynamoDB: what its items hold, and what happens when the table fails in between."""

from __future__ import annotations

import socket
import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.support.conversations import NOW_MS, conversation, message, noise, text_parts, tombstone
from tests.support.metered import REAL, REAL_TURNS
from tests.support.moto_table import TABLE, empty_table, moto_clients
from threadkeep.domain import ids, times
from threadkeep.domain.bounds import BODY_INLINE_BYTES_MAX, PULSE_EVERY_MS, RETENTION_MARGIN_MS
from threadkeep.domain.errors import Unreadable, WarmUnavailable
from threadkeep.domain.json_values import read_object
from threadkeep.domain.model import Conversation, ConversationKey, StoredMessage
from threadkeep.ports import DueEntry
from threadkeep.schema import SORT_DUE, SORT_HEAD, SORT_PULSE
from threadkeep.stores import table_keys, warm_items
from threadkeep.stores.aws_config import STORE
from threadkeep.stores.bodies_memory import BodiesMemory
from threadkeep.stores.due_dynamodb import DueDynamoDB
from threadkeep.stores.erasures_dynamodb import ErasuresDynamoDB
from threadkeep.stores.owner_list import LIST_ROUNDS_MAX
from threadkeep.stores.warm_dynamodb import WarmDynamoDB
from threadkeep.stores.warm_items import CALL_IDS_BYTES_MAX, primary_key

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

TENANT = "acme"
ITEM_BYTES_MAX = 400 * 1024
DAY_MS = 86_400_000


class Table:
    """A real client (of moto) that notes its calls; tests put a fault before one, or another call in its place."""

    def __init__(self, client: DynamoDBClient) -> None:
        self.client = client
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.before: Callable[[str, dict[str, Any]], None] = lambda _name, _request: None
        self.instead: dict[str, Callable[..., Any]] = {}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(**request: Any) -> Any:
            self.calls.append((name, request))
            self.before(name, request)
            return self.instead.get(name, getattr(self.client, name))(**request)

        return call

    def named(self, name: str) -> list[dict[str, Any]]:
        return [request for called, request in self.calls if called == name]

    def item(self, key: ConversationKey, sort_key: str) -> dict[str, Any]:
        return dict(self.client.get_item(TableName=TABLE, Key=primary_key(key, sort_key))["Item"])


@pytest.fixture(scope="module")
def client() -> Iterator[DynamoDBClient]:
    with moto_clients() as (made, _):
        yield made


@pytest.fixture
def table(client: DynamoDBClient) -> Table:
    empty_table(client)
    return Table(client)


@pytest.fixture
def bodies() -> BodiesMemory:
    return BodiesMemory()


@pytest.fixture
def store(table: Table, bodies: BodiesMemory) -> WarmDynamoDB:
    return WarmDynamoDB(cast("Any", table), TABLE, bodies, sleep=lambda _: None)


def create(store: WarmDynamoDB, owner: str = "ada", *, now_ms: int = NOW_MS) -> ConversationKey:
    new = conversation(owner, now_ms=now_ms)
    assert store.create_conversation(TENANT, new) is None
    return ConversationKey(TENANT, new.id)


def refuse(code: str, *, of: str, sort_key: str = "", status: int = 400) -> Callable[[str, dict[str, Any]], None]:
    """A fault in front of the calls of that name, if need be for items of that sort key alone."""

    def before(name: str, request: dict[str, Any]) -> None:
        if name == of and sort_key in {"", request.get("Item", {}).get("sk", {}).get("S")}:
            answer: Any = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
            raise ClientError(answer, name)

    return before


def item_bytes(item: dict[str, Any]) -> int:
    """An item's size as DynamoDB counts it: names and values in UTF-8 (developer guide, "Item sizes")."""
    return sum(len(name.encode()) + _value_bytes(value) for name, value in item.items())


def _value_bytes(value: dict[str, Any]) -> int:
    ((kind, content),) = value.items()
    if kind == "L":
        return 3 + sum(1 + _value_bytes(one) for one in content)
    if kind in {"BOOL", "NULL"}:
        return 1
    return len(content if isinstance(content, bytes) else content.encode())


# --- items ----------------------------------------------------------------------------------------------------


def test_a_new_conversation_is_a_head_a_pulse_and_a_due_entry_each_under_its_index(
    table: Table, store: WarmDynamoDB
) -> None:
    key = create(store, "a#b")
    head, pulse = table.item(key, SORT_HEAD), table.item(key, SORT_PULSE)
    at = times.to_rfc3339(NOW_MS)
    due_key, due_at = table_keys.due(key.conversation, due_ms=NOW_MS + 31 * DAY_MS)
    partition = {"pk": {"S": f"acme#{key.conversation}"}, "v": {"N": "1"}}
    assert head == partition | {
        "sk": {"S": "head"},
        "owner": {"S": "a#b"},
        "metadata": {"S": "{}"},
        "created_at": {"S": at},
    }
    assert pulse == partition | {
        "sk": {"S": "pulse"},
        "owner_key": {"S": "acme#a%23b#0"},
        "active_at": {"S": at},
    }
    assert table.item(key, SORT_DUE) == partition | {
        "sk": {"S": "pulse#due"},
        "due_key": {"S": due_key},
        "due_at": {"S": due_at},
    }


def test_activity_moves_the_list_alone_and_costs_no_write_within_the_minute(table: Table, store: WarmDynamoDB) -> None:
    key = create(store)
    filed = table.item(key, SORT_PULSE)
    later_ms = NOW_MS + DAY_MS
    for now_ms in (later_ms, later_ms + PULSE_EVERY_MS):
        store.touch(key, now_ms=now_ms)
        assert table.item(key, SORT_PULSE) == filed | {"active_at": {"S": times.to_rfc3339(later_ms)}}
    assert len(table.named("put_item")) == 3  # those of the creation
    assert len(table.named("update_item")) == 1  # a refused one would cost what it would have written


def test_of_two_that_note_the_activity_at_once_one_writes(table: Table, store: WarmDynamoDB) -> None:
    key = create(store)
    before = [table.item(key, SORT_PULSE), table.item(key, SORT_DUE)]
    store.touch(key, now_ms=NOW_MS + DAY_MS)
    table.instead["query"] = lambda **_: {"Items": before}  # what the other one has read
    store.touch(key, now_ms=NOW_MS + DAY_MS + 1)
    assert len(table.named("update_item")) == 2
    assert table.item(key, SORT_PULSE)["active_at"] == {"S": times.to_rfc3339(NOW_MS + DAY_MS)}


def test_activity_brings_back_what_the_archive_took_out_also_within_the_minute(
    table: Table, store: WarmDynamoDB
) -> None:
    key = create(store)
    noted, filed = table.item(key, SORT_PULSE), table.item(key, SORT_DUE)
    out = {name: value for name, value in filed.items() if name not in {"due_key", "due_at"}}
    due_key, due_at = table_keys.due(key.conversation, due_ms=NOW_MS + 1 + 31 * DAY_MS)
    for put in (out, None):  # and where a crash has left none
        if put is None:
            table.client.delete_item(TableName=TABLE, Key=primary_key(key, SORT_DUE))
        else:
            table.client.put_item(TableName=TABLE, Item=put)
        store.touch(key, now_ms=NOW_MS + 1)
        assert table.item(key, SORT_DUE) == out | {"due_key": {"S": due_key}, "due_at": {"S": due_at}}
        assert table.item(key, SORT_PULSE) == noted


def test_the_archive_writes_nothing_of_the_activity_and_whoever_is_active_nothing_of_the_archives(
    table: Table, store: WarmDynamoDB
) -> None:
    """Of two writes of one item, in two regions, the later one stands as a whole."""
    key = create(store)
    table.calls.clear()
    entry = DueEntry(key, table.item(key, SORT_DUE)["due_at"]["S"])
    due = DueDynamoDB(cast("Any", table), TABLE)
    assert due.refile(entry, due_ms=NOW_MS + DAY_MS)
    assert due.refile(DueEntry(key, times.to_rfc3339(NOW_MS + DAY_MS)), due_ms=NOW_MS + 2 * DAY_MS)
    store.touch(key, now_ms=NOW_MS + DAY_MS)
    written = [request["Key"]["sk"]["S"] for request in table.named("update_item")]
    assert (written, table.named("put_item")) == ([SORT_DUE, SORT_DUE, SORT_PULSE], [])


def test_it_falls_due_anew_before_the_activity_is_noted_where_the_archive_may_be_taking_it_out(
    table: Table, store: WarmDynamoDB
) -> None:
    key = create(store)
    entry = DueEntry(key, table.item(key, SORT_DUE)["due_at"]["S"])
    due = DueDynamoDB(table.client, TABLE)

    def take_out(name: str, _request: dict[str, Any]) -> None:
        if name in {"put_item", "update_item"}:
            table.before = lambda _name, _request: None
            taken.append(due.refile(entry, due_ms=None))

    for step in ("before the entry", "between the two"):
        table.client.put_item(TableName=TABLE, Item=warm_items.due_item(key, times.from_rfc3339(entry.due_at)))
        pulse = table.item(key, SORT_PULSE) | {"active_at": {"S": times.to_rfc3339(NOW_MS)}}
        table.client.put_item(TableName=TABLE, Item=pulse)
        taken: list[bool] = []
        if step == "before the entry":
            table.before = take_out
        else:
            table.before = lambda name, request: take_out(name, request) if name == "update_item" else None
        now_ms = NOW_MS + 31 * DAY_MS
        store.touch(key, now_ms=now_ms)
        assert taken == [step == "before the entry"]
        assert table.item(key, SORT_DUE)["due_at"]["S"] == times.to_rfc3339(now_ms + 31 * DAY_MS)


def test_a_retention_that_ends_before_the_archive_begins_is_when_it_falls_due(
    table: Table, store: WarmDynamoDB
) -> None:
    new = conversation(retention_days=7)
    assert store.create_conversation(TENANT, new) is None
    due = table.item(ConversationKey(TENANT, new.id), SORT_DUE)
    assert due["due_at"]["S"] == times.to_rfc3339(NOW_MS + 7 * DAY_MS + PULSE_EVERY_MS + RETENTION_MARGIN_MS)


def test_a_message_item_holds_its_facts_beside_one_packed_body(table: Table, store: WarmDynamoDB) -> None:
    key = create(store)
    parts = tuple(
        read_object(text)
        for text in (
            b'{"type":"tool_call","call_id":"1","name":"f"}',
            b'{"type":"tool_call","call_id":""}',
            b'{"type":"tool_result","call_id":"1","output":"x"}',
        )
    )
    parent = ids.mint(NOW_MS - 1)
    sent = message(key, parts, parent=parent, role="assistant", status="stopped", model="m")
    store.put_message(TENANT, StoredMessage(sent, 7))
    item = table.item(key, f"m#{sent.id}")
    assert item.pop("b")["B"][:1] == b"\x02"
    assert item == {
        "pk": {"S": f"acme#{key.conversation}"},
        "sk": {"S": f"m#{sent.id}"},
        "v": {"N": "1"},
        "r": {"S": "assistant"},
        "p": {"B": uuid.UUID(parent).bytes},
        "s": {"S": "stopped"},
        "m": {"S": "m"},
        "q": {"N": str(sent.tokens.count)},
        "e": {"N": "7"},
        "calls": {"L": [{"S": "1"}, {"S": ""}]},
        "answers": {"L": [{"S": "1"}]},
    }


@pytest.mark.parametrize("number", range(len(REAL_TURNS)))
def test_a_real_answer_of_a_thousand_tokens_costs_two_write_units_with_room_for_names(
    table: Table, store: WarmDynamoDB, number: int
) -> None:
    """The tenant's name is in it: one of sixty bytes more fits."""
    key = create(store)
    usage = read_object(b'{"input_tokens":3000,"output_tokens":1000}')
    extra: dict[str, Any] = {
        "role": "assistant",
        "parent": ids.mint(NOW_MS),
        "usage": usage,
        "model": "gpt-4o-2024-05-13",
    }
    sent = message(key, text_parts(REAL_TURNS[number][1]), **extra)
    store.put_message(TENANT, StoredMessage(sent, NOW_MS))
    assert 1_024 < item_bytes(table.item(key, f"m#{sent.id}")) <= 2 * 1_024 - 15 * len(TENANT)


def test_twenty_real_messages_of_up_to_22_kb_of_text_take_no_more_than_three_units(
    table: Table, store: WarmDynamoDB
) -> None:
    """Wherever they stand: 12 KB are three units read consistently, and one and a half read eventually."""
    key = create(store)
    texts, items = [], []
    for role, text in REAL:
        extra: dict[str, Any] = {"model": "gpt-4o-2024-05-13"} if role == "assistant" else {}
        sent = message(key, text_parts(text), role=role, parent=ids.mint(NOW_MS), **extra)
        store.put_message(TENANT, StoredMessage(sent, NOW_MS if role == "assistant" else 0))
        texts.append(len(text.encode()))
        items.append(item_bytes(table.item(key, f"m#{sent.id}")))
    together = [(sum(texts[at : at + 20]), sum(items[at : at + 20])) for at in range(len(REAL) - 19)]
    within = [taken for said, taken in together if said <= 22_500]
    assert len(within) >= len(together) // 3
    assert max(within) <= 12 * 1_024
    assert sum(items) / len(items) <= 560  # 550 when the dictionary was made


@pytest.mark.parametrize(("characters", "where"), [(20_000, "b"), (30_000, "w"), (390_000, "w"), (399 * 1_024, "o")])
def test_a_body_lies_where_its_size_says_and_the_item_fits(
    table: Table, store: WarmDynamoDB, bodies: BodiesMemory, characters: int, where: str
) -> None:
    key = create(store)
    sent = message(key, text_parts(noise(characters)))
    store.put_message(TENANT, StoredMessage(sent))
    item = table.item(key, f"m#{sent.id}")
    assert {"b", "w", "o"} & set(item) == {"b", where}
    assert len(item.get("w", item["b"])["B"]) <= BODY_INLINE_BYTES_MAX
    assert item_bytes(item) < ITEM_BYTES_MAX
    assert [item["o"]["S"]] == list(bodies.objects) if where == "o" else not bodies.objects


def test_call_ids_without_end_are_left_to_the_body(table: Table, store: WarmDynamoDB) -> None:
    key = create(store)
    long_id = "x" * CALL_IDS_BYTES_MAX
    call = read_object(f'{{"type":"tool_call","call_id":"{long_id}"}}'.encode())
    sent = message(key, (call, *text_parts(noise(390_000))))
    store.put_message(TENANT, StoredMessage(sent))
    item = table.item(key, f"m#{sent.id}")
    assert item["calls"] == {"NULL": True}
    assert item_bytes(item) < ITEM_BYTES_MAX


def test_metadata_and_usage_of_a_message_by_pointer_still_show_in_its_page(store: WarmDynamoDB) -> None:
    key = create(store)
    sent = message(key, text_parts(noise(500_000)), metadata=read_object(b'{"a":1.0}'), usage=read_object(b'{"b":1}'))
    store.put_message(TENANT, StoredMessage(sent, 3))
    assert store.read_messages(key, limit=1).messages == (StoredMessage(sent.without_parts(), 3),)


def test_a_page_reads_no_object_and_no_whole_body(table: Table, store: WarmDynamoDB, bodies: BodiesMemory) -> None:
    key = create(store)
    for characters in (100, 30_000, 500_000):
        store.put_message(TENANT, StoredMessage(message(key, text_parts(noise(characters)))))
    bodies.unavailable = True
    assert len(store.read_messages(key, limit=3).messages) == 3
    assert "w" not in table.named("query")[-1]["ExpressionAttributeNames"].values()


def test_a_page_reads_no_message_more_than_it_shows_but_the_bounds_that_are_messages(
    table: Table, store: WarmDynamoDB
) -> None:
    key = create(store)
    sent = [message(key, now_ms=NOW_MS + number) for number in range(5)]
    for each in sent:
        store.put_message(TENANT, StoredMessage(each))
    for before, after in ((None, None), (sent[-1].id + "~", None), (sent[-1].id, sent[0].id)):
        store.read_messages(key, limit=3, before=before, after=after)
    assert [asked["Limit"] for asked in table.named("query")[-3:]] == [3, 3, 5]


def test_a_page_is_read_over_as_many_megabytes_as_it_takes(table: Table, store: WarmDynamoDB) -> None:
    key = create(store)
    sent = []
    for number in range(100):
        sent.append(message(key, text_parts(noise(20_000, number)), now_ms=NOW_MS + number))
        store.put_message(TENANT, StoredMessage(sent[-1]))
    table.calls.clear()
    page = store.read_messages(key, limit=90)
    assert [stored.message for stored in page.messages] == sent[:9:-1]
    assert page.more
    assert len(table.named("query")) == 2  # 1.4 MB: the first page of the table's ends at 1 MB


def test_every_read_but_the_index_is_strongly_consistent(table: Table, store: WarmDynamoDB) -> None:
    key = create(store)
    store.read_active_at(key)
    store.newest_id(key)
    store.read_message(key, ids.mint(NOW_MS))
    store.read_messages(key, limit=1)
    store.list_conversations(TENANT, "ada", limit=1, cursor=None)
    queries = [request for request in table.named("query") if "IndexName" not in request]
    assert len(queries) >= 3
    assert all(request["ConsistentRead"] for request in [*queries, *table.named("get_item")])
    assert all(request["RequestItems"][TABLE]["ConsistentRead"] for request in table.named("batch_get_item"))


def test_a_page_that_need_not_be_consistent_is_read_for_half(table: Table, store: WarmDynamoDB) -> None:
    key = create(store)
    table.calls.clear()
    store.read_messages(key, limit=1, consistent=False)
    assert [request["ConsistentRead"] for request in table.named("query")] == [False]


def test_the_newest_id_is_read_without_its_message(table: Table, store: WarmDynamoDB) -> None:
    key = create(store)
    store.put_message(TENANT, StoredMessage(message(key)))
    store.newest_id(key)
    asked = table.named("query")[-1]
    assert (asked["Limit"], asked["ProjectionExpression"]) == (1, "#sk")


# --- what cannot be read --------------------------------------------------------------------------------------


@pytest.mark.parametrize("attribute", ["b", "w"])
def test_a_damaged_body_names_its_message_and_gives_nothing_out(
    table: Table, store: WarmDynamoDB, attribute: str
) -> None:
    key = create(store)
    sent = message(key, text_parts("hello" if attribute == "b" else noise(30_000)))
    store.put_message(TENANT, StoredMessage(sent))
    item = table.item(key, f"m#{sent.id}")
    packed = item[attribute]["B"]
    item[attribute] = {"B": packed[:-1] + bytes([packed[-1] ^ 1])}
    table.client.put_item(TableName=TABLE, Item=item)
    with pytest.raises(Unreadable, match=sent.id):
        store.read_message(key, sent.id)
    with pytest.raises(Unreadable, match=sent.id):
        store.put_message(TENANT, StoredMessage(sent))


def test_an_item_of_a_later_format_is_not_guessed_at(table: Table, store: WarmDynamoDB) -> None:
    key = create(store)
    sent = message(key)
    store.put_message(TENANT, StoredMessage(sent))
    for sort_key in (f"m#{sent.id}", SORT_HEAD):
        item = table.item(key, sort_key) | {"v": {"N": "2"}}
        table.client.put_item(TableName=TABLE, Item=item)
    with pytest.raises(Unreadable, match=rf"{sent.id}.* format 2"):
        store.read_message(key, sent.id)
    with pytest.raises(Unreadable, match=r"head.* format 2"):
        store.read_head(key)


# --- faults in between ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("sort_key", [SORT_PULSE, SORT_DUE, SORT_HEAD])
def test_a_create_that_breaks_off_leaves_nothing_to_see_and_its_retry_completes_it(
    table: Table, store: WarmDynamoDB, sort_key: str
) -> None:
    new = conversation()
    key = ConversationKey(TENANT, new.id)
    table.before = refuse("ThrottlingException", of="put_item", sort_key=sort_key)
    with pytest.raises(WarmUnavailable):
        store.create_conversation(TENANT, new)
    assert store.read_head(key) is None
    assert store.list_conversations(TENANT, "ada", limit=10, cursor=None).conversations == ()
    table.before = lambda _name, _request: None
    assert store.create_conversation(TENANT, new) is None
    assert store.list_conversations(TENANT, "ada", limit=10, cursor=None).conversations == (new,)
    assert table.item(key, SORT_DUE)["due_at"]["S"] == times.to_rfc3339(NOW_MS + 31 * DAY_MS)


def test_what_anothers_create_left_behind_goes_to_whose_the_conversation_is(table: Table, store: WarmDynamoDB) -> None:
    adas = conversation("ada")
    table.before = refuse("ThrottlingException", of="put_item", sort_key=SORT_HEAD)
    with pytest.raises(WarmUnavailable):
        store.create_conversation(TENANT, adas)
    table.before = lambda _name, _request: None
    bobs = conversation("bob", id=adas.id, now_ms=NOW_MS + 5_000, retention_days=1)
    assert store.create_conversation(TENANT, bobs) is None
    assert store.list_conversations(TENANT, "ada", limit=10, cursor=None).conversations == ()
    assert store.list_conversations(TENANT, "bob", limit=10, cursor=None).conversations == (bobs,)
    assert bobs.expires_ms is not None
    due_at = table.item(ConversationKey(TENANT, adas.id), SORT_DUE)["due_at"]["S"]
    assert due_at == times.to_rfc3339(bobs.expires_ms + RETENTION_MARGIN_MS)


def test_of_two_creates_at_one_instant_the_second_is_told_of_the_first(table: Table, store: WarmDynamoDB) -> None:
    first = conversation("ada")
    second = conversation("bob", id=first.id)
    rival = WarmDynamoDB(table.client, TABLE, BodiesMemory())

    def create_first(name: str, request: dict[str, Any]) -> None:
        if name == "put_item" and request["Item"]["sk"]["S"] == SORT_HEAD:
            table.before = lambda _name, _request: None
            rival.create_conversation(TENANT, first)

    table.before = create_first
    assert store.create_conversation(TENANT, second) == first
    assert store.list_conversations(TENANT, "ada", limit=10, cursor=None).conversations == (first,)
    assert store.list_conversations(TENANT, "bob", limit=10, cursor=None).conversations == ()


def test_a_list_shows_nobody_a_conversation_of_another(table: Table, store: WarmDynamoDB) -> None:
    key = create(store, "ada")
    pulse = table.item(key, SORT_PULSE) | {"owner_key": {"S": table_keys.owner(TENANT, "bob")}}
    table.client.put_item(TableName=TABLE, Item=pulse)
    assert store.list_conversations(TENANT, "bob", limit=10, cursor=None).conversations == ()


def test_a_list_skips_only_so_many_entries_and_goes_on_from_there(table: Table, store: WarmDynamoDB) -> None:
    kept = create(store)
    for number in range(LIST_ROUNDS_MAX * 2 + 3):
        ErasuresDynamoDB(table.client, TABLE).put_tombstone(create(store, now_ms=NOW_MS + 1 + number), tombstone())
    table.calls.clear()
    page = store.list_conversations(TENANT, "ada", limit=2, cursor=None)
    assert page.conversations == ()
    assert len(table.named("query")) == LIST_ROUNDS_MAX
    found: list[Conversation] = []
    while page.cursor is not None:
        page = store.list_conversations(TENANT, "ada", limit=2, cursor=page.cursor)
        found += page.conversations
    assert [one.id for one in found] == [kept.conversation]


def test_a_list_asks_again_for_what_a_batch_left_out(table: Table, store: WarmDynamoDB) -> None:
    created = {create(store, now_ms=NOW_MS + number).conversation for number in range(25)}
    whole = table.client.batch_get_item
    asked: list[int] = []

    def batch_get_item(**request: Any) -> Any:
        keys = request["RequestItems"][TABLE]["Keys"]
        asked.append(len(keys))
        if len(asked) > 2:
            return whole(**request)
        found = whole(RequestItems={TABLE: {"Keys": keys[:-3]}})["Responses"] if keys[:-3] else {}
        return {"Responses": found, "UnprocessedKeys": {TABLE: {"Keys": keys[-3:]}}}

    table.instead["batch_get_item"] = batch_get_item
    page = store.list_conversations(TENANT, "ada", limit=100, cursor=None)
    assert {one.id for one in page.conversations} == created
    assert asked == [50, 3, 3]


def test_a_body_that_cannot_be_kept_leaves_no_item(table: Table, store: WarmDynamoDB, bodies: BodiesMemory) -> None:
    key = create(store)
    sent = StoredMessage(message(key, text_parts(noise(500_000))))
    bodies.unavailable = True
    with pytest.raises(WarmUnavailable):
        store.put_message(TENANT, sent)
    assert len(table.named("put_item")) == 3  # those of the conversation
    bodies.unavailable = False
    assert store.read_message(key, sent.message.id) is None
    assert store.put_message(TENANT, sent) is None


def test_a_head_that_becomes_another_owners_behind_the_read_is_not_changed(table: Table, store: WarmDynamoDB) -> None:
    key = create(store, "bob")
    other = warm_items.head_item(TENANT, conversation("ada", id=key.conversation, title="hers"))

    def put_back(name: str, _request: dict[str, Any]) -> None:
        if name == "update_item":
            table.before = lambda *_: None
            table.put_item(TableName=TABLE, Item=other)

    table.before = put_back
    assert store.update_conversation(key, owner="bob", title="his") is None
    assert table.item(key, SORT_HEAD) == other


def test_a_table_that_tells_nothing_with_its_refusal_is_asked(table: Table, store: WarmDynamoDB) -> None:
    key = create(store)
    first = StoredMessage(message(key, text_parts("first")))
    store.put_message(TENANT, first)
    table.before = refuse("ConditionalCheckFailedException", of="put_item")
    other = StoredMessage(message(key, text_parts("other"), id=first.message.id))
    assert store.put_message(TENANT, other) == first


def test_a_refusal_for_an_item_that_is_no_more_is_no_success(table: Table, store: WarmDynamoDB) -> None:
    key = create(store)
    table.before = refuse("ConditionalCheckFailedException", of="put_item")
    with pytest.raises(WarmUnavailable):
        store.put_message(TENANT, StoredMessage(message(key)))


CALLS: dict[str, tuple[str, Callable[[WarmDynamoDB, ConversationKey], object]]] = {
    "create": ("put_item", lambda store, _: store.create_conversation(TENANT, conversation())),
    "head": ("query", lambda store, key: store.read_head(key)),
    "active": ("get_item", lambda store, key: store.read_active_at(key)),
    "update": ("update_item", lambda store, key: store.update_conversation(key, owner="ada", title="x")),
    "list": ("query", lambda store, _: store.list_conversations(TENANT, "ada", limit=1, cursor=None)),
    "heads": ("batch_get_item", lambda store, _: store.list_conversations(TENANT, "ada", limit=1, cursor=None)),
    "touch": ("update_item", lambda store, key: store.touch(key, now_ms=NOW_MS + DAY_MS)),
    "touched": ("query", lambda store, key: store.touch(key, now_ms=NOW_MS)),
    "put": ("put_item", lambda store, key: store.put_message(TENANT, StoredMessage(message(key)))),
    "message": ("get_item", lambda store, key: store.read_message(key, ids.mint(NOW_MS))),
    "newest": ("query", lambda store, key: store.newest_id(key)),
    "messages": ("query", lambda store, key: store.read_messages(key, limit=1)),
}


@pytest.mark.parametrize("name", CALLS)
def test_no_fault_of_the_table_is_swallowed(table: Table, store: WarmDynamoDB, name: str) -> None:
    operation, ask = CALLS[name]
    key = create(store)
    table.before = refuse("ProvisionedThroughputExceededException", of=operation)
    with pytest.raises(WarmUnavailable, match=operation):
        ask(store, key)
    table.before = refuse("InternalServerError", of=operation, status=500)
    with pytest.raises(WarmUnavailable, match=operation):
        ask(store, key)
    table.before = refuse("ValidationException", of=operation)
    with pytest.raises(ClientError, match="ValidationException"):
        ask(store, key)


@pytest.mark.parametrize("listens", [False, True])
def test_a_table_that_cannot_be_reached_or_never_answers_is_unavailable(listens: bool) -> None:  # noqa: FBT001 -- a parameter of the case
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        if listens:
            server.listen()
        client = boto3.client(
            "dynamodb",
            endpoint_url=f"http://127.0.0.1:{server.getsockname()[1]}",
            region_name="us-east-1",
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
            config=STORE.merge(Config(read_timeout=0.1, retries={"mode": "standard", "total_max_attempts": 1})),
        )
        store = WarmDynamoDB(client, TABLE, BodiesMemory())
        with pytest.raises(WarmUnavailable):
            store.read_head(ConversationKey(TENANT, ids.mint(NOW_MS)))
