"""What every `threadkeep.ports.WarmStore` does alike: in memory, and on DynamoDB's and S3's own API."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from msgspec import UNSET, Raw

from tests.support.conversations import (
    NOW_MS,
    awkward_object,
    conversation,
    message,
    noise,
    noise_of_three_bytes,
    text_parts,
    tombstone,
)
from tests.support.moto_table import REGION, TABLE, buckets_of, empty_table, moto_clients
from threadkeep.domain import ids, times
from threadkeep.domain.bounds import FRAME_BYTES_MAX, PULSE_EVERY_MS
from threadkeep.domain.errors import Refused
from threadkeep.domain.json_values import encode
from threadkeep.domain.model import Conversation, ConversationKey, Message, StoredMessage
from threadkeep.domain.ops import Parts
from threadkeep.domain.tail import SEVERAL
from threadkeep.ports import Gone, WarmStore
from threadkeep.stores.bodies_s3 import BodiesS3
from threadkeep.stores.erasures_dynamodb import ErasuresDynamoDB
from threadkeep.stores.list_cursor import ListCursor
from threadkeep.stores.warm_dynamodb import WarmDynamoDB
from threadkeep.stores.warm_memory import WarmMemory

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

TENANT = "acme"


class Warm(msgspec.Struct, frozen=True):
    """A store, and how a conversation of it becomes a deleted one (erasing is not this port's)."""

    store: WarmStore
    bury: Callable[[ConversationKey], None]


@pytest.fixture(scope="module")
def clients() -> Iterator[tuple[DynamoDBClient, S3Client]]:
    with moto_clients() as made:
        yield made


@pytest.fixture(params=["memory", "dynamodb"])
def warm(request: pytest.FixtureRequest) -> Warm:
    if request.param == "memory":
        memory = WarmMemory()
        return Warm(memory, lambda key: memory.gone.update({key: tombstone()}))
    table, bucket = request.getfixturevalue("clients")
    empty_table(table)

    def bury(key: ConversationKey) -> None:
        ErasuresDynamoDB(table, TABLE).put_tombstone(key, tombstone())

    return Warm(WarmDynamoDB(table, TABLE, BodiesS3(buckets_of(bucket), REGION)), bury)


@pytest.fixture
def store(warm: Warm) -> WarmStore:
    return warm.store


def create(store: WarmStore, owner: str = "ada", *, now_ms: int = NOW_MS, tenant: str = TENANT) -> ConversationKey:
    new = conversation(owner, now_ms=now_ms)
    assert store.create_conversation(tenant, new) is None
    return ConversationKey(tenant, new.id)


def put(store: WarmStore, key: ConversationKey, **fields: object) -> Message:
    new = message(key, **fields)  # type: ignore[arg-type]  # whatever a message has
    assert store.put_message(key.tenant, StoredMessage(new)) is None
    return new


def listed(store: WarmStore, owner: str = "ada", *, tenant: str = TENANT, limit: int = 100) -> list[str]:
    """All of a user's conversations, page by page."""
    found: list[str] = []
    cursor = None
    while True:
        page = store.list_conversations(tenant, owner, limit=limit, cursor=cursor)
        assert len(page.conversations) <= limit
        found += [one.id for one in page.conversations]
        cursor = page.cursor
        if cursor is None:
            return found


# --- conversations --------------------------------------------------------------------------------------------


def test_a_conversation_is_kept_with_all_it_has(store: WarmStore) -> None:
    full = conversation(title="Tee & Kuchen \0 🙂", metadata=awkward_object(), retention_days=30)
    bare = conversation()
    for new in (full, bare):
        assert store.create_conversation(TENANT, new) is None
        assert store.read_head(ConversationKey(TENANT, new.id)) == new
        assert store.read_active_at(ConversationKey(TENANT, new.id)) == new.active_at


def test_what_was_never_created_is_nowhere(store: WarmStore) -> None:
    key = ConversationKey(TENANT, ids.mint(NOW_MS))
    assert store.read_head(key) is None
    assert store.read_active_at(key) is None
    assert store.update_conversation(key, owner="ada", title="x") is None
    assert store.read_head(key) is None
    assert store.newest_id(key) is None
    assert store.read_message(key, ids.mint(NOW_MS)) is None
    assert store.read_messages(key, limit=10).messages == ()
    assert listed(store) == []


def test_a_conversation_created_again_stays_as_it_is(store: WarmStore) -> None:
    first = conversation(title="first", metadata={"n": Raw(b"1")})
    store.create_conversation(TENANT, first)
    again = msgspec.structs.replace(first, owner="bob", title="second", metadata={})
    assert store.create_conversation(TENANT, again) == first
    assert store.read_head(ConversationKey(TENANT, first.id)) == first
    assert listed(store, "bob") == []


def test_a_deleted_conversation_is_gone_for_every_reader(warm: Warm) -> None:
    store = warm.store
    key = create(store)
    kept = create(store)
    warm.bury(key)
    assert store.read_head(key) == Gone(tombstone())
    assert store.create_conversation(TENANT, conversation(id=key.conversation)) == Gone(tombstone())
    assert store.update_conversation(key, owner="ada", title="x") is None
    assert listed(store) == [kept.conversation]


def test_only_what_is_given_is_updated(store: WarmStore) -> None:
    new = conversation(title="old", metadata={"a": Raw(b"1")}, retention_days=7)
    store.create_conversation(TENANT, new)
    key = ConversationKey(TENANT, new.id)
    for changes in (
        {"title": "new"},
        {"metadata": awkward_object()},
        {"title": None},
        {},
        {"title": "", "metadata": {}},
    ):
        new = msgspec.structs.replace(new, **changes)
        assert store.update_conversation(key, owner=new.owner, **changes) == new
        assert store.read_head(key) == new


@pytest.mark.parametrize("changes", [{"title": "x"}, {"title": None}, {"metadata": {}}, {}])
def test_another_owners_is_neither_changed_nor_shown(store: WarmStore, changes: dict[str, Any]) -> None:
    new = conversation("ada", title="hers", metadata={"a": Raw(b"1")})
    store.create_conversation(TENANT, new)
    key = ConversationKey(TENANT, new.id)
    assert store.update_conversation(key, owner="bob", **changes) is None
    assert store.read_head(key) == new


def test_tenants_and_users_do_not_meet_whatever_they_are_called(store: WarmStore) -> None:
    names = [("a", "b#c"), ("a#b", "c"), ("a", "b"), ("a%23b", "c"), ("..", "/"), ("é", "🙂"), ("A", "B"), ("a.b", "")]
    shared = ids.mint(NOW_MS)
    for tenant, user in names:
        new = conversation(user, id=shared, title=f"{tenant} {user}")
        if (tenant, user) == ("a", "b"):
            new = msgspec.structs.replace(new, id=ids.mint(NOW_MS))  # one id is one conversation of a tenant
        assert store.create_conversation(tenant, new) is None
        assert store.put_message(tenant, StoredMessage(message(ConversationKey(tenant, new.id)))) is None
    for tenant, user in names:
        page = store.list_conversations(tenant, user, limit=10, cursor=None)
        assert [one.title for one in page.conversations] == [f"{tenant} {user}"]
        key = ConversationKey(tenant, page.conversations[0].id)
        assert len(store.read_messages(key, limit=10).messages) == 1


# --- activity and lists ---------------------------------------------------------------------------------------


def test_activity_is_noted_once_a_minute(store: WarmStore) -> None:
    key = create(store)
    for now_ms, noted_ms in (
        (NOW_MS - 1, NOW_MS),
        (NOW_MS + PULSE_EVERY_MS, NOW_MS),
        (NOW_MS + PULSE_EVERY_MS + 1, NOW_MS + PULSE_EVERY_MS + 1),
        (NOW_MS + PULSE_EVERY_MS + 2, NOW_MS + PULSE_EVERY_MS + 1),
    ):
        store.touch(key, now_ms=now_ms)
        assert store.read_active_at(key) == times.to_rfc3339(noted_ms)
    head = store.read_head(key)
    assert isinstance(head, Conversation)
    assert head.active_at == head.created_at == times.to_rfc3339(NOW_MS)


def test_activity_where_there_is_no_conversation_leaves_nothing_behind(store: WarmStore) -> None:
    key = ConversationKey(TENANT, ids.mint(NOW_MS))
    store.touch(key, now_ms=NOW_MS)
    assert store.read_active_at(key) is None


def test_a_list_is_the_owners_alone_newest_activity_first(store: WarmStore) -> None:
    oldest, middle, newest = (create(store, now_ms=NOW_MS + number * 1_000) for number in range(3))
    create(store, "bob")
    create(store, tenant="other")
    assert listed(store) == [newest.conversation, middle.conversation, oldest.conversation]
    store.touch(oldest, now_ms=NOW_MS + 3_600_000)
    page = store.list_conversations(TENANT, "ada", limit=1, cursor=None)
    assert [(one.id, one.active_at) for one in page.conversations] == [
        (oldest.conversation, times.to_rfc3339(NOW_MS + 3_600_000))
    ]


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6, 7, 100])
def test_pages_of_a_list_hold_each_conversation_once(store: WarmStore, limit: int) -> None:
    created = [create(store, now_ms=NOW_MS + number).conversation for number in range(6)]
    assert listed(store, limit=limit) == created[::-1]


