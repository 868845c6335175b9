"""Faults that people met where data has an end: served beyond it, or never ended, or ended too early (README.md)."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

import msgspec

from tests.support.erasing import Region, left_of
from tests.support.house import LAPTOP, PHONE, WORKER, Answer, Frame, House, message_event
from threadkeep.domain.bounds import PULSE_EVERY_MS
from threadkeep.domain.erasure import Terms
from threadkeep.ports import DueEntry
from threadkeep.usecases.archiving import archive
from threadkeep.usecases.planning import plan

DAY_MS: Final = 86_400_000


def archive_what_is_due(house: House) -> list[str]:
    """Let the planner and the archivers run; what became of each conversation that had fallen due."""
    plan(house.services, days_back=9)
    return [archive(house.services, msgspec.convert(job, DueEntry)).state for job in house.archive_queue.take()]


def reply(house: House, action: str, by: Any = PHONE, **fields: Any) -> str:
    """What a request is answered with, as the bytes that it is."""
    body: str = house.invoke(message_event(by, json.dumps({"action": action, "ref": "r", **fields})))["body"]
    return body


def listed(house: House) -> list[str]:
    """Ids of all the phone's owner has."""
    return [item["id"] for item in house.ok(PHONE, "conversation.list")["items"]]


def test_a51_what_has_expired_is_hidden_from_every_request_while_it_still_lies_there(house: House) -> None:
    """Expired items were served until the store's own clock took them away, days later."""
    house.replace(terms=Terms(regions=("eu-central-1",), retention_days={"acme": 1}))
    answer = Answer(house)
    house.replace(terms=Terms(regions=("eu-central-1",)))
    opened = answer.written("hel", "lo")
    assert answer.close(opened, 2)["type"] == "stream.close.ok"
    content = hashlib.sha256(b"x").hexdigest()
    stays = house.conversation()
    house.clock.ms += DAY_MS - 60_000
    # Looked at in its last minutes, so that every cache holds it.
    house.ok(LAPTOP, "context.read", conversation=answer.conversation)
    house.ok(LAPTOP, "conversation.subscribe", conversation=answer.conversation)
    house.ok(LAPTOP, "message.list", conversation=answer.conversation)
    assert listed(house) == [stays, answer.conversation]
    house.clock.ms += 60_000 + PULSE_EVERY_MS
    missing = reply(house, "conversation.get", conversation=house.new_id())
    requests: tuple[tuple[str, Frame], ...] = (
        ("conversation.get", {}),
        ("conversation.update", {"title": "x"}),
        ("conversation.subscribe", {}),
        ("conversation.create", {}),
        ("message.list", {}),
        ("message.list", {"leaf": "all"}),
        ("message.list", {"leaf": answer.stream}),
        ("context.read", {}),
        ("context.read", {"leaf": answer.stream}),
        ("stream.resume", {"stream": answer.stream, "epoch": 0, "offset": 0}),
        ("message.create", {"parent": answer.stream, "role": "user", "parts": []}),
        ("message.respond", {"parent": answer.stream, "reply": house.new_id()}),
        ("blob.create", {"bytes": 1, "sha256": content}),
        ("export.create", {"format": "jsonl"}),
    )
    for action, fields in requests:
        assert reply(house, action, conversation=answer.conversation, **fields) == missing, (action, fields)
    place = {"parent": answer.stream, "role": "assistant", "producer": "run-9"}
    assert reply(house, "stream.open", WORKER, conversation=answer.conversation, **place) == missing
    assert listed(house) == [stays]
    assert left_of(house, answer.conversation), "it still lies there"


def test_a51_a_list_of_nothing_but_expired_ones_comes_to_the_others(house: House) -> None:
    """Expired items were served until the store's own clock took them away, days later."""
    old = house.conversation()
    short = [house.conversation(retention_days=1) for _ in range(9)]
    house.clock.ms += DAY_MS + PULSE_EVERY_MS
    fresh = house.conversation()
    page = house.ok(PHONE, "conversation.list", limit=2)
    found = [item["id"] for item in page["items"]]
    while page["cursor"] is not None:
        page = house.ok(PHONE, "conversation.list", limit=2, cursor=page["cursor"])
        found += [item["id"] for item in page["items"]]
    assert found == [fresh, old]
    assert not set(found) & set(short)


def test_a53_what_is_used_every_day_never_expires_and_what_is_not_goes_from_index_and_stores_at_once(
    house: House,
) -> None:
    """A probe renewed every lifetime, so that nothing ever ended; without it all would have ended at once."""
    region = Region(house)
    used = house.conversation(retention_days=7)
    left = house.conversation(retention_days=7)
    house.message(left)
    last: str | None = None
    for day in range(100):
        last = house.message(used, last, text=f"day {day}")
        archive_what_is_due(house)  # looks at both, as it does every day, and renews neither
        region.late()
        has_expired = day > 7
        assert set(listed(house)) == ({used} if has_expired else {used, left})
        assert (left_of(house, left) == []) is has_expired, day
        house.ok(PHONE, "message.list", conversation=used)
        house.clock.ms += DAY_MS
    erasure = house.ok(PHONE, "erasure.get", erasure=left)["erasure"]
    assert (erasure["reason"], erasure["conversation"]) == ("retention", left)
    house.clock.ms += 8 * DAY_MS
    assert listed(house) == []
    assert archive_what_is_due(house) == ["expired"]
    region.both_passes(used)
    assert left_of(house, used) == []
    assert house.ok(PHONE, "erasure.get", erasure=used)["erasure"]["state"] == "done"


def test_a53_reading_renews_nothing(house: House) -> None:
    """A probe renewed every lifetime, so that nothing ever ended."""
    conversation = house.conversation(retention_days=7)
    house.message(conversation)
    for _ in range(7):
        house.ok(PHONE, "message.list", conversation=conversation)
        house.ok(PHONE, "context.read", conversation=conversation)
        house.ok(LAPTOP, "conversation.subscribe", conversation=conversation)
        house.clock.ms += DAY_MS
    house.clock.ms += PULSE_EVERY_MS
    assert house.say(PHONE, "message.list", conversation=conversation)["code"] == "not_found"


def test_a53_a_retention_is_never_a_minute_too_early(house: House) -> None:
    """The last activity is written once a minute: what came within that minute counts all the same."""
    conversation = house.conversation(retention_days=1)
    first = house.message(conversation)
    house.clock.ms += PULSE_EVERY_MS - 10
    house.message(conversation, first)  # not noted any more
    house.clock.ms += DAY_MS - 1
    assert len(house.ok(PHONE, "message.list", conversation=conversation)["messages"]) == 2
