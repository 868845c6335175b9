"""Contexts: what a model reads of a path before it answers, over the wire and in the responder."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from tests.support.conversations import noise, text_parts
from tests.support.house import PHONE, WORKER, Frame, House
from tests.support.tiers import Calls, Tale
from threadkeep.domain.bounds import CONTEXT_MESSAGES_DEFAULT, FRAME_BYTES_MAX, MEMBER_MESSAGES_MAX
from threadkeep.domain.json_values import encode
from threadkeep.domain.model import Message
from threadkeep.domain.ops import Parts
from threadkeep.usecases.context import read_whole
from threadkeep.usecases.tiers import Tiers

WHOLE = {"messages_max": 1_000, "tokens_max": 1_000_000}


@pytest.fixture
def tale(house: House) -> Tale:
    return Tale(house)


def context(tale: Tale, **fields: Any) -> Frame:
    by = fields.pop("by", PHONE)
    return tale.house.ok(by, "context.read", conversation=tale.conversation, **fields)


def ids_of(reply: Frame) -> list[str]:
    return [message["id"] for message in reply["messages"]]


def tool_parts(kind: str, *call_ids: str) -> Parts:
    return tuple(
        {"type": Raw(encode(kind)), "call_id": Raw(encode(call_id)), "output": Raw(b'"x"')} for call_id in call_ids
    )


class Turn:
    """A question, a call of two tools, their results and an answer."""

    def __init__(self, tale: Tale, parent: str | None = None, text: str = "x") -> None:
        self.question = tale.put(parent, text)
        self.call = tale.put(self.question, role="assistant", parts=tool_parts("tool_call", "a", "b"))
        self.results = [tale.put(self.call, role="tool", parts=tool_parts("tool_result", "a"))]
        self.results.append(tale.put(self.results[0], role="tool", parts=tool_parts("tool_result", "b")))
        self.answer = tale.put(self.results[1], text, role="assistant")
        self.ids = [self.question, self.call, *self.results, self.answer]


# --- over the wire --------------------------------------------------------------------------------------------


def test_the_newest_messages_come_oldest_first_with_where_it_goes_on(tale: Tale) -> None:
    chain = tale.chain(80)
    for tier in ("warm", "hot"):
        reply = context(tale)
        assert ids_of(reply) == chain[-CONTEXT_MESSAGES_DEFAULT:]
        assert (reply["cursor"], reply["truncated"], reply["tier"]) == (chain[-51], True, tier)
    rest = context(tale, cursor=reply["cursor"])
    assert (ids_of(rest), rest["cursor"], rest["truncated"]) == (chain[:-50], None, False)


def test_a_context_is_the_path_to_the_leaf_that_it_is_asked_for(tale: Tale) -> None:
    chain = tale.chain(6)
    side = tale.put(chain[2])
    assert ids_of(context(tale, leaf=side)) == [*chain[:3], side]
    assert ids_of(context(tale, leaf=chain[4])) == chain[:5]
    assert ids_of(context(tale)) == [*chain[:3], side]
    assert tale.house.say(PHONE, "context.read", conversation=tale.conversation, leaf=tale.house.new_id())["code"] == (
        "not_found"
    )


def test_whoever_produces_has_to_say_which_leaf(tale: Tale) -> None:
    chain = tale.chain(4)
    reply = tale.house.say(WORKER, "context.read", conversation=tale.conversation)
    assert (reply["code"], reply["retryable"]) == ("bad_request", False)
    page = context(tale, by=WORKER, leaf=chain[2], max_messages=2)
    assert ids_of(page) == chain[1:3]
    assert ids_of(context(tale, by=WORKER, cursor=page["cursor"])) == chain[:1]


def test_a_cursor_that_no_page_gave_is_refused(tale: Tale) -> None:
    for cursor in ("x", "all", tale.conversation.upper()):
        reply = tale.house.say(PHONE, "context.read", conversation=tale.conversation, cursor=cursor)
        assert reply["code"] == "bad_request"


def test_an_empty_conversation_is_an_empty_context(tale: Tale) -> None:
    reply = context(tale)
    assert (reply["messages"], reply["cursor"], reply["truncated"]) == ([], None, False)


def test_messages_and_tokens_are_bounded_and_the_newest_is_there_in_any_case(tale: Tale) -> None:
    chain = tale.chain(10, text="x" * 400)
    count = context(tale)["messages"][0]["tokens"]["count"]
    assert ids_of(context(tale, max_messages=3)) == chain[-3:]
    assert ids_of(context(tale, max_tokens=4 * count)) == chain[-4:]
    assert ids_of(context(tale, max_tokens=5 * count - 1)) == chain[-4:]
    assert ids_of(context(tale, max_tokens=1)) == chain[-1:]


@pytest.mark.parametrize("is_hot", [True, False])
@pytest.mark.parametrize("max_messages", range(1, 11))
def test_no_call_is_without_its_result_nor_a_result_without_its_call(
    tale: Tale,
    max_messages: int,
    is_hot: bool,  # noqa: FBT001 -- a case
) -> None:
    first = Turn(tale)
    second = Turn(tale, first.answer)
    tale.house.hot.unavailable = not is_hot
    path = [*first.ids, *second.ids]
    read: list[str] = []
    cursor = None
    while cursor is not None or not read:
        reply = context(tale, max_messages=max_messages, cursor=cursor)
        messages = reply["messages"]
        calls = [part["call_id"] for message in messages for part in message["parts"] if part["type"] == "tool_call"]
        told = [part["call_id"] for message in messages for part in message["parts"] if part["type"] == "tool_result"]
        assert sorted(calls) == sorted(told)
        read = [*ids_of(reply), *read]
        cursor = reply["cursor"]
    assert read == path


def test_a_system_message_is_kept_and_counted_first(tale: Tale) -> None:
    system = tale.put(None, "Be kind.", role="system")
    chain = tale.chain(20, system, text="x" * 400)
    reply = context(tale, max_tokens=300)
    assert ids_of(reply)[0] == system
    tokens = sum(message["tokens"]["count"] for message in reply["messages"])
    assert 150 < tokens <= 300
    assert ids_of(reply)[1:] == chain[-len(ids_of(reply)) + 1 :]
    assert reply["truncated"]
    assert ids_of(context(tale, max_tokens=1)) == [system, chain[-1]]


def test_what_a_frame_does_not_take_ends_the_page_and_the_cursor_goes_on(tale: Tale) -> None:
    chain = tale.chain(20, text=noise(3_000))
    read: list[str] = []
    cursor = None
    pages = 0
    while cursor is not None or not read:
        reply = context(tale, cursor=cursor)
        assert reply["truncated"] == (reply["cursor"] is not None)
        read = [*ids_of(reply), *read]
        cursor = reply["cursor"]
        pages += 1
    assert read == chain
    assert pages < 5


def test_a_call_and_its_result_that_no_frame_takes_together_come_without_parts(tale: Tale) -> None:
    call = tale.put(
        None, role="assistant", parts=({**tool_parts("tool_call", "a")[0], "arguments": Raw(encode(noise(15_000)))},)
    )
    result = tale.put(
        call, role="tool", parts=({**tool_parts("tool_result", "a")[0], "output": Raw(encode(noise(15_000)))},)
    )
    reply = context(tale)
    assert ids_of(reply) == [call, result]
    assert not any("parts" in message for message in reply["messages"])
    assert all(message["bytes"] > 15_000 for message in reply["messages"])


def test_a_cold_context_is_one_ranged_read_and_warms_the_next(tale: Tale) -> None:
    chain = tale.chain(500)
    tale.rest()
    tale.archive(chain)
    calls = Calls(tale.house)
    for tier in ("cold", "hot"):
        reply = context(tale)
        assert (ids_of(reply), reply["tier"]) == (chain[-50:], tier)
    assert calls.counted["cold.read"] == 1
    assert calls.counted["manifests.read"] == 1


def test_damage_is_told_and_truncates(tale: Tale) -> None:
    chain = tale.chain(3 * MEMBER_MESSAGES_MAX)
    tale.rest()
    tale.damage(tale.archive(chain), 2)
    reply = context(tale)
    assert ids_of(reply) == chain[2 * MEMBER_MESSAGES_MAX - 50 : 2 * MEMBER_MESSAGES_MAX]
    assert reply["damaged"] == [
        {"first": chain[2 * MEMBER_MESSAGES_MAX], "last": chain[-1], "count": MEMBER_MESSAGES_MAX}
    ]
    assert reply["truncated"]


def test_a_context_with_damage_in_its_middle_is_truncated_though_it_reaches_the_root(tale: Tale) -> None:
    chain = tale.chain(10)
    tale.rest()
    tale.damage(tale.archive(chain[3:6]), 0)
    reply = context(tale)
    assert ids_of(reply) == [*chain[:3], *chain[6:]]
    assert (reply["cursor"], reply["truncated"]) == (None, True)
    assert [stretch["count"] for stretch in reply["damaged"]] == [3]


def test_a_context_costs_the_same_whatever_the_conversation_holds(house: House) -> None:
    counted = []
    for length in (10, 2_000):
        tale = Tale(house)
        chain = tale.chain(length)
        calls = Calls(house)
        for _ in range(2):
            assert ids_of(context(tale, max_messages=10)) == chain[-10:]
        counted.append(calls.counted)
    assert counted[0] == counted[1]


def test_a_foreign_conversation_has_no_context(tale: Tale) -> None:
    tale.chain(1)
    other = {"conversation": tale.house.new_id()}
    missing = tale.house.say(PHONE, "context.read", **other)
    assert missing["code"] == "not_found"


# --- in the responder -----------------------------------------------------------------------------------------


def read(tale: Tale, leaf: str, **bounds: int) -> tuple[Message, ...]:
    return read_whole(Tiers.of(tale.house.services), tale.key, leaf, **(WHOLE | bounds))


def read_ids(tale: Tale, leaf: str, **bounds: int) -> list[str]:
    return [found.id for found in read(tale, leaf, **bounds)]


@pytest.mark.parametrize("length", [1, 99, 100, 101, 250])
def test_the_responder_reads_a_path_over_as_many_pages_as_it_takes(tale: Tale, length: int) -> None:
    path = tale.chain(length)
    assert read_ids(tale, path[-1]) == path


def test_of_several_branches_the_leafs_is_read(tale: Tale) -> None:
    stem = tale.chain(3)
    one = tale.chain(60, stem[-1])
    other = tale.chain(60, stem[-1])
    between = [tale.put(one[10]), tale.put(other[10])]
    assert read_ids(tale, one[-1]) == stem + one
    assert read_ids(tale, other[20]) == stem + other[:21]
    assert read_ids(tale, between[0]) == [*stem, *one[:11], between[0]]


def test_no_older_message_comes_in_past_one_that_did_not_fit(tale: Tale) -> None:
    small = tale.put(None)
    large = tale.put(small, "x" * 4_000)
    leaf = tale.put(large)
    assert read_ids(tale, leaf, tokens_max=500) == [leaf]


def test_the_responder_reads_large_messages_with_their_parts_from_table_and_archive(tale: Tale) -> None:
    text = noise(100_000)
    root = tale.put(None, text)
    leaf = tale.put(root)
    assert read(tale, leaf)[0].parts == text_parts(text)
    tale.rest()
    tale.archive([root, leaf])
    assert read(tale, leaf)[0].parts == text_parts(text)


def test_the_responders_path_ends_where_a_message_is_missing(tale: Tale) -> None:
    path = tale.chain(60)
    del tale.house.warm.messages[tale.key][path[30]]
    assert read_ids(tale, path[-1]) == path[31:]
    del tale.house.warm.messages[tale.key][path[-1]]
    assert read_ids(tale, path[-1]) == []


def test_both_ways_select_alike(tale: Tale) -> None:
    turns = [Turn(tale)]
    for _ in range(4):
        turns.append(Turn(tale, turns[-1].answer, "x" * 300))
    leaf = turns[-1].answer
    for tokens_max in range(1, 400, 23):
        wire = context(tale, leaf=leaf, max_messages=30, max_tokens=tokens_max)
        assert ids_of(wire) == read_ids(tale, leaf, messages_max=30, tokens_max=tokens_max)


def test_a_frame_is_never_exceeded_by_what_has_to_be_in_it(tale: Tale) -> None:
    system = tale.put(None, noise(15_000), role="system")
    leaf = tale.put(system, noise(15_000))
    reply = context(tale, max_tokens=1)
    assert ids_of(reply) == [system, leaf]
    assert len(json.dumps(reply)) <= FRAME_BYTES_MAX
