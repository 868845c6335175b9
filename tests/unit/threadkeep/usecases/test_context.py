"""Contexts: what a model reads of a path before it answers, over the wire and in the responder."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import Raw

from tests.support.conversations import noise, text_parts
from tests.support.house import PHONE, WORKER, Frame, House, serving
from tests.support.tiers import Calls, Tale
from threadkeep.domain.bounds import CONTEXT_MESSAGES_DEFAULT, FRAME_BYTES_MAX, MEMBER_MESSAGES_MAX
from threadkeep.domain.json_values import encode
from threadkeep.domain.model import Message
from threadkeep.domain.ops import Parts
from threadkeep.usecases.context import read_whole
from threadkeep.usecases.pairs import Pairs
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


def test_a_cold_context_is_one_ranged_read_and_one_of_its_beginning_and_warms_the_next(tale: Tale) -> None:
    chain = tale.chain(500)
    tale.rest()
    tale.archive(chain)
    calls = Calls(tale.house)
    for tier in ("cold", "hot"):
        reply = context(tale)
        assert (ids_of(reply), reply["tier"]) == (chain[-50:], tier)
    assert calls.counted["cold.read"] == 2
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
    for length in (11, 2_000):
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


# --- what it begins with --------------------------------------------------------------------------------------


class Prompted(Tale):
    """A conversation of 300 messages that begins with a system message."""

    def __init__(self, house: House) -> None:
        super().__init__(house)
        self.prompt = self.put(None, "Be kind.", role="system")
        self.said = self.chain(299, self.prompt, text="x" * 400)


@pytest.fixture
def prompted(house: House) -> Prompted:
    return Prompted(house)


@pytest.mark.parametrize("bounds", [{}, {"max_messages": 12}, {"max_messages": 12, "max_tokens": 800}, {"leaf": True}])
@pytest.mark.parametrize("tier", ["warm", "hot", "cold", "no cache"])
def test_a_context_begins_with_the_system_message_that_the_conversation_begins_with(
    prompted: Prompted, tier: str, bounds: Frame
) -> None:
    """The fault: a long chat loses its system prompt."""
    if tier == "cold":
        prompted.rest()
        prompted.archive([prompted.prompt, *prompted.said])
    prompted.house.hot.unavailable = tier == "no cache"
    bounds = bounds | ({"leaf": prompted.said[-1]} if "leaf" in bounds else {})
    if tier == "hot":
        context(prompted, **bounds)
        prompted.house.warm.unavailable = True
    reply = context(prompted, **bounds)
    assert reply["tier"] == {"no cache": "warm"}.get(tier, tier)
    count = len(ids_of(reply)) - 1
    assert ids_of(reply) == [prompted.prompt, *prompted.said[-count:]]
    assert (reply["cursor"], reply["truncated"]) == (prompted.said[-count - 1], True)
    assert reply["messages"][0]["parts"][0]["text"] == "Be kind."
    if "max_messages" in bounds:
        assert count + 1 == (12 if "max_tokens" not in bounds else 8)


def test_the_first_message_counts_first_and_the_newest_is_there_in_any_case(prompted: Prompted) -> None:
    first, said = prompted.prompt, prompted.said
    counts = [message["tokens"]["count"] for message in context(prompted, max_messages=2)["messages"]]
    assert ids_of(context(prompted, max_messages=2)) == [first, said[-1]]
    assert ids_of(context(prompted, max_messages=1)) == [first, said[-1]]
    assert ids_of(context(prompted, max_tokens=sum(counts) - 1)) == [first, said[-1]]
    assert ids_of(context(prompted, max_tokens=counts[0] + 3 * counts[1])) == [first, *said[-3:]]
    assert ids_of(context(prompted, max_tokens=counts[0] + 3 * counts[1] - 1)) == [first, *said[-2:]]


def test_pages_go_on_without_it_and_it_comes_again_in_its_turn(prompted: Prompted) -> None:
    path = [prompted.prompt, *prompted.said]
    pages = [context(prompted, max_messages=60)]
    while pages[-1]["cursor"] is not None:
        pages.append(context(prompted, max_messages=60, cursor=pages[-1]["cursor"]))
    assert ids_of(pages[0])[0] == prompted.prompt
    assert [message for page in pages[:0:-1] for message in ids_of(page)] + ids_of(pages[0])[1:] == path
    assert [page["truncated"] for page in pages] == [True] * (len(pages) - 1) + [False]


def test_a_path_that_reaches_its_root_begins_with_it_and_with_nothing_else(tale: Tale) -> None:
    tale.put(None, role="system")
    other = tale.put(None)
    chain = tale.chain(5, other)
    for tokens in ({}, {"max_tokens": 1_000}):
        assert ids_of(context(tale, max_messages=6, **tokens)) == [other, *chain]


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_conversation_that_begins_otherwise_has_nothing_ahead(tale: Tale, role: str) -> None:
    first = tale.put(None, role=role)
    chain = tale.chain(30, tale.put(first, role="system"))
    for _ in range(2):
        assert ids_of(context(tale, max_messages=5)) == chain[-5:]


def test_what_a_conversation_begins_with_is_read_once(prompted: Prompted) -> None:
    """And where it has begun with the cache there, it never is."""
    tale = Tale(prompted.house)
    leaf = tale.house.message(tale.conversation, by=WORKER, role="system")
    for _ in range(8):
        leaf = tale.house.message(tale.conversation, leaf)
    calls = Calls(tale.house)
    context(tale, max_messages=3)
    context(tale, max_messages=3)
    assert calls.counted["warm.read_first"] == 0
    for expected in (1, 1):
        context(prompted, max_messages=3)
        assert calls.counted["warm.read_first"] == expected
    assert calls.counted["warm.read_head"] == 2  # whose they are
    calls.forget()
    context(prompted, max_messages=3)
    assert calls.counted == {"hot.read_tail": 1}


def test_a_beginning_that_no_bucket_gives_is_left_out_and_not_taken_for_none(prompted: Prompted) -> None:
    prompted.rest()
    manifest = prompted.archive([prompted.prompt, *prompted.said])
    bucket = next(iter(prompted.house.cold.buckets.values()))
    whole = bucket.objects[manifest.object_key]
    prompted.damage(manifest, 0)
    assert ids_of(context(prompted, max_messages=5)) == prompted.said[-5:]
    bucket.objects[manifest.object_key] = whole
    assert ids_of(context(prompted, max_messages=5)) == [prompted.prompt, *prompted.said[-4:]]


def test_a_beginning_in_the_table_is_found_beside_a_younger_segment_and_the_other_way_round(prompted: Prompted) -> None:
    prompted.rest()
    path = [prompted.prompt, *prompted.said]
    prompted.archive(path[100:200])
    assert ids_of(context(prompted, max_messages=5))[0] == prompted.prompt
    prompted.house.lose_hot()
    prompted.archive(path[:100])
    assert ids_of(context(prompted, max_messages=5))[0] == prompted.prompt


@pytest.mark.parametrize("length", [9_000, 15_000, 60_000])
def test_a_large_beginning_fits_the_frame_without_its_parts(tale: Tale, length: int) -> None:
    first = tale.put(None, noise(length), role="system")
    chain = tale.chain(60, first, text=noise(10_000))
    reply = context(tale)
    assert (ids_of(reply)[0], ids_of(reply)[-1]) == (first, chain[-1])
    assert len(json.dumps(reply)) <= FRAME_BYTES_MAX
    assert ("parts" in reply["messages"][0]) == (length == 9_000)
    assert reply["cursor"] == chain[-len(ids_of(reply))]


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


def test_the_responder_reads_what_a_long_chat_begins_with_whole(tale: Tale) -> None:
    text = noise(100_000)
    first = tale.put(None, text, role="system")
    chain = tale.chain(299, first)
    tokens = 1_000_000
    for archived in ([], [first, *chain[:-20]], chain[-20:]):
        if archived:
            tale.rest()
            tale.archive(archived)
        found = read(tale, chain[-1], messages_max=50, tokens_max=tokens)
        assert [one.id for one in found] == [first, *chain[-49:]]
        assert found[0].parts == text_parts(text)


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


# --- pages to the end -----------------------------------------------------------------------------------------

KIND = st.sampled_from(["user", "assistant", "system", "call", "call2", "result", "result2"])
LENGTH = st.sampled_from([1, 300, 4_000, 9_000])
BUDGETS = st.tuples(st.integers(1, 30), st.one_of(st.none(), st.integers(1, 5_000)))


def pages(tale: Tale, leaf: str, **bounds: Any) -> list[Frame]:
    """All pages of a path's context, newest first."""
    replies = [context(tale, leaf=leaf, **bounds)]
    while replies[-1]["cursor"] is not None:
        replies.append(context(tale, leaf=leaf, cursor=replies[-1]["cursor"], **bounds))
        assert len(replies) < 1_000
    return replies


