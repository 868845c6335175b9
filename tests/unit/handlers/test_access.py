"""Who may touch what, for every action that is served: generated from the commands, so that a new one is held to it."""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec
import pytest

from tests.support.house import BULKHEADS, PHONE, START_MS, WORKER, House
from tests.unit.handlers.access import (
    BOB,
    BY_ACTION,
    EXCEPTIONS,
    FIELDS,
    ID_FIELDS,
    NOT_FOUND,
    SERVED,
    UMBRELLA,
    World,
    device_for,
    event,
    fields_of,
    foreign,
    kind_of,
    of_kind,
)
from threadkeep.domain import ids
from threadkeep.schema import ROUTES

NAMING: Final = of_kind("names")
MINTING: Final = of_kind("mints")


@pytest.fixture
def world(house: House) -> World:
    return World(house)


def test_every_action_of_the_route_table_is_here_and_every_one_has_its_command() -> None:
    assert sorted(SERVED) == sorted(action for actions in ROUTES.values() for action in actions)
    assert set(SERVED) == set(BULKHEADS) == set(BY_ACTION)


@pytest.mark.parametrize("action", SERVED)
def test_every_field_of_every_action_says_what_it_is(action: str) -> None:
    for field in fields_of(action):
        assert kind_of(action, field), f"{action}: what is `{field}`? FIELDS in tests/unit/handlers/access.py asks"


def test_the_classification_speaks_of_no_field_that_is_no_more() -> None:
    there = {field for action in SERVED for field in fields_of(action)}
    assert set(FIELDS) <= there
    assert all(field in fields_of(action) for action, field in EXCEPTIONS)


def test_a_field_that_takes_an_id_is_never_called_plain() -> None:
    assert not [named for named in ID_FIELDS if kind_of(*named) == "plain"]


def test_the_matrix_is_not_empty() -> None:
    assert {("conversation.get", "conversation"), ("stream.append", "stream"), ("message.list", "leaf")} <= set(NAMING)
    assert {("context.read", "leaf"), ("erasure.get", "erasure"), ("export.get", "export")} <= set(NAMING)
    assert {("blob.get", "blob"), ("export.create", "conversation")} <= set(NAMING)


def test_every_served_action_succeeds_on_what_is_ones_own(world: World) -> None:
    for action in SERVED:
        if action in {"stream.close", "stream.cancel", "conversation.delete"}:
            continue  # they end the stream that the others use, or all of it
        reply = world.house.say(device_for(action), action, **world.request(action))
        assert reply["type"] == f"{action}.ok" or reply["reason"] == "stale_leaf", reply
    reply = world.house.say(WORKER, "stream.close", **world.request("stream.close") | {"offset": 1})
    assert reply["type"] == "stream.close.ok"
    reply = world.house.say(PHONE, "stream.cancel", **world.request("stream.cancel"))
    assert reply["type"] == "stream.cancel.ok"
    reply = world.house.say(PHONE, "conversation.delete", **world.request("conversation.delete"))
    assert reply["type"] == "conversation.delete.ok"


@pytest.mark.parametrize(("action", "field"), NAMING)
def test_what_is_foreign_deleted_or_never_was_is_not_found_byte_for_byte(world: World, action: str, field: str) -> None:
    device = device_for(action)
    before = world.contents()
    for what, identifier in foreign(world, action, field):
        answer = world.house.invoke(event(device, action, world.request(action) | {field: identifier}))
        assert answer["body"] == NOT_FOUND, what
    assert world.contents() == before


@pytest.mark.parametrize(("action", "field"), ID_FIELDS)
def test_what_is_no_id_in_canonical_form_is_a_bad_request(world: World, action: str, field: str) -> None:
    device = device_for(action)
    before = world.contents()
    identifier = world.own.get(field) or ids.mint(START_MS)
    malformed = [
        identifier.upper(),
        f" {identifier}",
        f"{identifier} ",
        f"{identifier}\n",
        identifier.replace("-", ""),
        f"{{{identifier}}}",
        f"{identifier[:14]}4{identifier[15:]}",
        identifier[:-1],
        "",
        "..",
        "head",
        "\uff11" + identifier[1:],
    ]
    answers = {
        world.house.invoke(event(device, action, world.request(action) | {field: value}))["body"] for value in malformed
    }
    assert len(answers) == 1
    other_kinds: list[Any] = [7, [identifier], {"id": identifier}, True]
    for reply in (
        *map(json.loads, answers),
        *(world.house.say(device, action, **world.request(action) | {field: value}) for value in other_kinds),
    ):
        assert reply["code"] == "bad_request"
        assert field in reply["message"]
    assert world.contents() == before


@pytest.mark.parametrize("ref", ["", "..", "head", "A" * 256, "../{blob}", "{blob} ", " {blob}", "{blob}/..", "\x00"])
def test_what_is_no_ref_of_an_upload_is_not_found(world: World, ref: str) -> None:
    request = world.request("blob.get") | {"blob": ref.replace("{blob}", world.own["blob"])}
    reply = world.house.say(PHONE, "blob.get", **request)
    assert reply["code"] == ("not_found" if ref else "bad_request")


# --- ids that are minted --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("action", "field"), [named for named in MINTING if named[0] != "conversation.create"])
def test_what_mints_an_id_does_so_in_ones_own_conversation_alone(world: World, action: str, field: str) -> None:
    device = device_for(action)
    before = world.contents()
    for what, conversation in foreign(world, action, "conversation"):
        minted = {field: world.minted(), "conversation": conversation, "fork": True}
        answer = world.house.invoke(event(device, action, world.request(action) | minted))
        assert answer["body"] == NOT_FOUND, what
    assert world.contents() == before


