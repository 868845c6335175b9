"""Conversations: created once, seen by whom they belong to, listed each exactly once."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from tests.support.conversations import tombstone
from tests.support.house import LAPTOP, PHONE, WORKER, Device, House
from tests.support.regions import Regions, regions
from threadkeep.domain import ids
from threadkeep.domain.bounds import HEAD_CACHE_MS, ID_AHEAD_MS_MAX, METADATA_BYTES_MAX, PULSE_EVERY_MS, SUBSCRIPTION_MS

__all__ = ["regions"]

BOB = Device(connection="bob=", user="bob")
STRANGER = Device(connection="stranger=", tenant="umbrella")


def test_a_conversation_comes_back_as_it_was_created(house: House) -> None:
    identifier = house.new_id()
    fields = {"title": "Über 界", "metadata": {"n": 1.0, "deep": [None, {}]}, "retention_days": 30}
    created = house.ok(PHONE, "conversation.create", conversation=identifier, **fields)["conversation"]
    assert created == fields | {
        "id": identifier,
        "owner": "ann",
        "created_at": "2027-01-15T08:00:00.001Z",
        "active_at": "2027-01-15T08:00:00.001Z",
    }
    assert house.ok(LAPTOP, "conversation.get", conversation=identifier)["conversation"] == created


def test_without_title_and_retention_it_has_none(house: House) -> None:
    created = house.ok(PHONE, "conversation.create")["conversation"]
    assert set(created) == {"id", "owner", "metadata", "created_at", "active_at"}
    assert ids.is_id(created["id"])


def test_created_again_it_is_the_same_as_it_now_stands(house: House) -> None:
    conversation = house.conversation(title="first")
    house.ok(PHONE, "conversation.update", conversation=conversation, title="second")
    house.clock.ms += 2 * PULSE_EVERY_MS
    house.message(conversation)
    stands = house.ok(PHONE, "conversation.get", conversation=conversation)["conversation"]
    again = house.ok(LAPTOP, "conversation.create", conversation=conversation, title="first")
    assert again["duplicate"] is True
    assert again["conversation"] == stands
    assert stands["title"] == "second"
    assert stands["active_at"] > stands["created_at"]


def test_a_new_one_is_no_duplicate(house: House) -> None:
    assert "duplicate" not in house.ok(PHONE, "conversation.create")


@pytest.mark.parametrize("other", [BOB, Device(connection="bob=", user="bob", scope="chat admin")])
def test_the_id_of_a_foreign_conversation_is_not_found_by_who_creates_under_it(house: House, other: Device) -> None:
    conversation = house.conversation()
    reply = house.say(other, "conversation.create", conversation=conversation)
    assert reply == house.say(other, "conversation.get", conversation=house.new_id())


def test_whoever_may_see_the_other_owners_conversation_is_told_that_the_id_is_taken(house: House) -> None:
    conversation = house.conversation()
    reply = house.say(WORKER, "conversation.create", conversation=conversation)
    assert (reply["code"], reply["reason"], reply["retryable"]) == ("conflict", "id_taken", False)


def test_two_tenants_may_use_one_id(house: House) -> None:
    conversation = house.conversation(title="ours")
    house.ok(STRANGER, "conversation.create", conversation=conversation, title="theirs")
    assert house.ok(PHONE, "conversation.get", conversation=conversation)["conversation"]["title"] == "ours"


def test_a_deleted_one_is_not_created_again(house: House) -> None:
    conversation = house.conversation()
    house.warm.gone[house.key(conversation)] = tombstone("ann")
    assert house.say(PHONE, "conversation.create", conversation=conversation)["code"] == "not_found"


def test_an_id_ahead_of_the_clock_is_refused_and_nothing_stored(house: House) -> None:
    ahead = ids.mint(house.clock.ms + ID_AHEAD_MS_MAX + 1)
    assert house.say(PHONE, "conversation.create", conversation=ahead)["code"] == "bad_request"
    assert house.say(PHONE, "conversation.get", conversation=ahead)["code"] == "not_found"
    house.ok(PHONE, "conversation.create", conversation=ids.mint(house.clock.ms + ID_AHEAD_MS_MAX))


def test_metadata_is_bounded_in_bytes(house: House) -> None:
    room = METADATA_BYTES_MAX - len(b'{"a":""}')
    fits = {"a": "界" * (room // 3) + "x" * (room % 3)}
    house.ok(PHONE, "conversation.create", metadata=fits)
    too_large = {"a": fits["a"] + "x"}
    assert house.say(PHONE, "conversation.create", metadata=too_large)["code"] == "too_large"
    conversation = house.conversation()
    assert house.say(PHONE, "conversation.update", conversation=conversation, metadata=too_large)["code"] == "too_large"
    assert house.ok(PHONE, "conversation.get", conversation=conversation)["conversation"]["metadata"] == {}


def test_a_title_is_bounded_in_characters(house: House) -> None:
    house.conversation(title="界" * 512)
    assert house.say(PHONE, "conversation.create", title="x" * 513)["code"] == "bad_request"


def test_update_changes_what_is_given_and_leaves_the_rest(house: House) -> None:
    conversation = house.conversation(title="old", metadata={"a": 1})

    def updated(**fields: Any) -> tuple[Any, Any]:
        changed = house.ok(PHONE, "conversation.update", conversation=conversation, **fields)["conversation"]
        assert changed == house.ok(PHONE, "conversation.get", conversation=conversation)["conversation"]
        return changed.get("title"), changed["metadata"]

    assert updated(title="new") == ("new", {"a": 1})
    assert updated(metadata={"b": 2}) == ("new", {"b": 2})
    assert updated() == ("new", {"b": 2})
    assert updated(title=None) == (None, {"b": 2})


def test_who_watches_is_told_of_an_update(house: House) -> None:
    conversation = house.conversation()
    house.ok(LAPTOP, "conversation.subscribe", conversation=conversation)
    changed = house.ok(PHONE, "conversation.update", conversation=conversation, title="new")["conversation"]
    assert house.frames(LAPTOP) == [{"type": "conversation.updated", "conversation": changed}]


def test_activity_is_noted_at_most_once_a_minute(house: House) -> None:
    conversation = house.conversation()

    def active_at() -> str:
        found = house.ok(PHONE, "conversation.get", conversation=conversation)["conversation"]["active_at"]
        assert isinstance(found, str)
        return found

    created = active_at()
    first = house.message(conversation)
    assert active_at() == created
    house.clock.ms += PULSE_EVERY_MS + 1
    house.message(conversation, first)
    assert active_at() == "2027-01-15T08:01:00.004Z"


# --- list -----------------------------------------------------------------------------------------------------


def listed(house: House, device: Device, **fields: Any) -> list[str]:
    """Ids of all pages, in order."""
    found, cursor = [], None
    while True:
        page = house.ok(device, "conversation.list", cursor=cursor, **fields)
        found += [item["id"] for item in page["items"]]
        cursor = page["cursor"]
        if cursor is None:
            return found
        assert page["items"], "a page with a cursor brings something"
        assert len(found) < 100, "the pages come to an end"


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
def test_the_list_holds_each_own_conversation_once_newest_activity_first(house: House, limit: int) -> None:
    own = [house.conversation() for _ in range(7)]
    house.conversation(BOB)
    house.conversation(STRANGER)
    house.clock.ms += PULSE_EVERY_MS + 1
    house.message(own[2])
    assert listed(house, PHONE, limit=limit) == [own[2], *reversed(own[3:]), own[1], own[0]]


def test_large_conversations_come_in_as_many_pages_as_they_take(house: House) -> None:
    own = [house.conversation(metadata={"a": "界" * 5_000}, title="\0" * 512) for _ in range(5)]
    small = [house.conversation() for _ in range(5)]
    assert listed(house, PHONE) == list(reversed(own + small))


@pytest.mark.parametrize("cursor", ["x", "WzEsMl0=", "界", "bm8ganNvbg=="])
def test_a_cursor_that_no_page_gave_is_a_bad_request(house: House, cursor: str) -> None:
    house.conversation()
    assert house.say(PHONE, "conversation.list", cursor=cursor)["code"] == "bad_request"


def test_the_cursor_of_another_tenant_shows_nothing_of_it(house: House) -> None:
    theirs = [house.conversation(STRANGER) for _ in range(3)]
    own = house.conversation()
    cursor = house.ok(STRANGER, "conversation.list", limit=1)["cursor"]
    items = house.ok(PHONE, "conversation.list", cursor=cursor)["items"]
    assert not {item["id"] for item in items} & set(theirs)
    assert {item["id"] for item in items} <= {own}


def test_a_deleted_conversation_is_not_listed(house: House) -> None:
    kept, deleted = house.conversation(), house.conversation()
    house.warm.gone[house.key(deleted)] = tombstone("ann")
    assert listed(house, PHONE) == [kept]


# --- subscribe ------------------------------------------------------------------------------------------------


def test_subscribing_tells_conversation_leaf_live_streams_and_lease(house: House) -> None:
    conversation = house.conversation(title="talk")
    question = house.message(conversation)
    told = house.ok(LAPTOP, "conversation.subscribe", conversation=conversation)
    assert told["conversation"] == house.ok(PHONE, "conversation.get", conversation=conversation)["conversation"]
    assert (told["leaf"], told["live"], told["lease_ms"]) == (question, [], SUBSCRIPTION_MS)
    opened = house.ok(
        WORKER, "stream.open", conversation=conversation, parent=question, role="assistant", producer="run-1"
    )
    told = house.ok(LAPTOP, "conversation.subscribe", conversation=conversation)
    assert told["leaf"] == opened["stream"]
    assert told["live"] == [
        {
            "stream": opened["stream"],
            "epoch": opened["epoch"],
            "offset": 0,
            "parent": question,
            "role": "assistant",
            "region": "eu-central-1",
        }
    ]


def test_an_empty_conversation_has_no_leaf(house: House) -> None:
    told = house.ok(PHONE, "conversation.subscribe", conversation=house.conversation())
    assert (told["leaf"], told["live"]) == (None, [])


def test_a_subscription_is_no_longer_than_the_tokens_life(house: House) -> None:
    conversation = house.conversation()
    device = msgspec.structs.replace(LAPTOP, expires_s=house.clock.ms // 1_000 + 60)
    lease_ms = house.ok(device, "conversation.subscribe", conversation=conversation)["lease_ms"]
    assert lease_ms == device.expires_s * 1_000 - house.clock.ms
    house.clock.ms += lease_ms
    house.ok(PHONE, "conversation.update", conversation=conversation, title="later")
    assert house.frames(device) == []


def test_a_subscription_ends_with_its_lease_unless_it_is_renewed(house: House) -> None:
    conversation = house.conversation()
    for device in (LAPTOP, PHONE):
        house.ok(device, "conversation.subscribe", conversation=conversation)
    house.clock.ms += SUBSCRIPTION_MS - 1
    house.ok(LAPTOP, "conversation.subscribe", conversation=conversation)
    house.clock.ms += 1
    house.ok(PHONE, "conversation.update", conversation=conversation, title="later")
    assert (len(house.frames(LAPTOP)), len(house.frames(PHONE))) == (1, 0)


def test_who_unsubscribed_is_told_no_more(house: House) -> None:
    conversation = house.conversation()
    house.ok(LAPTOP, "conversation.subscribe", conversation=conversation)
    house.ok(LAPTOP, "conversation.unsubscribe", conversation=conversation)
    house.ok(PHONE, "conversation.update", conversation=conversation, title="later")
    assert house.frames(LAPTOP) == []


def test_one_viewer_too_many_is_told_when_to_ask_again(house: House) -> None:
    conversation = house.conversation()
    for number in range(100):
        house.ok(Device(connection=f"c{number}="), "conversation.subscribe", conversation=conversation)
    refused = house.say(Device(connection="late="), "conversation.subscribe", conversation=conversation)
    assert (refused["code"], refused["retryable"]) == ("rate_limited", True)
    assert refused["retry_after_ms"] > 0
    house.ok(Device(connection="c7="), "conversation.subscribe", conversation=conversation)


def test_a_deleted_conversation_is_not_found_once_its_owner_is_no_longer_remembered(house: House) -> None:
    conversation = house.conversation()
    house.message(conversation)
    house.warm.gone[house.key(conversation)] = tombstone("ann")
    assert house.say(PHONE, "conversation.get", conversation=conversation)["code"] == "not_found"
    house.clock.ms += HEAD_CACHE_MS
    assert house.say(PHONE, "message.list", conversation=conversation)["code"] == "not_found"


def test_the_largest_conversation_fits_every_frame_that_holds_it(house: House) -> None:
    device = Device(connection="large=", user="\1" * 256)
    room = METADATA_BYTES_MAX - len(b'{"a":""}')
    conversation = house.ok(device, "conversation.create", title="\1" * 512, metadata={"a": "x" * room})["conversation"]
    question = house.message(conversation["id"], by=device)
    for _ in range(4):
        house.ok(
            msgspec.structs.replace(WORKER, user="\1" * 256),
            "stream.open",
            conversation=conversation["id"],
            parent=question,
            role="assistant",
            producer="run",
            fork=True,
        )
    ref = "\1" * 256
    for action in ("conversation.get", "conversation.subscribe", "conversation.update", "conversation.create"):
        body = json.dumps({"action": action, "ref": ref, "conversation": conversation["id"]})
        assert house.post(device, body)["type"] == f"{action}.ok"


def test_one_region_alone_remembers_the_owner_as_ever(house: House) -> None:
    """An update is the read and the write of the table's store, a stop none at all, and a refusal neither."""
    conversation = house.conversation()
    house.ok(PHONE, "conversation.get", conversation=conversation)
    asked: list[str] = []

    class Counted:
        def __getattr__(self, name: str) -> Any:
            asked.append(name)
            return getattr(house.warm, name)

    house.replace(warm=Counted())
    house.ok(PHONE, "conversation.update", conversation=conversation, title="new")
    assert asked == ["update_conversation", "read_active_at"]
    asked.clear()
    assert house.ok(PHONE, "stream.cancel", conversation=conversation)["messages"] == []
    assert house.say(BOB, "conversation.update", conversation=conversation, title="his")["code"] == "not_found"
    assert asked == []