def test_a_list_that_ends_with_a_page_says_so(store: WarmStore) -> None:
    for number in range(3):
        create(store, now_ms=NOW_MS + number)
    assert store.list_conversations(TENANT, "ada", limit=3, cursor=None).cursor is None
    assert store.list_conversations(TENANT, "ada", limit=2, cursor=None).cursor is not None


def test_deleted_conversations_leave_no_hole_in_a_page(warm: Warm) -> None:
    keys = [create(warm.store, now_ms=NOW_MS + number) for number in range(6)]
    for key in keys[1:5]:
        warm.bury(key)
    page = warm.store.list_conversations(TENANT, "ada", limit=2, cursor=None)
    assert [one.id for one in page.conversations] == [keys[5].conversation, keys[0].conversation]
    assert page.cursor is None


def test_a_cursor_names_a_place_and_never_whose_list(store: WarmStore) -> None:
    for number in range(4):
        create(store, "ada", now_ms=NOW_MS + number)
    bobs = [create(store, "bob", now_ms=NOW_MS + number).conversation for number in range(4)]
    cursor = store.list_conversations(TENANT, "ada", limit=2, cursor=None).cursor
    page = store.list_conversations(TENANT, "bob", limit=10, cursor=cursor)
    assert {one.owner for one in page.conversations} == {"bob"}
    assert {one.id for one in page.conversations} <= set(bobs)
    assert store.list_conversations("other", "ada", limit=10, cursor=cursor).conversations == ()