def put_said(tale: Tale, kind: str, length: int) -> None:
    """One more message of the path; ids of calls come again and again, as some models number them."""
    parent = tale.ids[-1] if tale.ids else None
    if not kind.startswith(("call", "result")):
        tale.put(parent, "x" * length, role=kind)
        return
    part_kind, role = ("tool_call", "assistant") if kind.startswith("call") else ("tool_result", "tool")
    parts = tool_parts(part_kind, "a", *(["b"] if kind.endswith("2") else []))
    tale.put(parent, parts=(*parts, *text_parts("x" * length)), role=role)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(KIND, LENGTH), min_size=1, max_size=24), BUDGETS)
@example([(kind, 1) for kind in ("user", "call", "user", "user", "result", "user")], (3, None))
@example([(kind, 1) for kind in ("user", "call", "user", "user", "result", "user")], (50, 70))
def test_pages_to_the_end_show_every_message_and_no_result_without_its_call(
    said: list[tuple[str, int]], budgets: tuple[int, int | None]
) -> None:
    """Messages were passed over: behind system messages that a frame did not take, and where a pair was cut in two."""
    with serving(House()) as house:
        tale = Tale(house)
        for kind, length in said:
            put_said(tale, kind, length)
        leaf, (messages_max, tokens_max) = tale.ids[-1], budgets
        shown = [ids_of(reply) for reply in pages(tale, leaf, max_messages=messages_max, max_tokens=tokens_max)]
        whole = read(tale, leaf, messages_max=1_000, tokens_max=10**9)
    assert {message for page in shown for message in page} == set(tale.ids)
    links = Pairs(whole[::-1]).links
    halves = {half for pair in links for half in pair}
    plain = [message.id for message in whole if message.role != "system" and message.id not in halves]
    counted = Counter(message for page in shown for message in page)
    assert [counted[message] for message in plain] == [1] * len(plain)
    for page in shown:
        assert page == sorted(page, key=tale.ids.index) or page[1:] == sorted(page[1:], key=tale.ids.index)
        assert not [pair for pair in links if pair[1] in page and pair[0] not in page]


