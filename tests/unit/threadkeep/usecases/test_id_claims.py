"""An id that two users create under, in two regions: it becomes one's, and nobody is told what does not hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.house import PHONE, Device, Frame, House, house
from tests.support.regions import EU, US, RegionHouse, Regions, regions
from threadkeep.domain.contests import Claim

__all__ = ["house", "regions"]

BOB = Device(connection="bob=", user="bob")


class Between:
    """A port during whose call something else happens, once: before it takes effect, or right after."""

    def __init__(self, store: Any, call: str, happens: Callable[[], object], *, is_before: bool = False) -> None:
        self._store = store
        self._call = call
        self._happens: list[Callable[[], object]] = [happens]
        self._is_before = is_before

    def __getattr__(self, name: str) -> Any:
        called = getattr(self._store, name)
        if name != self._call or not self._happens:
            return called

        def call(*args: Any, **kwargs: Any) -> Any:
            happens = self._happens.pop()
            if self._is_before:
                happens()
            answer = called(*args, **kwargs)
            if not self._is_before:
                happens()
            return answer

        return call


def during(house: RegionHouse, port: str, call: str, happens: Callable[[], object], *, is_before: bool = False) -> None:
    """Have it happen there."""
    others = house.services.others
    assert others is not None
    changed: dict[str, Any] = {port: Between(getattr(others, port), call, happens, is_before=is_before)}
    house.replace(others=dataclasses.replace(others, **changed))


def create(house: RegionHouse, conversation: str, by: Device) -> Frame:
    return house.say(by, "conversation.create", conversation=conversation, title=by.user)


def assert_it_is(regions: Regions, conversation: str, owner: Device | None) -> None:
    """It is that user's in both regions, and nobody else's, when all has come."""
    for _ in range(2):
        regions.settle()
    for region in (regions.eu, regions.us):
        for device in (PHONE, BOB):
            reply = region.say(device, "conversation.get", conversation=conversation)
            assert ("conversation" in reply) is (device is owner), (region.region, device.user, reply)


def test_who_has_looked_before_the_other_had_it_still_sees_the_others_claim(regions: Regions) -> None:
    conversation = regions.us.new_id()
    told: list[Frame] = []

    def ann_creates() -> None:
        told.append(create(regions.eu, conversation, PHONE))

    during(regions.us, "tables", "read_head", ann_creates)
    assert create(regions.us, conversation, BOB)["code"] == "not_found"
    assert told[0]["type"] == "conversation.create.ok"
    assert_it_is(regions, conversation, PHONE)


def test_of_two_who_claim_at_one_instant_neither_gets_it(regions: Regions) -> None:
    conversation = regions.us.new_id()
    told: list[Frame] = []
    during(regions.us, "claims", "put", lambda: told.append(create(regions.eu, conversation, PHONE)))
    told.append(create(regions.us, conversation, BOB))
    assert [reply["code"] for reply in told] == ["not_found", "not_found"]
    assert_it_is(regions, conversation, None)
    for region, device in ((regions.eu, PHONE), (regions.us, BOB)):
        assert create(region, conversation, device)["code"] == "not_found", "an id is cheap"


def test_the_other_region_is_looked_at_when_ones_own_claim_stands(regions: Regions) -> None:
    """Not before: two who both look first and then claim see nothing of each other."""
    conversation = regions.us.new_id()
    told: list[Frame] = []
    during(regions.us, "claims", "put", lambda: told.append(create(regions.eu, conversation, PHONE)), is_before=True)
    assert create(regions.us, conversation, BOB)["code"] == "not_found"
    assert told[0]["type"] == "conversation.create.ok"
    assert_it_is(regions, conversation, PHONE)


def test_one_user_may_create_in_two_regions_at_once(regions: Regions) -> None:
    conversation = regions.us.new_id()
    told: list[Frame] = []
    during(regions.us, "claims", "put", lambda: told.append(create(regions.eu, conversation, PHONE)))
    told.append(create(regions.us, conversation, PHONE))
    assert [reply["type"] for reply in told] == ["conversation.create.ok"] * 2
    assert_it_is(regions, conversation, PHONE)


@pytest.mark.parametrize("ends", ["reached again", "evacuated"])
def test_a_claim_whose_other_region_could_not_be_asked_leaves_no_head_and_goes_on_when_it_is_asked_again(
    regions: Regions, ends: str
) -> None:
    conversation = regions.us.new_id()

    def leaves() -> None:
        regions.eu.warm.unavailable = True

    during(regions.us, "claims", "put", leaves)
    reply = create(regions.us, conversation, BOB)
    assert (reply["code"], reply["retryable"]) == ("unavailable", True)
    assert regions.us.warm.read_head(regions.us.key(conversation)) is None
    assert create(regions.us, conversation, BOB)["code"] == "unavailable"
    if ends == "evacuated":
        regions.us.evacuate(EU)
    regions.eu.warm.unavailable = ends == "evacuated"
    reply = create(regions.us, conversation, BOB)
    assert "duplicate" not in reply
    assert reply["conversation"]["title"] == "bob"
    regions.eu.warm.unavailable = False
    assert create(regions.eu, conversation, PHONE)["code"] == "not_found"
    assert_it_is(regions, conversation, BOB)


def test_what_another_user_claims_in_ones_own_region_is_taken_too(regions: Regions) -> None:
    conversation = regions.us.new_id()
    regions.us.warm.claims[regions.us.key(conversation)] = {US: Claim("ann", 1)}
    assert create(regions.us, conversation, BOB)["code"] == "not_found"
    reply = create(regions.us, conversation, Device(connection="b=", user="bob", scope="chat produce"))
    assert (reply["code"], reply["reason"]) == ("conflict", "id_taken")


def test_an_id_of_the_services_own_is_nobody_elses(regions: Regions) -> None:
    regions.us.others.asked.clear()
    made = regions.us.ok(PHONE, "conversation.create")["conversation"]["id"]
    assert (regions.us.others.asked, regions.us.warm.claims) == ([], {})
    head = regions.us.warm.standing_head(regions.us.key(made))
    assert head is not None
    assert head.claimed_ms == regions.clock.ms, "its head says when, in case that it has to stand against another's"


def test_one_region_alone_notes_no_claims(house: House) -> None:
    conversation = house.conversation()
    head = house.warm.standing_head(house.key(conversation))
    assert head is not None
    assert (house.warm.claims, head.claimed_ms) == ({}, 0)
