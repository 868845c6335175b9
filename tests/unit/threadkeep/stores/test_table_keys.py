"""Keys of the table: what they are, and that no two conversations or users share one."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from threadkeep.domain import ids, times
from threadkeep.domain.bounds import ARCHIVE_SHARDS
from threadkeep.domain.model import ConversationKey
from threadkeep.stores import table_keys

NOW_MS = 1_790_000_000_000
CONVERSATION = "01a0c450-6c00-7745-89d2-49210750a2df"
names = st.text(st.sampled_from("ab#%./3 2é🙂\0~-_"), max_size=6)


def test_a_partition_is_tenant_and_conversation() -> None:
    partition = table_keys.partition(ConversationKey("acme", CONVERSATION))
    assert partition == f"acme#{CONVERSATION}"
    assert table_keys.conversation_of(partition) == CONVERSATION


@pytest.mark.parametrize(
    ("name", "encoded"),
    [("acme", "acme"), ("a#b", "a%23b"), ("a%23b", "a%2523b"), ("a/b", "a%2Fb"), ("..", "%2E%2E"), ("é", "%C3%A9")],
)
def test_a_name_is_percent_encoded(name: str, encoded: str) -> None:
    assert table_keys.encode_name(name) == encoded


@given(names, names, names, names)
@example("a", "b#c", "a#b", "c")
@example("a", "b%23c", "a", "b#c")
@settings(deadline=None)
def test_different_owners_have_different_keys(tenant: str, user: str, tenant_2: str, user_2: str) -> None:
    same_key = table_keys.owner(tenant, user) == table_keys.owner(tenant_2, user_2)
    assert same_key == ((tenant, user) == (tenant_2, user_2))


@given(names)
@settings(deadline=None)
def test_the_conversation_is_found_in_its_partition_whatever_the_tenant(tenant: str) -> None:
    partition = table_keys.partition(ConversationKey(tenant, CONVERSATION))
    assert table_keys.conversation_of(partition) == CONVERSATION
    assert table_keys.key_of(partition) == ConversationKey(tenant, CONVERSATION)
    assert partition.count("#") == 1


def test_a_message_is_found_in_its_key() -> None:
    assert table_keys.message(CONVERSATION) == f"m#{CONVERSATION}"
    assert table_keys.message_of(table_keys.message(CONVERSATION)) == CONVERSATION


def test_a_conversation_falls_due_on_a_day_and_always_in_the_same_shard() -> None:
    due_key, due_at = table_keys.due(CONVERSATION, due_ms=times.from_rfc3339("2026-03-02T23:59:59.999Z"))
    assert due_at == "2026-03-02T23:59:59.999Z"
    day, _, shard = due_key.partition("#")
    assert day == "2026-03-02"
    assert table_keys.due(CONVERSATION, due_ms=NOW_MS)[0].endswith(f"#{shard}")


def test_the_shards_of_a_day_are_bounded_and_all_in_use() -> None:
    shards = {table_keys.due(ids.mint(NOW_MS), due_ms=NOW_MS)[0].partition("#")[2] for _ in range(2_000)}
    assert shards == {str(shard) for shard in range(ARCHIVE_SHARDS)}
