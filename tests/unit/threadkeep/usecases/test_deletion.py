"""Deleting: gone at once for everybody, and a receipt for whoever's it was."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from tests.support.erasing import SECOND_PASS_MS, Region
from tests.support.house import LAPTOP, PHONE, WORKER, Answer, Device, Frame, House, message_event, text_part
from tests.support.tiers import Calls
from threadkeep.domain import times
from threadkeep.domain.bounds import HEAD_CACHE_MS, LEASE_MS
from threadkeep.domain.erasure import Terms
from threadkeep.domain.model import Conversation
from threadkeep.usecases.sweeping import Swept, sweep

BOB = Device(connection="bob=", user="bob")
STRANGER = Device(connection="stranger=", tenant="umbrella")
SERVER = Device(connection="server=", user="backend", scope="chat produce")


@pytest.fixture
def answer(house: House) -> Answer:
    return Answer(house)


def delete(house: House, conversation: str, by: Device = PHONE) -> Frame:
    """Delete it; the erasure."""
    erasure: Frame = house.ok(by, "conversation.delete", conversation=conversation)["erasure"]
    return erasure


def raw(house: House, device: Device, action: str, **fields: str) -> str:
    """A reply, as the bytes that it is."""
    body: str = house.invoke(message_event(device, json.dumps({"action": action, "ref": "r", **fields})))["body"]
    return body


def test_deleting_gives_an_erasure_with_a_line_for_every_store_and_what_stays_until_when(house: House) -> None:
    conversation = house.conversation()
    now_ms = house.clock.ms
    assert delete(house, conversation) == {
        "id": conversation,
        "conversation": conversation,
        "reason": "owner",
        "state": "running",
        "requested_at": times.to_rfc3339(now_ms),
        "lines": [
            {
                "region": "eu-central-1",
                "store": store,
                "found": 0,
                "removed": 0,
                "passes": 0,
                "state": "running",
                "updated_at": times.to_rfc3339(now_ms),
            }
            for store in ("hot", "objects", "table")
        ],
        "stays": [
            {"what": "backups", "until": times.to_rfc3339(now_ms + SECOND_PASS_MS + 35 * 86_400_000)},
            {"what": "exports", "until": times.to_rfc3339(now_ms + 2 * 86_400_000)},
        ],
    }


def test_in_several_regions_each_has_its_lines_and_the_table_is_cleared_at_home(house: House) -> None:
    house.replace(terms=Terms(regions=("us-east-1", "eu-central-1"), pitr_days=1))
    lines = delete(house, house.conversation())["lines"]
    assert [(line["region"], line["store"]) for line in lines] == [
        ("us-east-1", "hot"),
        ("us-east-1", "objects"),
        ("us-east-1", "table"),
        ("eu-central-1", "hot"),
        ("eu-central-1", "objects"),
    ]


def test_it_is_gone_at_once_for_every_action_also_where_its_owner_was_remembered(answer: Answer) -> None:
    house, conversation = answer.house, answer.conversation
    opened = answer.written("hel", "lo")
    house.ok(LAPTOP, "message.list", conversation=conversation)
    delete(house, conversation)
    missing = raw(house, PHONE, "conversation.get", conversation=house.new_id())
    for device, action, fields in (
        (PHONE, "conversation.get", {}),
        (PHONE, "conversation.update", {"title": "x"}),
        (PHONE, "conversation.subscribe", {}),
        (PHONE, "conversation.create", {}),
        (PHONE, "message.list", {}),
        (PHONE, "stream.resume", {"stream": answer.stream, "epoch": 0, "offset": 0}),
        (PHONE, "stream.resume", {"stream": answer.question, "epoch": 0, "offset": 0}),
        (PHONE, "blob.create", {"bytes": 1, "sha256": "0" * 64}),
        (PHONE, "message.respond", {"parent": answer.question, "reply": house.new_id()}),
        (PHONE, "message.create", {"parent": answer.question, "role": "user", "parts": [], "fork": True}),
        (WORKER, "stream.append", {**answer.place(opened, 2), "ops": []}),
        (WORKER, "stream.close", {**answer.place(opened, 2), "status": "complete"}),
        (WORKER, "stream.open", {"parent": answer.question, "role": "assistant", "producer": "p", "fork": True}),
    ):
        body = {"action": action, "ref": "r", "conversation": conversation} | fields
        assert house.invoke(message_event(device, json.dumps(body)))["body"] == missing, action
    assert house.ok(PHONE, "conversation.list")["items"] == []


def test_a_live_stream_is_dropped_and_its_producer_finds_nothing_to_go_on_with(answer: Answer) -> None:
    house = answer.house
    opened = answer.written("hel")
    delete(house, answer.conversation)
    assert answer.append(opened, 1, "lo")["code"] == "not_found"
    assert answer.open(epoch=opened["epoch"])["code"] == "not_found"
    assert answer.open(takeover=True)["code"] == "not_found"
    body: dict[str, Any] = {"body": [{"type": "text", "text": "hello"}], "parent": answer.question, "role": "assistant"}
    assert answer.close(opened, 2, **body)["code"] == "not_found"
    assert not house.warm.has_message(house.key(answer.conversation), answer.stream)


def test_who_watches_is_told_and_nothing_more_comes(answer: Answer) -> None:
    house = answer.house
    house.ok(LAPTOP, "conversation.subscribe", conversation=answer.conversation)
    opened = answer.written("hel")
    told = len(house.frames(LAPTOP))
    delete(house, answer.conversation)
    answer.append(opened, 1, "lo")
    assert house.frames(LAPTOP)[told:] == [{"type": "conversation.deleted", "conversation": answer.conversation}]


@pytest.mark.parametrize("after_both_passes", [False, True])
def test_repeated_by_its_owner_it_is_the_same_erasure(house: House, after_both_passes: bool) -> None:  # noqa: FBT001 -- a case
    conversation = house.conversation()
    region = Region(house)
    first = delete(house, conversation)
    if after_both_passes:
        region.both_passes(conversation)
    house.clock.ms += HEAD_CACHE_MS
    again = delete(house, conversation, LAPTOP)
    same = ("id", "conversation", "reason", "requested_at", "stays")
    assert [again[name] for name in same] == [first[name] for name in same]
    assert again["state"] == ("done" if after_both_passes else "running")
    assert house.ok(LAPTOP, "erasure.get", erasure=conversation)["erasure"] == again


def test_by_anyone_else_it_is_not_found_byte_for_byte_before_and_afterwards(house: House) -> None:
    conversation = house.conversation()
    for _ in range(2):
        for other in (BOB, STRANGER):
            missing = raw(house, other, "conversation.delete", conversation=house.new_id())
            assert json.loads(missing)["code"] == "not_found"
            assert raw(house, other, "conversation.delete", conversation=conversation) == missing
            assert raw(house, other, "erasure.get", erasure=conversation) == missing
        delete(house, conversation)


def test_whoever_acts_for_the_tenants_users_may_delete_for_them_and_asks_after_it(house: House) -> None:
    conversation = house.conversation()
    erasure = delete(house, conversation, SERVER)
    assert erasure["reason"] == "produce", "the receipt does not say that its owner did it"
    assert house.ok(SERVER, "erasure.get", erasure=conversation)["erasure"] == erasure
    assert delete(house, conversation)["requested_at"] == erasure["requested_at"]


def test_a_server_that_deletes_its_own_conversation_is_its_owner(house: House) -> None:
    conversation = house.ok(SERVER, "conversation.create")["conversation"]["id"]
    assert delete(house, conversation, SERVER)["reason"] == "owner"


def test_what_was_not_deleted_has_no_erasure(house: House) -> None:
    assert house.say(PHONE, "erasure.get", erasure=house.conversation())["code"] == "not_found"
    assert house.say(PHONE, "erasure.get", erasure=house.new_id())["code"] == "not_found"


def test_a_server_without_chat_deletes_nothing(house: House) -> None:
    assert house.say(WORKER, "conversation.delete", conversation=house.conversation())["code"] == "unauthorized"


def test_its_id_is_not_used_again_by_anybody(house: House) -> None:
    conversation = house.conversation()
    region = Region(house)
    delete(house, conversation)
    for _ in range(2):
        for device in (PHONE, BOB, WORKER):
            assert house.say(device, "conversation.create", conversation=conversation)["code"] == "not_found"
        region.both_passes(conversation)
    house.ok(STRANGER, "conversation.create", conversation=conversation)  # another tenant's is another


def test_with_the_hot_tier_away_it_is_deleted_and_the_herald_does_the_rest(answer: Answer) -> None:
    house = answer.house
    region = Region(house)
    house.ok(LAPTOP, "conversation.subscribe", conversation=answer.conversation)
    opened = answer.written("hel")
    house.hot.unavailable = True
    told = len(house.frames(LAPTOP))
    delete(house, answer.conversation)
    assert house.say(PHONE, "message.list", conversation=answer.conversation)["code"] == "not_found"
    assert len(house.frames(LAPTOP)) == told
    house.hot.unavailable = False
    region.announce()
    region.work()
    assert house.frames(LAPTOP)[told:] == [{"type": "conversation.deleted", "conversation": answer.conversation}]
    assert answer.append(opened, 1, "lo")["code"] == "not_found"


def test_without_the_hot_tier_nothing_is_written_to_what_was_deleted(answer: Answer) -> None:
    house = answer.house
    delete(house, answer.conversation)
    house.hot.unavailable = True
    remember(answer)
    said: dict[str, Any] = {"conversation": answer.conversation, "parent": answer.question}
    assert house.say(PHONE, "message.create", role="user", parts=[], **said)["code"] == "not_found"
    remember(answer)
    said |= {"stream": answer.stream, "epoch": 1, "offset": 0, "status": "complete"}
    assert house.say(WORKER, "stream.close", role="assistant", body=[], **said)["code"] == "not_found"


def remember(answer: Answer) -> None:
    """As another sandbox may, which has not heard of the deletion."""
    answer.house.services.owners.note(answer.house.key(answer.conversation), "ann", answer.house.clock.ms)


@pytest.mark.parametrize("is_hot", [True, False])
@pytest.mark.parametrize(
    ("action", "fields"),
    [
        ("message.list", {}),
        ("message.list", {"leaf": "all"}),
        ("context.read", {}),
        ("stream.resume", {"epoch": 0, "offset": 0}),
        ("blob.create", {"bytes": 1, "sha256": "0" * 64}),
        ("message.respond", {}),
    ],
)
def test_what_a_sandbox_remembers_of_it_shows_nothing(
    answer: Answer,
    action: str,
    fields: dict[str, Any],
    is_hot: bool,  # noqa: FBT001 -- a case
) -> None:
    house = answer.house
    delete(house, answer.conversation)
    house.hot.unavailable = not is_hot
    remember(answer)
    named = {"stream.resume": {"stream": answer.question}}
    named["message.respond"] = {"parent": answer.question, "reply": house.new_id()}
    said = {"conversation": answer.conversation, **fields, **named.get(action, {})}
    assert house.say(PHONE, action, **said)["code"] == "not_found"


def test_with_the_table_away_nothing_is_deleted(house: House) -> None:
    conversation = house.conversation()
    house.warm.unavailable = True
    assert house.say(PHONE, "conversation.delete", conversation=conversation)["code"] == "unavailable"
    house.warm.unavailable = False
    house.message(conversation)


# --- retention ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "given", "kept"),
    [
        (None, {}, None),
        (30, {}, 30),
        (None, {"*": 9}, 9),
        (None, {"acme": 7, "*": 3}, 7),
        (30, {"acme": 7}, 7),
        (3, {"acme": 7}, 3),
        (3, {"umbrella": 1}, 3),
    ],
)
def test_a_retention_is_the_smaller_of_its_own_and_the_tenants_fixed_at_creation(
    house: House, wanted: int | None, given: dict[str, int], kept: int | None
) -> None:
    house.replace(terms=Terms(regions=("eu-central-1",), retention_days=given))
    fields: dict[str, Any] = {} if wanted is None else {"retention_days": wanted}
    conversation = house.conversation(**fields)
    house.replace(terms=Terms(regions=("eu-central-1",)))
    found = house.ok(PHONE, "conversation.get", conversation=conversation)["conversation"]
    assert found.get("retention_days") == kept


def test_what_has_expired_and_is_still_there_can_be_deleted(house: House) -> None:
    conversation = house.conversation(retention_days=1)
    house.clock.ms += 2 * 86_400_000
    assert house.say(PHONE, "conversation.get", conversation=conversation)["code"] == "not_found"
    assert house.say(BOB, "conversation.delete", conversation=conversation)["code"] == "not_found"
    assert delete(house, conversation)["reason"] == "owner"


def expiring(house: House) -> tuple[str, str]:
    """A conversation with a message in it, a second before it expires; read just now, so that it is remembered."""
    conversation = house.conversation(retention_days=1)
    question = house.message(conversation)
    head = house.warm.read_head(house.key(conversation))
    assert isinstance(head, Conversation)
    assert head.expires_ms is not None
    house.clock.ms = head.expires_ms - 1_000
    house.ok(PHONE, "conversation.get", conversation=conversation)
    return conversation, question


@pytest.mark.parametrize(
    ("action", "fields"),
    [
        ("conversation.update", {"title": "late"}),
        ("message.create", {"role": "user", "parts": []}),
        ("stream.open", {"role": "assistant", "producer": "run-1"}),
        ("stream.cancel", {}),
    ],
)
def test_what_a_sandbox_remembers_of_it_ends_with_its_retention(
    house: House, action: str, fields: dict[str, Any]
) -> None:
    conversation, question = expiring(house)
    house.clock.ms += 1_000
    under = {"parent": question} if "role" in fields else {}
    device = WORKER if action == "stream.open" else PHONE
    assert house.say(device, action, conversation=conversation, **under, **fields)["code"] == "not_found"


@pytest.mark.parametrize("end", ["append", "close", "sweep"])
def test_a_stream_that_outlives_its_conversation_is_dropped(house: House, end: str) -> None:
    conversation, question = expiring(house)
    house.ok(LAPTOP, "conversation.subscribe", conversation=conversation)
    place = house.stream(conversation, question)
    said = {**place, "ops": [["text", 0, "goes nowhere"]]}
    house.clock.ms += 500
    house.ok(WORKER, "stream.append", **said)
    said["offset"] = 1
    house.clock.ms += 500
    if end == "append":
        assert house.say(WORKER, "stream.append", **said)["code"] == "not_found"
        assert house.say(WORKER, "stream.append", **said)["code"] == "not_found"
        assert [frame for frame in house.frames(LAPTOP) if frame["type"] == "stream.delta"][1:] == []
    elif end == "close":
        place["offset"] = 1
        assert house.say(WORKER, "stream.close", status="complete", **place)["code"] == "not_found"
        assert house.say(WORKER, "stream.close", status="complete", **place)["code"] == "not_found"
    else:
        house.clock.ms += LEASE_MS
        assert sweep(house.services) == Swept(looked_at=1, ended=0, failed=0)
    assert house.frames(LAPTOP)[-1]["type"] == "conversation.deleted"
    assert house.say(PHONE, "conversation.get", conversation=conversation)["code"] == "not_found"
    assert house.warm.read_message(house.key(conversation), place["stream"]) is None
    assert house.hot.live(house.key(conversation)) == ()


def test_a_stream_settles_in_a_conversation_that_was_active_meanwhile(house: House) -> None:
    conversation, question = expiring(house)
    place = house.stream(conversation, question)
    house.message(conversation, question, fork=True)
    house.clock.ms += 1_000
    calls = Calls(house)
    for _ in range(3):
        place["offset"] = house.ok(WORKER, "stream.append", ops=[["text", 0, "x"]], **place)["offset"]
    assert calls.counted["hot.append"] == 3 + 1, "asked once how it stands, and not again"
    assert calls.counted["warm.read_head"] == 1
    house.ok(WORKER, "stream.close", status="complete", **place)
    assert house.warm.read_message(house.key(conversation), place["stream"]) is not None


def test_a_message_that_is_refused_or_stands_already_is_no_activity(house: House) -> None:
    conversation = house.conversation(retention_days=1)
    first = house.message(conversation)
    second = house.message(conversation, first)
    active_at = house.warm.read_active_at(house.key(conversation))
    house.clock.ms += 3_600_000
    said: dict[str, Any] = {"conversation": conversation, "parent": first, "role": "user"}
    assert house.say(PHONE, "message.create", parts=[], **said)["reason"] == "stale_leaf"
    for fork in (False, True):
        again = said | {"message": second, "parts": [text_part("hello")], "fork": fork}
        assert house.ok(PHONE, "message.create", **again)["duplicate"]
    assert house.warm.read_active_at(house.key(conversation)) == active_at


def test_the_erasure_of_the_largest_deployment_fits_a_frame(house: House) -> None:
    regions = tuple(f"ap-southeast-{number}" for number in range(40))
    house.replace(terms=Terms(regions=regions), region=regions[0])
    device = msgspec.structs.replace(PHONE, user="ann")
    assert len(delete(house, house.conversation(), device)["lines"]) == 81