def test_a_cursor_whose_place_has_moved_still_holds(store: WarmStore) -> None:
    keys = [create(store, now_ms=NOW_MS + number) for number in range(4)]
    cursor = store.list_conversations(TENANT, "ada", limit=2, cursor=None).cursor
    store.touch(keys[2], now_ms=NOW_MS + 3_600_000)
    page = store.list_conversations(TENANT, "ada", limit=2, cursor=cursor)
    assert [one.id for one in page.conversations] == [keys[1].conversation, keys[0].conversation]


GOOD_CURSOR = ListCursor("2026-09-21T14:13:20.000Z", "01a0c450-6c00-7745-89d2-49210750a2df").to_text()


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "é",
        GOOD_CURSOR + "x",
        GOOD_CURSOR[:-4],
        GOOD_CURSOR[::-1],
        "WzEsMl0=",  # [1,2]
        "e30=",  # {}
        "WyIyMDI2LTA5LTIxVDE0OjEzOjIwLjAwMFoiLCJhI2IiXQ==",  # ["2026-09-21T14:13:20.000Z","a#b"]
        "WyIiLCIwMWEwYzQ1MC02YzAwLTc3NDUtODlkMi00OTIxMDc1MGEyZGYiXQ==",  # ["","01a0c450-…"]
    ],
)
def test_a_cursor_that_no_page_gave_is_a_bad_request(store: WarmStore, cursor: str) -> None:
    create(store)
    with pytest.raises(Refused) as refused:
        store.list_conversations(TENANT, "ada", limit=10, cursor=cursor)
    assert refused.value.code == "bad_request"
    assert store.list_conversations(TENANT, "ada", limit=10, cursor=GOOD_CURSOR).cursor is None


