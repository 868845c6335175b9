"""Keys that cannot meet, and that share their slot."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from hypothesis import given
from hypothesis import strategies as st
from valkey.crc import key_slot

from threadkeep.domain.bounds import DUE_SHARDS
from threadkeep.domain.model import ConversationKey
from threadkeep.stores.hot_keys import (
    DEADLINES,
    STATE_PATTERN,
    HotKeys,
    deadline_entry,
    deadlines_of,
    stream_of_entry,
    stream_of_state,
)

CONVERSATION, STREAM = "01a2281e-45fd-7f89-b959-8e41ae46039b", "01a2281e-4621-7ad6-9243-cd2257f36e51"
tricky = st.text(alphabet="ab/{}#%:é\U0001f600 ", max_size=6)
HASH_TAG = re.compile(r"\{([^{}]+)\}(:.*)\Z")


def names(tenant: str, conversation: str) -> set[str]:
    keys = HotKeys(ConversationKey(tenant, conversation))
    return {keys.register, keys.live, keys.viewers, keys.lagging, keys.state(STREAM), keys.log(STREAM)}


def test_the_keys_of_a_conversation() -> None:
    assert names("a/b}", CONVERSATION) == {
        f"{{a%2Fb%7D/{CONVERSATION}}}:c",
        f"{{a%2Fb%7D/{CONVERSATION}}}:live",
        f"{{a%2Fb%7D/{CONVERSATION}}}:v",
        f"{{a%2Fb%7D/{CONVERSATION}}}:w",
        f"{{a%2Fb%7D/{CONVERSATION}}}:s:{STREAM}",
        f"{{a%2Fb%7D/{CONVERSATION}}}:l:{STREAM}",
    }


@given(tricky, tricky)
def test_all_keys_of_a_conversation_lie_in_one_slot_by_a_tag_of_its_own(tenant: str, conversation: str) -> None:
    found = names(tenant, conversation)
    matches = [HASH_TAG.match(name) for name in found]
    tags = {match[1] for match in matches if match}
    assert None not in matches
    assert len(tags) == 1
    assert {key_slot(name.encode()) for name in found} == {key_slot(tags.pop().encode())}


@given(tricky, tricky, tricky, tricky)
def test_no_two_conversations_share_a_key(tenant: str, conversation: str, other: str, another: str) -> None:
    if (tenant, conversation) != (other, another):
        assert names(tenant, conversation).isdisjoint(names(other, another))


@given(tricky, tricky, tricky)
def test_a_stream_is_read_back_from_its_state_and_from_its_entry(tenant: str, conversation: str, stream: str) -> None:
    key = ConversationKey(tenant, conversation)
    assert stream_of_state(HotKeys(key).state(stream)) == (key, stream)
    assert stream_of_entry(deadline_entry(key, stream)) == (key, stream)


@given(tricky, tricky)
def test_no_other_key_looks_like_a_state(tenant: str, conversation: str) -> None:
    keys = HotKeys(ConversationKey(tenant, conversation))
    found = {name for name in names(tenant, conversation) if fnmatchcase(name, STATE_PATTERN)}
    assert found == {keys.state(STREAM)}
    assert not any(fnmatchcase(name, STATE_PATTERN) for name in DEADLINES)


def test_deadlines_lie_in_slots_of_their_own_and_a_conversations_always_in_the_same() -> None:
    assert len({key_slot(name.encode()) for name in DEADLINES}) == len(DEADLINES) == DUE_SHARDS
    shards = {deadlines_of(ConversationKey("t", f"{CONVERSATION[:-3]}{number:03}")) for number in range(200)}
    assert shards == set(DEADLINES)
    assert deadlines_of(ConversationKey("t", CONVERSATION)) == deadlines_of(ConversationKey("u", CONVERSATION))
    assert deadlines_of(ConversationKey("t", CONVERSATION)) == "due:{6}"  # for ever: entries are there