@pytest.mark.parametrize(("results", "reads_max"), [(0, 1), (1, 2), (100, 8), (900, 16)])
def test_the_call_of_the_newest_result_is_read_in_few_reads_however_far_back_it_is(
    tale: Tale, results: int, reads_max: int
) -> None:
    """There was a read for each of the messages on the way."""
    names = [f"c{number}" for number in range(results)]
    call = tale.put(tale.put(None), role="assistant", parts=tool_parts("tool_call", *names))
    for name in names:
        tale.put(tale.ids[-1], role="tool", parts=tool_parts("tool_result", name))
    calls = Calls(tale.house)
    page = context(tale, leaf=tale.ids[-1], max_messages=1)
    assert ids_of(page)[0] == call
    assert ids_of(page)[-1] == tale.ids[-1]
    assert calls.counted["warm.read_messages"] <= reads_max


@pytest.mark.parametrize(("results", "length"), [(120, 1), (80, 300), (30, 2_000)])
@pytest.mark.parametrize("messages_max", [1, 1_000])
def test_every_result_of_a_call_with_many_comes_with_the_call(
    tale: Tale, results: int, length: int, messages_max: int
) -> None:
    """The newest result came without its call where a frame or the search for the call ended before that."""
    names = [f"c{number}" for number in range(results)]
    call = tale.put(tale.put(None), role="assistant", parts=tool_parts("tool_call", *names))
    for name in names:
        tale.put(tale.ids[-1], role="tool", parts=(*tool_parts("tool_result", name), *text_parts("x" * length)))
    shown = [ids_of(reply) for reply in pages(tale, tale.ids[-1], max_messages=messages_max)]
    assert {message for page in shown for message in page} == set(tale.ids)
    assert all(call in page for page in shown if set(page) & set(tale.ids[2:]))
    assert tale.ids[-1] in shown[0]


def test_far_system_messages_that_a_frame_does_not_take_hide_nothing_between(tale: Tale) -> None:
    """The cursor went to the oldest of them, past all that lay between."""
    for number in range(20):
        large: dict[str, Any] = {} if number % 6 else {"role": "system", "metadata": {"x": Raw(encode("y" * 9_000))}}
        tale.put(tale.ids[-1] if tale.ids else None, **large)
    shown = pages(tale, tale.ids[-1], max_tokens=100_000)
    assert shown[0]["cursor"] == tale.ids[-3]
    assert {message for reply in shown for message in ids_of(reply)} == set(tale.ids)