@pytest.mark.parametrize(("action", "field"), MINTING)
def test_what_mints_an_id_takes_a_new_one(world: World, action: str, field: str) -> None:
    request = world.request(action) | {field: world.minted()}
    if "fork" in fields_of(action):
        request["fork"] = True
    reply = world.house.ok(device_for(action), action, **request)
    assert request[field] in json.dumps(reply)


@pytest.mark.parametrize(("action", "kept"), [("message.create", "message"), ("stream.open", "message")])
@pytest.mark.parametrize("whose", ["bobs", "umbrellas", "deleted"])
def test_an_id_that_another_conversation_has_is_free_in_ones_own(
    world: World, action: str, kept: str, whose: str
) -> None:
    foreign_one = getattr(world, whose)
    messages = repr(world.house.warm.messages[world.house.key(world.bobs["conversation"])])
    request = world.request(action) | {kept: foreign_one["stream"], "parent": world.own["parent"], "fork": True}
    reply = world.house.ok(device_for(action), action, **request)
    assert "duplicate" not in reply
    assert repr(world.house.warm.messages[world.house.key(world.bobs["conversation"])]) == messages


def test_a_stop_of_a_foreign_stream_stops_nothing_of_it(world: World) -> None:
    for talk in (world.bobs, world.umbrellas):
        reply = world.house.ok(PHONE, "stream.cancel", conversation=world.own["conversation"], stream=talk["stream"])
        assert reply["messages"] == []
    ops = [["text", 0, "on it goes"]]
    for talk, tenant in ((world.bobs, "acme"), (world.umbrellas, "umbrella")):
        worker = msgspec.structs.replace(WORKER, tenant=tenant)
        place = {name: talk[name] for name in ("conversation", "stream", "epoch")}
        assert world.house.ok(worker, "stream.append", **place, offset=0, ops=ops)["offset"] == 1


# --- what may name uploads, and what bounds a page ------------------------------------------------------------------


def test_a_foreign_upload_is_as_missing_as_one_that_never_was(world: World) -> None:
    before = world.contents()
    refs = [world.bobs["blob"], world.umbrellas["blob"], world.deleted["blob"], world.never("blob")]
    for action, field in of_kind("uploads"):
        answers = set()
        for ref in refs:
            request = world.request(action) | {"fork": True} | world.naming_upload(field, ref)
            answers.add(world.house.invoke(event(device_for(action), action, request))["body"])
        assert len(answers) == 1, (action, field)
        assert json.loads(answers.pop())["reason"] == "upload_missing"
    assert world.contents() == before


@pytest.mark.parametrize(("action", "field"), of_kind("bounds"))
def test_a_bound_shows_nothing_beyond_the_conversation_whatever_lies_there(
    world: World, action: str, field: str
) -> None:
    if action == "conversation.list":  # its cursor is no id, and is judged by its form alone
        return
    own = {world.own["parent"]} | set(world.house.warm.messages[world.house.key(world.own["conversation"])])
    for place in (world.bobs["parent"], world.umbrellas["parent"], world.deleted["parent"], ids.mint(START_MS)):
        reply = world.house.ok(PHONE, action, **world.request(action) | {field: place})
        assert {message["id"] for message in reply["messages"]} <= own


# --- writers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["stream.append", "stream.close"])
def test_a_stream_is_written_by_its_opener_alone(world: World, action: str) -> None:
    before = world.contents()
    another = msgspec.structs.replace(WORKER, user="another-worker")
    answer = world.house.invoke(event(another, action, world.request(action)))
    assert answer["body"] == NOT_FOUND
    assert world.contents() == before


@pytest.mark.parametrize("action", ["message.create", "stream.open"])
@pytest.mark.parametrize("fork", [False, True])
def test_a_parent_that_is_foreign_is_answered_as_one_that_never_was(
    world: World,
    action: str,
    fork: bool,  # noqa: FBT001 -- a case
) -> None:
    device = device_for(action)
    before = world.contents()
    request = world.request(action) | {"fork": fork}
    replies = {
        world.house.invoke(event(device, action, request | {"parent": parent}))["body"]
        for parent in (world.umbrellas["parent"], world.bobs["parent"], world.deleted["parent"], ids.mint(START_MS))
    }
    assert len(replies) == 1
    assert json.loads(replies.pop())["reason"] == ("parent_missing" if fork else "stale_leaf")
    assert world.contents() == before


def test_a_conversation_is_not_created_under_a_foreign_or_deleted_id(world: World) -> None:
    before = world.contents()
    for talk in (world.bobs, world.deleted):
        reply = world.house.say(PHONE, "conversation.create", conversation=talk["conversation"])
        assert reply == world.house.say(PHONE, "conversation.get", conversation=world.bobs["conversation"])
    assert world.contents() == before


@pytest.mark.parametrize("action", ["message.create", "conversation.update", "stream.cancel"])
def test_the_cache_of_owners_lets_nobody_else_in(world: World, action: str) -> None:
    """These ask no table whose the conversation is where the sandbox has just heard it."""
    request = world.request(action) | ({"message": world.minted(), "fork": True} if action == "message.create" else {})
    for other in (BOB, UMBRELLA):
        world.house.say(PHONE, action, **request)
        world.house.say(WORKER, "stream.open", **world.request("stream.open"))
        assert world.house.say(other, action, **request)["code"] == "not_found"