# --- messages: what is kept -----------------------------------------------------------------------------------


def test_a_message_is_kept_with_all_it_has(store: WarmStore) -> None:
    key = create(store)
    awkward = awkward_object()
    full = message(
        key,
        (awkward, {"type": Raw(b'"text"'), "text": Raw(b'"a\\u0000b"')}),
        parent=ids.mint(NOW_MS - 1),
        role="assistant",
        status="failed",
        metadata=awkward,
        usage=awkward | {"output_tokens": Raw(b"12")},
        error=awkward,
        model="a model",
        reply=ids.mint(NOW_MS + 1),
    )
    bare = message(key, ())
    for stored in (StoredMessage(full, 1_790_000_000_123), StoredMessage(bare)):
        assert store.put_message(TENANT, stored) is None
        assert store.read_message(key, stored.message.id) == stored
        assert encode(store.read_message(key, stored.message.id)) == encode(stored)
    assert {stored.message.id: stored for stored in store.read_messages(key, limit=2).messages} == {
        full.id: StoredMessage(full, 1_790_000_000_123),
        bare.id: StoredMessage(bare),
    }


@pytest.mark.parametrize("name", list(awkward_object()))
def test_json_comes_back_byte_for_byte_wherever_it_stands(store: WarmStore, name: str) -> None:
    value = awkward_object()[name]
    key = create(store)
    sent = put(store, key, parts=({"type": Raw(b'"data"'), name: value},), metadata={name: value})
    read = store.read_message(key, sent.id)
    assert read is not None
    assert read.message.parts is not UNSET
    assert bytes(read.message.parts[0][name]) == bytes(read.message.metadata[name]) == bytes(value)


LARGE: dict[str, Parts] = {
    "399 KB of ASCII": text_parts(noise(399 * 1024)),
    "200,000 characters of three bytes": text_parts(noise_of_three_bytes(200_000)),
    "20 tool results of 60 KB": tuple(
        {
            "type": Raw(b'"tool_result"'),
            "call_id": Raw(encode(f"call {number}")),
            "output": Raw(encode(noise(60_000, number))),
        }
        for number in range(20)
    ),
    "8 MiB that compress well": text_parts("all work and no play " * 400_000),
}


@pytest.mark.parametrize("name", LARGE)
def test_a_large_message_is_kept_whole_and_a_page_tells_its_size(store: WarmStore, name: str) -> None:
    key = create(store)
    parts = LARGE[name]
    sent = put(store, key, parts=parts, metadata={"n": Raw(b"1.0")})
    read = store.read_message(key, sent.id)
    assert read is not None
    assert encode(read.message.parts) == encode(parts)
    assert read.message == sent
    assert store.put_message(TENANT, StoredMessage(sent)) == StoredMessage(sent)
    assert store.read_messages(key, limit=1).messages == (StoredMessage(sent.without_parts()),)
    assert store.read_first(key) == StoredMessage(sent.without_parts())


@pytest.mark.parametrize(("parts_bytes", "is_shown"), [(FRAME_BYTES_MAX, True), (FRAME_BYTES_MAX + 1, False)])
def test_a_page_leaves_out_parts_that_no_frame_could_hold(store: WarmStore, parts_bytes: int, is_shown: bool) -> None:  # noqa: FBT001 -- a parameter of the case
    key = create(store)
    parts = text_parts("x" * (parts_bytes - len(encode(text_parts("")))))
    assert len(encode(parts)) == parts_bytes
    sent = put(store, key, parts=parts)
    (shown,) = store.read_messages(key, limit=1).messages
    assert shown.message == (sent if is_shown else sent.without_parts())