# --- where there are several regions ------------------------------------------------------------------------------


@pytest.mark.parametrize("by", [BOB, Device(connection="both=", user="bob", scope="chat produce")])
def test_nobody_takes_over_a_conversation_of_which_a_region_has_not_heard_yet(regions: Regions, by: Device) -> None:
    conversation = regions.eu.conversation(title="ann's")
    regions.eu.message(conversation, text="secret")
    regions.clock.ms += 5
    reply = regions.us.say(by, "conversation.create", conversation=conversation, title="bob's")
    assert (reply["code"], reply.get("reason")) == (
        ("conflict", "id_taken") if by.scope != BOB.scope else ("not_found", None)
    )
    regions.settle()
    regions.clock.ms += HEAD_CACHE_MS
    for house in (regions.eu, regions.us):
        assert house.say(BOB, "message.list", conversation=conversation)["code"] == "not_found"
        assert house.say(BOB, "conversation.delete", conversation=conversation)["code"] == "not_found"
        assert house.ok(PHONE, "conversation.get", conversation=conversation)["conversation"]["title"] == "ann's"


def test_ones_own_that_has_not_come_yet_is_waited_for_and_nothing_of_it_is_written_here(regions: Regions) -> None:
    conversation = regions.eu.conversation(title="first", retention_days=3)
    reply = regions.us.say(PHONE, "conversation.create", conversation=conversation, title="first")
    assert (reply["code"], reply["retryable"]) == ("unavailable", True)
    key = regions.us.key(conversation)
    assert [address for address in regions.us.items() if address[0] == key] == []
    regions.clock.ms += 5
    regions.eu.ok(PHONE, "conversation.update", conversation=conversation, title="second")
    regions.settle()
    for house in (regions.eu, regions.us):
        assert house.ok(PHONE, "conversation.get", conversation=conversation)["conversation"]["title"] == "second"


