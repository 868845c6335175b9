"""Settled messages in the table and in segments, read as one history."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.conversations import noise
from tests.support.house import PHONE, WORKER, Frame, House, text_part
from tests.support.logs import logged
from tests.support.tiers import Calls, Tale
from threadkeep.domain import ids
from threadkeep.domain.bounds import FRAME_BYTES_MAX, MEMBER_MESSAGES_MAX, TAIL_MESSAGES_MAX
from threadkeep.domain.errors import ArchiveDamaged
from threadkeep.domain.json_values import encode
from threadkeep.usecases.settled_log import LastLog
from threadkeep.usecases.tiers import History, Tiers

__all__ = ["logged"]

DAY_MS = 24 * 60 * 60_000


@pytest.fixture
def tale(house: House) -> Tale:
    return Tale(house)


def tiers(tale: Tale) -> Tiers:
    return Tiers.of(tale.house.services)


def history(tale: Tale, batch: int = 10) -> History:
    return History(tiers(tale), tale.key, batch=batch)


def page(tale: Tale, **fields: Any) -> list[str]:
    return [stored.message.id for stored in history(tale).page(**({"limit": 100} | fields)).messages]


def path(tale: Tale, start: str, batch: int = 10) -> list[str]:
    return [stored.message.id for stored in history(tale, batch).path(start)]


def pages(house: House, conversation: str, **fields: Any) -> list[Frame]:
    """All pages from the newest on."""
    found: list[Frame] = []
    cursor = None
    while not found or cursor is not None:
        found.append(house.ok(PHONE, "message.list", conversation=conversation, cursor=cursor, **fields))
        cursor = found[-1]["cursor"]
        assert len(found) < 200, "the pages come to an end"
    return found


def listed(house: House, conversation: str, **fields: Any) -> list[str]:
    return [message["id"] for reply in pages(house, conversation, **fields) for message in reply["messages"]]


# --- one history ----------------------------------------------------------------------------------------------


def test_table_and_overlapping_segments_are_merged_newest_first_each_message_once(tale: Tale) -> None:
    chain = tale.chain(12)
    tale.archive(chain[:6])
    late = tale.put(chain[2], id=ids.mint(ids.time_ms(chain[3]), after=chain[3]))
    tale.archive([late, *chain[6:8]], keep=True)
    everything = sorted(tale.ids, reverse=True)
    assert page(tale) == everything
    for limit in range(1, 14):
        found = history(tale).page(limit=limit)
        assert [stored.message.id for stored in found.messages] == everything[:limit]
        assert found.more == (limit < len(everything))
    assert page(tale, before=everything[2], after=everything[7]) == everything[3:7]


def test_a_path_goes_through_every_tier(tale: Tale) -> None:
    chain = tale.chain(20)
    side = tale.put(chain[3])
    tale.archive([*chain[:5], side])
    tale.archive(chain[8:12])
    for batch in (1, 3, 100):
        assert path(tale, chain[-1], batch) == chain[::-1]
        assert path(tale, side, batch) == [side, *chain[3::-1]]


def test_a_path_ends_where_it_names_a_message_that_is_nowhere(tale: Tale) -> None:
    chain = tale.chain(6)
    tale.archive(chain[:2])
    del tale.house.warm.messages[tale.key][chain[3]]
    assert path(tale, chain[-1]) == [chain[5], chain[4]]


def test_a_message_of_a_segment_is_whole_equal_and_resumed_as_it_was(tale: Tale) -> None:
    house = tale.house
    text = noise(3 * FRAME_BYTES_MAX)
    large = tale.put(None, text, role="user", metadata={})
    small = tale.put(large, "small")
    before = {name: house.ok(PHONE, "stream.resume", **resume(tale, name)) for name in (large, small)}
    whole = {name: house.warm.read_message(tale.key, name) for name in (large, small)}
    tale.rest()
    tale.archive([large, small])
    house.replace(last_log=LastLog())  # another sandbox
    assert {name: house.ok(PHONE, "stream.resume", **resume(tale, name)) for name in (large, small)} == before
    assert {name: tiers(tale).read_message(tale.key, name) for name in (large, small)} == whole


def resume(tale: Tale, message: str) -> dict[str, Any]:
    return {"conversation": tale.conversation, "stream": message, "epoch": 0, "offset": 0}


# --- what is known of an id -----------------------------------------------------------------------------------


def test_what_was_archived_still_exists_and_what_lies_between_does_not(tale: Tale) -> None:
    chain = tale.chain(5)
    between = ids.mint(ids.time_ms(chain[2]), after=chain[2])
    tale.rest()
    tale.archive(chain[:4])
    assert all(tiers(tale).has_message(tale.key, message) for message in chain)
    assert not tiers(tale).has_message(tale.key, between)
    assert tiers(tale).read_message(tale.key, between) is None


def test_the_newest_message_is_the_newest_of_table_and_segments(tale: Tale) -> None:
    assert tiers(tale).newest_id(tale.key) is None
    chain = tale.chain(4)
    tale.rest()
    back_dated = tale.put(chain[0], id=ids.mint(ids.time_ms(chain[1]), after=chain[1]))
    assert tiers(tale).newest_id(tale.key) == chain[-1]
    tale.archive(chain)
    assert tiers(tale).newest_id(tale.key) == chain[-1]
    tale.archive([back_dated])
    assert tiers(tale).newest_id(tale.key) == chain[-1]
    new = tale.put(chain[-1])
    assert tiers(tale).newest_id(tale.key) == new


def test_of_a_fresh_id_no_manifest_is_asked(tale: Tale) -> None:
    tale.chain(3)
    calls = Calls(tale.house)
    new = tale.house.new_id()
    assert not tiers(tale).has_message(tale.key, new)
    assert tiers(tale).read_message(tale.key, new) is None
    assert tiers(tale).newest_id(tale.key) == tale.ids[-1]
    tale.rest()
    today = tale.put(tale.ids[-1])
    assert tiers(tale).newest_id(tale.key) == today
    assert not tiers(tale).has_message(tale.key, tale.house.new_id())
    assert calls.counted["manifests.read"] == 0
    assert not tiers(tale).has_message(tale.key, ids.mint(tale.house.clock.ms - 2 * DAY_MS))
    assert calls.counted["manifests.read"] == 1


def test_an_ordinary_turn_reads_no_manifest(house: House) -> None:
    conversation = house.conversation()
    question = house.message(conversation)
    calls = Calls(house)
    stream = house.stream(conversation, question)
    house.ok(WORKER, "stream.close", status="complete", **stream)
    house.message(conversation, stream["stream"])
    assert calls.counted["manifests.read"] == 0


# --- writes beside an archive -----------------------------------------------------------------------------------


@pytest.mark.parametrize("is_hot", [True, False])
def test_a_message_sent_again_after_it_was_archived_is_a_duplicate_or_refused(
    tale: Tale,
    is_hot: bool,  # noqa: FBT001 -- a case
) -> None:
    house = tale.house
    (message,) = tale.chain(1)
    tale.rest()
    tale.archive([message])
    house.hot.unavailable = not is_hot
    said: dict[str, Any] = {"conversation": tale.conversation, "message": message, "parent": None, "role": "user"}
    again = house.ok(PHONE, "message.create", parts=[text_part("hello")], **said)
    assert again["duplicate"] is True
    assert house.say(PHONE, "message.create", parts=[text_part("other")], **said)["reason"] == "id_taken"
    assert house.warm.read_message(tale.key, message) is None, "nothing was put beside the archive"


def test_a_stream_whose_message_was_archived_is_closed(tale: Tale) -> None:
    chain = tale.chain(2)
    tale.rest()
    tale.archive(chain)
    said = {"conversation": tale.conversation, "parent": chain[0], "role": "assistant", "producer": "run-1"}
    reply = tale.house.say(WORKER, "stream.open", message=chain[1], **said)
    assert (reply["code"], reply["detail"]["settled"]["id"]) == ("closed", chain[1])


def test_a_body_takes_no_place_of_a_message_that_was_archived(tale: Tale) -> None:
    house = tale.house
    chain = tale.chain(2)
    tale.rest()
    tale.archive(chain)
    said = {"conversation": tale.conversation, "stream": chain[1], "epoch": 5, "offset": 0, "status": "complete"}
    said |= {"body": [text_part("other")], "parent": chain[0], "role": "assistant"}
    reply = house.say(WORKER, "stream.close", **said)
    assert (reply["code"], reply["detail"]["settled"]["id"]) == ("closed", chain[1])
    stored = tiers(tale).read_message(tale.key, chain[1])
    assert stored is not None
    said |= {"body": json.loads(encode(stored.message.parts)), "role": stored.message.role}
    assert house.ok(WORKER, "stream.close", **said)["message"]["id"] == chain[1]
    assert house.warm.read_message(tale.key, chain[1]) is None, "nothing was put beside the archive"


@pytest.mark.parametrize("is_hot", [True, False])
def test_an_archived_conversation_goes_on_from_its_leaf_or_any_other_message(
    tale: Tale,
    is_hot: bool,  # noqa: FBT001 -- a case
) -> None:
    house = tale.house
    chain = tale.chain(5)
    tale.rest()
    tale.archive(chain)
    house.hot.unavailable = not is_hot
    stale = house.say(
        PHONE, "message.create", conversation=tale.conversation, parent=chain[2], role="user", parts=[text_part("x")]
    )
    assert stale["detail"] == {"leaf": chain[-1]}
    new = house.message(tale.conversation, chain[-1])
    fork = house.message(tale.conversation, chain[2], fork=True)
    assert listed(house, tale.conversation, leaf=new) == [new, *chain[::-1]]
    assert listed(house, tale.conversation, leaf=fork) == [fork, *chain[2::-1]]
    nowhere = house.say(
        PHONE,
        "message.create",
        conversation=tale.conversation,
        parent=ids.mint(ids.time_ms(chain[2]), after=chain[2]),
        role="user",
        parts=[],
        fork=True,
    )
    assert nowhere["reason"] == "parent_missing"


# --- consistency ----------------------------------------------------------------------------------------------


def test_what_a_replica_lacks_is_read_again_strongly(tale: Tale) -> None:
    chain = tale.chain(6)
    house = tale.house
    for lacking in ({chain[-1]}, {chain[3]}, {chain[0], chain[4]}, set(chain)):
        house.warm.lagging = lacking
        assert path(tale, chain[-1]) == chain[::-1]
        assert page(tale) == chain[::-1]


def test_a_known_leafs_page_is_read_for_half_the_price(tale: Tale) -> None:
    chain = tale.chain(6)
    calls = Calls(tale.house)
    assert path(tale, chain[-1]) == chain[::-1]
    assert [said["consistent"] for said in calls.of("warm", "read_messages")] == [False]


# --- how much is read -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [0, 1, 99, 100, 101, 2_500, 4_999])
def test_a_page_anywhere_in_an_archive_is_one_ranged_read_after_the_manifests(tale: Tale, at: int) -> None:
    chain = tale.chain(5_000)
    tale.rest()
    tale.archive(chain)
    calls = Calls(tale.house)
    reply = tale.house.ok(PHONE, "message.list", conversation=tale.conversation, cursor=chain[at], limit=50)
    assert [message["id"] for message in reply["messages"]] == chain[max(0, at - 49) : at + 1][::-1]
    assert reply["tier"] == "cold"
    assert calls.counted == {"warm.read_head": 1, "manifests.read": 1, "cold.read": 1}
    assert tale.house.cold.reads == 1


def test_every_branch_of_an_archive_costs_a_query_of_the_table_more(tale: Tale) -> None:
    chain = tale.chain(500)
    tale.rest()
    tale.archive(chain)
    calls = Calls(tale.house)
    reply = tale.house.ok(
        PHONE, "message.list", conversation=tale.conversation, leaf="all", before=chain[300], limit=50
    )
    assert [message["id"] for message in reply["messages"]] == chain[250:300][::-1]
    assert calls.counted == {"warm.read_head": 1, "manifests.read": 1, "warm.read_messages": 1, "cold.read": 1}


def test_a_warm_page_of_a_conversation_with_an_old_archive_reads_no_segment(tale: Tale) -> None:
    chain = tale.chain(300)
    tale.archive(chain[:200])
    calls = Calls(tale.house)
    assert page(tale, limit=50) == chain[250:][::-1]
    assert calls.counted["cold.read"] == 0


# --- damage ---------------------------------------------------------------------------------------------------


class Damaged:
    """Three members and a warm end; the middle member is damaged everywhere."""

    def __init__(self, house: House) -> None:
        self.tale = Tale(house)
        self.chain = self.tale.chain(3 * MEMBER_MESSAGES_MAX + 10)
        self.tale.rest()
        manifest = self.tale.archive(self.chain[: 3 * MEMBER_MESSAGES_MAX])
        self.tale.damage(manifest, 1)
        self.lost = self.chain[MEMBER_MESSAGES_MAX : 2 * MEMBER_MESSAGES_MAX]
        self.rest = [message for message in self.chain if message not in self.lost]
        self.told = {"first": self.lost[0], "last": self.lost[-1], "count": MEMBER_MESSAGES_MAX}


@pytest.fixture
def damaged(house: House) -> Damaged:
    return Damaged(house)


@pytest.mark.parametrize("limit", [7, 50, 100])
@pytest.mark.parametrize("leaf", [None, "all"])
def test_a_damaged_stretch_is_told_once_and_all_the_rest_is_served(
    house: House, damaged: Damaged, leaf: str | None, limit: int
) -> None:
    found = pages(house, damaged.tale.conversation, leaf=leaf, limit=limit)
    assert [message["id"] for reply in found for message in reply["messages"]] == damaged.rest[::-1]
    assert [stretch for reply in found for stretch in reply.get("damaged", ())] == [damaged.told]


def test_damage_is_counted_and_logged_by_ids_alone(house: House, damaged: Damaged, logged: Callable[[], str]) -> None:
    house.ok(PHONE, "message.list", conversation=damaged.tale.conversation, leaf="all", before=damaged.chain[250])
    printed = logged()
    lines = [json.loads(line) for line in printed.splitlines()]
    assert [line["SegmentsDamaged"] for line in lines if "SegmentsDamaged" in line] == [[1.0]]
    (told,) = [line for line in lines if line.get("level") == "ERROR"]
    assert (told["conversation"], told["members"]) == (
        damaged.tale.conversation,
        [[damaged.lost[0], damaged.lost[-1]]],
    )
    assert "hello" not in printed


def test_a_page_that_touches_no_damage_tells_of_none(house: House, damaged: Damaged) -> None:
    reply = house.ok(PHONE, "message.list", conversation=damaged.tale.conversation, limit=10)
    assert "damaged" not in reply
    reply = house.ok(PHONE, "message.list", conversation=damaged.tale.conversation, limit=10, cursor=damaged.chain[50])
    assert "damaged" not in reply


def test_what_is_still_in_the_table_is_read_past_a_damaged_segment(house: House) -> None:
    tale = Tale(house)
    chain = tale.chain(10)
    tale.rest()
    tale.damage(tale.archive(chain, keep=True), 0)
    assert path(tale, chain[-1]) == chain[::-1]
    assert listed(house, tale.conversation) == chain[::-1]
    assert listed(house, tale.conversation, leaf="all") == chain[::-1]


def test_a_message_in_a_damaged_segment_is_unavailable_and_not_unknown(house: House, damaged: Damaged) -> None:
    message = damaged.lost[5]
    with pytest.raises(ArchiveDamaged):
        tiers(damaged.tale).read_message(damaged.tale.key, message)
    assert house.say(PHONE, "stream.resume", **resume(damaged.tale, message))["code"] == "unavailable"
    said = {"conversation": damaged.tale.conversation, "message": message, "parent": damaged.chain[0], "role": "user"}
    assert house.say(PHONE, "message.create", parts=[text_part("x")], fork=True, **said)["code"] == "unavailable"
    assert tiers(damaged.tale).read_message(damaged.tale.key, damaged.chain[5]) is not None


def test_a_conversation_that_is_all_damaged_is_an_empty_page_that_says_so(house: House) -> None:
    tale = Tale(house)
    chain = tale.chain(5)
    tale.rest()
    tale.damage(tale.archive(chain), 0)
    for leaf in (None, "all"):
        reply = house.ok(PHONE, "message.list", conversation=tale.conversation, leaf=leaf)
        assert (reply["messages"], reply["cursor"]) == ([], None)
        assert reply["damaged"] == [{"first": chain[0], "last": chain[-1], "count": 5}]


@pytest.mark.parametrize("place", [0, 5, MEMBER_MESSAGES_MAX - 1])
@pytest.mark.parametrize("begins", ["leaf", "before", "leaf and before"])
def test_a_path_from_a_damaged_message_says_so_and_goes_on_below_the_damage(
    house: House, damaged: Damaged, begins: str, place: int
) -> None:
    fields = dict.fromkeys(begins.split(" and "), damaged.lost[place])
    found = pages(house, damaged.tale.conversation, limit=30, **fields)
    shown = [message["id"] for reply in found for message in reply["messages"]]
    assert shown == damaged.chain[:MEMBER_MESSAGES_MAX][::-1]
    assert [stretch for reply in found for stretch in reply.get("damaged", ())] == [damaged.told]


def test_a_context_of_a_damaged_leaf_says_so_and_ends_below_the_damage(house: House, damaged: Damaged) -> None:
    told = house.ok(
        PHONE, "context.read", conversation=damaged.tale.conversation, leaf=damaged.lost[5], max_messages=10
    )
    below = damaged.chain[:MEMBER_MESSAGES_MAX]
    assert [message["id"] for message in told["messages"]] == below[-10:]
    assert (told["damaged"], told["cursor"], told["truncated"]) == ([damaged.told], below[-11], True)


def test_a_leaf_that_is_nowhere_is_not_found_beside_a_damaged_stretch(house: House, damaged: Damaged) -> None:
    for leaf in (ids.mint(ids.time_ms(damaged.chain[0]) - 1), house.new_id()):
        for action in ("message.list", "context.read"):
            assert house.say(PHONE, action, conversation=damaged.tale.conversation, leaf=leaf)["code"] == "not_found"


@pytest.mark.parametrize("limit", [3, 100])
@pytest.mark.parametrize("lost", [(3, 4), (3, 4, 5), (0, 3), (0, 1, 4, 5), (2, 5)])
def test_neighbouring_segments_that_are_damaged_hide_nothing_on_either_side(
    tale: Tale, lost: tuple[int, ...], limit: int
) -> None:
    """Six segments, one after the other; the path is read as every branch is, since there is but one."""
    chain = tale.chain(6 * 4 + 2)
    tale.rest()
    runs = [chain[4 * number : 4 * number + 4] for number in range(6)]
    for number, run in enumerate(runs):
        manifest = tale.archive(run)
        if number in lost:
            tale.damage(manifest, 0)
    gone = {message for number in lost for message in runs[number]}
    for leaf in (None, "all", chain[-1]):
        found = pages(tale.house, tale.conversation, leaf=leaf, limit=limit)
        assert [message["id"] for reply in found for message in reply["messages"]] == [
            message for message in reversed(chain) if message not in gone
        ]
        told = [stretch for reply in found for stretch in reply.get("damaged", ())]
        assert sum(stretch["count"] for stretch in told) == len(gone)
        assert {message for message in chain for each in told if each["first"] <= message <= each["last"]} == gone
        cursors = [reply["cursor"] for reply in found if reply["cursor"]]
        assert len(cursors) == len(set(cursors))


def test_damage_that_reaches_up_into_other_damage_is_told_with_it(tale: Tale) -> None:
    """The older segment ends within the younger one: what it held below that was left out without a word."""
    chain = tale.chain(10)
    tale.rest()
    for run in ([chain[0], chain[3]], [chain[1], chain[2], *chain[4:8]]):
        tale.damage(tale.archive(run), 0)
    for leaf in (None, chain[-1], chain[7], "all"):
        reply = tale.house.ok(PHONE, "message.list", conversation=tale.conversation, leaf=leaf)
        assert [message["id"] for message in reply["messages"]] == ([] if leaf == chain[7] else chain[:7:-1])
        assert reply["damaged"] == [{"first": chain[0], "last": chain[7], "count": 8}]


def test_damage_that_reaches_down_past_where_the_path_goes_on_is_told(tale: Tale) -> None:
    """The path finds a message between those of a lost member; what that held above it was left out without a word."""
    chain = tale.chain(8)
    tale.rest()
    tale.damage(tale.archive([chain[0], chain[3]]), 0)
    tale.damage(tale.archive([chain[4], chain[5]]), 0)
    for limit in (1, 100):
        found = pages(tale.house, tale.conversation, limit=limit)
        shown = [message["id"] for reply in found for message in reply["messages"]]
        assert shown == [chain[7], chain[6], chain[2], chain[1]]
        told = [stretch for reply in found for stretch in reply.get("damaged", ())]
        assert {"first": chain[0], "last": chain[3], "count": 2} in told
        assert {"first": chain[4], "last": chain[5], "count": 2} in told


def test_a_path_shows_what_damage_reaches_around(tale: Tale) -> None:
    """One dated back stands before all others, in the lost member of the newest: none of those between was shown."""
    old = tale.old_id(tale.house.clock.ms - 1_000)
    chain = tale.chain(3)
    tale.rest()
    tale.archive(chain)
    leaf, other_root = tale.put(chain[-1]), tale.put(None, id=old)
    tale.rest()
    tale.damage(tale.archive([other_root, leaf]), 0)
    told = [{"first": other_root, "last": leaf, "count": 2}]
    for fields in ({"leaf": leaf}, {"leaf": "all"}, {}):
        tale.house.lose_hot()
        reply = tale.house.ok(PHONE, "message.list", conversation=tale.conversation, **fields)
        assert ([message["id"] for message in reply["messages"]], reply["damaged"]) == (chain[::-1], told)
    reply = tale.house.ok(PHONE, "context.read", conversation=tale.conversation)
    assert ([message["id"] for message in reply["messages"]], reply["damaged"]) == (chain, told)


def test_damage_around_readable_messages_is_told_each_time_as_the_same(tale: Tale) -> None:
    """Once where one page meets it twice; a later page cannot know, and says no other numbers."""
    chain = tale.chain(6)
    tale.rest()
    tale.archive(chain[1:3])
    tale.damage(tale.archive([chain[0], chain[4]]), 0)
    tale.damage(tale.archive([chain[3]]), 0)
    around, within = (
        {"first": chain[0], "last": chain[4], "count": 2},
        {"first": chain[3], "last": chain[3], "count": 1},
    )
    for limit, expected in ((100, [around, within]), (1, [around, within, around])):
        found = pages(tale.house, tale.conversation, leaf=chain[5], limit=limit)
        assert [message["id"] for reply in found for message in reply["messages"]] == [chain[5], chain[2], chain[1]]
        assert [stretch for reply in found for stretch in reply.get("damaged", ())] == expected


@pytest.mark.parametrize("limit", [1, 100])
@pytest.mark.parametrize("before", [3, 4, 5])
def test_a_page_of_all_branches_before_a_lost_message_tells_of_it(tale: Tale, before: int, limit: int) -> None:
    chain = tale.chain(6)
    tale.rest()
    tale.damage(tale.archive(chain[2:5]), 0)
    found = pages(tale.house, tale.conversation, leaf="all", before=chain[before], limit=limit)
    assert [message["id"] for reply in found for message in reply["messages"]] == [chain[1], chain[0]]
    told = [stretch for reply in found for stretch in reply.get("damaged", ())]
    assert told == [{"first": chain[2], "last": chain[4], "count": 3}]


def test_the_tail_that_a_cold_page_warms_serves_the_next_one(tale: Tale) -> None:
    chain = tale.chain(500)
    tale.rest()
    tale.archive(chain)
    calls = Calls(tale.house)
    newest = chain[-20:][::-1]
    for tier in ("cold", "hot"):
        calls.forget()
        reply = tale.house.ok(PHONE, "message.list", conversation=tale.conversation, limit=20)
        assert ([message["id"] for message in reply["messages"]], reply["tier"]) == (newest, tier)
    assert calls.counted == {"hot.read_tail": 1}
    assert len(tale.house.hot.read_tail(tale.key, limit=100).messages) == TAIL_MESSAGES_MAX  # type: ignore[union-attr]