def test_a_message_without_its_parts_is_not_stored(store: WarmStore) -> None:
    key = create(store)
    bare = message(key).without_parts()
    with pytest.raises(ValueError, match=bare.id):
        store.put_message(TENANT, StoredMessage(bare))
    assert store.read_message(key, bare.id) is None


# --- messages: once, and in order -----------------------------------------------------------------------------


def test_a_message_is_stored_once_and_the_first_one_stands(store: WarmStore) -> None:
    key = create(store)
    first = StoredMessage(message(key, text_parts("first")), 5)
    other = StoredMessage(message(key, text_parts("other"), id=first.message.id, role="tool"), 6)
    assert store.put_message(TENANT, first) is None
    assert store.put_message(TENANT, first) == first
    assert store.put_message(TENANT, other) == first
    assert store.read_message(key, first.message.id) == first


def test_of_many_at_one_id_one_stands_and_the_others_are_told_which(store: WarmStore) -> None:
    key = create(store)
    identifier = ids.mint(NOW_MS)
    rivals = [StoredMessage(message(key, text_parts(str(number)), id=identifier)) for number in range(20)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda rival: store.put_message(TENANT, rival), rivals))
    stands = store.read_message(key, identifier)
    assert [rival for rival, answer in zip(rivals, answers, strict=True) if answer is None] == [stands]
    assert {encode(answer) for answer in answers if answer is not None} == {encode(stands)}


def test_of_fifty_sent_at_one_instant_fifty_are_kept(store: WarmStore) -> None:
    key = create(store)
    sent = [StoredMessage(message(key, text_parts(str(number)))) for number in range(50)]
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda stored: store.put_message(TENANT, stored), sent)) == {None}
    page = store.read_messages(key, limit=100)
    assert {encode(stored) for stored in page.messages} == {encode(stored) for stored in sent}
    assert not page.more


def test_ten_written_in_one_millisecond_keep_their_order(store: WarmStore) -> None:
    key = create(store)
    chain: list[str] = []
    for _ in range(10):
        parent = chain[-1] if chain else None
        chain.append(put(store, key, id=ids.mint(NOW_MS, after=parent), parent=parent).id)
    assert [stored.message.id for stored in store.read_messages(key, limit=10).messages] == chain[::-1]
    assert store.newest_id(key) == chain[-1]
    assert store.read_first(key) == store.read_messages(key, limit=10).messages[-1]


def test_once_several_messages_are_roots_none_is_the_first_and_else_nothing_shows_it(store: WarmStore) -> None:
    key, other = create(store), create(store)
    first, last = (put(store, key, now_ms=NOW_MS + n) for n in (0, 1))
    store.note_several(key)
    store.note_several(key)
    assert store.read_first(key) == SEVERAL
    assert store.newest_id(key) == last.id
    for bound in (first.id, "", None):
        page = store.read_messages(key, before=bound, limit=10)
        assert [stored.message.id for stored in page.messages] == ([last.id, first.id] if bound is None else [])
        assert not page.more
    assert [stored.message.id for stored in store.read_messages(key, limit=2).messages] == [last.id, first.id]
    assert store.read_head(key) is not None
    assert store.read_first(other) is None
    store.note_several(other)
    assert store.read_first(other) == SEVERAL
    assert store.newest_id(other) is None