@pytest.mark.parametrize("looks", range(1, 4))
def test_what_comes_meanwhile_is_given_as_it_stands_and_can_be_written_to_at_once(regions: Regions, looks: int) -> None:
    """A request waits as briefly as for a parent."""
    conversation = regions.eu.conversation(title="first", retention_days=3)
    regions.eu.ok(PHONE, "conversation.update", conversation=conversation, title="second")
    active_at = regions.eu.ok(PHONE, "conversation.get", conversation=conversation)["conversation"]["active_at"]
    regions.clock.ms += 86_400_000
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == looks:
            regions.replicate()

    regions.us.replace(sleep=sleep)
    again = regions.us.ok(PHONE, "conversation.create", conversation=conversation, title="first")
    assert again["duplicate"] is True
    kept = again["conversation"]
    assert (kept["title"], kept["retention_days"], kept["active_at"]) == ("second", 3, active_at)
    assert slept == [0.1] * looks
    assert regions.us.outbox == [], "it was asked for again, which is no activity"
    regions.us.message(conversation)
    regions.settle()
    for house in (regions.eu, regions.us):
        assert house.ok(PHONE, "conversation.get", conversation=conversation)["conversation"]["title"] == "second"


def test_ones_own_whose_retention_has_ended_elsewhere_is_not_found(regions: Regions) -> None:
    """As that region knows of its activity: its head tells of the creation alone."""
    conversation = regions.eu.conversation(retention_days=1)
    regions.clock.ms += 86_400_000 // 2
    regions.eu.message(conversation)
    regions.clock.ms += 86_400_000 // 2 + 3_600_000
    assert regions.us.say(PHONE, "conversation.create", conversation=conversation)["code"] == "unavailable"
    regions.clock.ms += 86_400_000 // 2
    for house in (regions.eu, regions.us):
        assert house.say(PHONE, "conversation.create", conversation=conversation)["code"] == "not_found"
    assert regions.us.outbox == []


def test_what_was_deleted_elsewhere_is_not_created_anew(regions: Regions) -> None:
    conversation = regions.eu.conversation()
    regions.eu.ok(PHONE, "conversation.delete", conversation=conversation)
    assert regions.us.say(PHONE, "conversation.create", conversation=conversation)["code"] == "not_found"


def test_while_a_region_that_counts_cannot_be_asked_an_id_is_taken_from_nobody(regions: Regions) -> None:
    conversation = regions.us.new_id()
    regions.eu.warm.unavailable = True
    reply = regions.us.say(PHONE, "conversation.create", conversation=conversation)
    assert (reply["code"], reply["retryable"]) == ("unavailable", True)
    assert regions.us.warm.read_head(regions.us.key(conversation)) is None
    regions.us.ok(PHONE, "conversation.create", title="its id is of the service's own minting")
    regions.us.evacuate("eu-central-1")
    regions.us.ok(PHONE, "conversation.create", conversation=conversation)


def test_what_a_region_knows_it_asks_no_other_about(regions: Regions) -> None:
    conversation = regions.us.conversation()
    regions.us.others.asked.clear()
    regions.us.ok(PHONE, "conversation.create", conversation=conversation)
    assert regions.us.others.asked == []