def test_the_newest_of_a_long_conversation_are_the_newest(store: WarmStore) -> None:
    key = create(store)
    sent = [put(store, key, parts=text_parts(noise(2_000, number)), now_ms=NOW_MS + number) for number in range(1_200)]
    page = store.read_messages(key, limit=50)
    assert [stored.message for stored in page.messages] == sent[:-51:-1]
    assert page.more
    whole = store.read_messages(key, limit=1_201)
    assert [stored.message.id for stored in whole.messages] == [one.id for one in sent[::-1]]
    assert not whole.more


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6])
def test_pages_hold_each_message_once_and_end_where_the_messages_do(store: WarmStore, limit: int) -> None:
    key = create(store)
    sent = [put(store, key, now_ms=NOW_MS + number // 3).id for number in range(6)]
    found: list[str] = []
    before = None
    for _ in range(7):  # at the very end a page may say that there may be more: then one without messages follows
        page = store.read_messages(key, before=before, limit=limit)
        assert page.messages or len(found) == 6
        found += [stored.message.id for stored in page.messages]
        assert page.more or len(found) == 6
        if not page.more:
            break
        before = found[-1]
    assert found == sorted(sent, reverse=True)


@pytest.mark.parametrize("consistent", [True, False])
def test_both_bounds_are_exclusive_and_need_be_no_message(store: WarmStore, *, consistent: bool) -> None:
    key = create(store)
    one, two, three, four = (put(store, key, now_ms=NOW_MS + 10 * number).id for number in range(4))

    def read(*, limit: int = 10, **bounds: str) -> tuple[list[str], bool]:
        page = store.read_messages(key, limit=limit, consistent=consistent, **bounds)
        return [stored.message.id for stored in page.messages], page.more

    assert read() == ([four, three, two, one], False)
    assert read(before=four) == ([three, two, one], False)
    assert read(after=one) == ([four, three, two], False)
    assert read(after=one, before=four) == ([three, two], False)
    assert read(after=one, before=four, limit=2) == ([three, two], False)
    assert read(after=one, before=four, limit=1) == ([three], True)
    assert read(after=two, before=two) == ([], False)
    assert read(after=two, before=three) == ([], False)
    assert read(after=three, before=two) == ([], False)
    assert read(before=one) == ([], False)
    assert read(after=four) == ([], False)
    assert read(before=two + "~") == ([two, one], False)
    assert read(after=ids.mint(NOW_MS + 5), before=ids.mint(NOW_MS + 25)) == ([three, two], False)


def test_messages_of_one_conversation_are_no_others(store: WarmStore) -> None:
    one, other = create(store), create(store)
    sent = put(store, one)
    assert store.read_message(other, sent.id) is None
    assert store.newest_id(other) is None
    assert store.read_first(other) is None
    assert store.read_messages(other, limit=1).messages == ()
    same_id = message(other, text_parts("another"), id=sent.id)
    assert store.put_message(TENANT, StoredMessage(same_id)) is None
    assert store.read_message(one, sent.id) == StoredMessage(sent)
    assert store.read_message(other, sent.id) == StoredMessage(same_id)


# --- retention ------------------------------------------------------------------------------------------------


def test_with_a_retention_the_head_tells_the_last_activity_so_that_it_can_be_seen_to_have_expired(
    store: WarmStore,
) -> None:
    day_ms = 86_400_000
    key = ConversationKey(TENANT, conversation(retention_days=7).id)
    new = conversation(id=key.conversation, retention_days=7)
    assert store.create_conversation(TENANT, new) is None
    store.touch(key, now_ms=NOW_MS + 5 * day_ms)
    head = store.read_head(key)
    assert isinstance(head, Conversation)
    assert head.active_at == times.to_rfc3339(NOW_MS + 5 * day_ms)
    assert head.expires_ms == NOW_MS + 12 * day_ms + PULSE_EVERY_MS
    assert store.create_conversation(TENANT, new) == head
    (listed,) = store.list_conversations(TENANT, "ada", limit=9, cursor=None).conversations
    assert listed == head


def test_without_one_the_head_alone_is_read(store: WarmStore) -> None:
    key = create(store)
    store.touch(key, now_ms=NOW_MS + 5 * 86_400_000)
    head = store.read_head(key)
    assert isinstance(head, Conversation)
    assert (head.active_at, head.expires_ms) == (head.created_at, None)
