"""Who may touch what, for every action that is served: generated from the commands, so that a new one is held to it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import pytest
from msgspec import inspect

from tests.support.conversations import tombstone
from tests.support.house import BULKHEADS, PHONE, START_MS, WORKER, Device, Frame, House, connect_event, message_event
from threadkeep.domain import ids
from threadkeep.domain.bounds import HEAD_CACHE_MS
from threadkeep.domain.commands import COMMANDS, Command

BY_ACTION: Final[dict[str, type[Command]]] = {str(command.__struct_config__.tag): command for command in COMMANDS}
SERVED: Final = sorted(BULKHEADS)
BOB: Final = Device(connection="bob=", user="bob")
UMBRELLA: Final = Device(connection="umbrella=", tenant="umbrella")
"""Another tenant's, with a user of the same name."""

NAMES: Final = ("conversation", "stream", "leaf", "erasure", "export")
"""Fields that name something which must be there. (`parent` is judged by the turns, `message` and `reply` are new.)"""


def id_fields(action: str) -> list[str]:
    """The fields of an action that take an id."""
    info = inspect.type_info(BY_ACTION[action])
    assert isinstance(info, inspect.StructType)
    return [field.name for field in info.fields if any(_is_id(option) for option in _options(field.type))]


def _options(kind: inspect.Type) -> tuple[inspect.Type, ...]:
    return kind.types if isinstance(kind, inspect.UnionType) else (kind,)


def _is_id(kind: inspect.Type) -> bool:
    return isinstance(kind, inspect.StrType) and "-7" in (kind.pattern or "")


ID_FIELDS: Final = [(action, field) for action in SERVED for field in id_fields(action)]
NAMING: Final = [
    (action, field)
    for action, field in ID_FIELDS
    # these two may name what is not there yet: the conversation is created, the seal waits for the stream's opening
    if field in NAMES and (action, field) not in {("conversation.create", "conversation"), ("stream.cancel", "stream")}
]


class World:
    """Three conversations of three owners, each with a question and a live answer."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.own = self._talk(PHONE, WORKER)
        self.bobs = self._talk(BOB, WORKER)
        self.umbrellas = self._talk(UMBRELLA, msgspec.structs.replace(WORKER, tenant="umbrella"))
        for talk, owner in ((self.own, PHONE), (self.bobs, BOB), (self.umbrellas, UMBRELLA)):
            talk["export"] = house.ok(owner, "export.create", format="jsonl")["export"]["id"]
        self.deleted = self._talk(PHONE, WORKER)
        house.warm.gone[house.key(self.deleted["conversation"])] = tombstone("ann")
        house.clock.ms += HEAD_CACHE_MS

    def _talk(self, owner: Device, worker: Device) -> Frame:
        conversation = self.house.conversation(owner)
        question = self.house.message(conversation, by=owner)
        place = self.house.stream(conversation, question, by=worker)
        erased = self.house.conversation(owner)
        self.house.ok(owner, "conversation.delete", conversation=erased)
        named = {"parent": question, "leaf": question, "erasure": erased, "blob": self._blob(owner, place)}
        return place | named

    def _blob(self, owner: Device, place: Frame) -> str:
        """An upload that a message of the conversation keeps; its ref."""
        said = {"conversation": place["conversation"], "bytes": 1, "sha256": hashlib.sha256(b"x").hexdigest()}
        upload = self.house.ok(owner, "blob.create", **said)["upload"]
        assert self.house.uploads.put(upload["url"], upload["headers"], b"x")
        part = {"type": "blob", "bytes": 1, "sha256": said["sha256"], "ref": upload["ref"]}
        self.house.message(place["conversation"], parts=[part], fork=True, by=owner)
        ref: str = upload["ref"]
        return ref

    def request(self, action: str) -> Frame:
        """What the action needs at least, all of it one's own."""
        info = inspect.type_info(BY_ACTION[action])
        assert isinstance(info, inspect.StructType)
        samples = self.own | {
            "role": "user",
            "parts": [],
            "producer": "run-9",
            "ops": [],
            "status": "complete",
            "bytes": 1,
            "sha256": "0" * 64,
            "format": "jsonl",
            "reply": ids.mint(START_MS, after=self.own["parent"]),
        }
        return {field.encode_name: samples[field.name] for field in info.fields if field.required}

    def contents(self) -> str:
        """All that is kept and all that was told, to see that it has not changed."""
        hot = [
            (key, talk.streams, talk.leases)
            for key, talk in self.house.hot._conversations.items()
            if talk.streams or talk.leases
        ]
        return repr((self.house.warm._heads, self.house.warm.messages, hot, self.house.push.frames))


@pytest.fixture
def world(house: House) -> World:
    return World(house)


def device_for(action: str) -> Device:
    """A person where a person may do that, else a server."""
    return PHONE if "chat" in BY_ACTION[action].scopes else WORKER


def foreign(world: World, action: str, field: str, *, chat: bool) -> Iterator[tuple[str, str]]:
    """What a field may name that is not the caller's or not there, each with what it is."""
    yield "another tenant's", world.umbrellas[field]
    yield "never been", ids.mint(START_MS)
    if field == "conversation" and action != "conversation.delete":  # which gives its owner the same erasure again
        yield "deleted", world.deleted[field]
    if chat or field != "conversation":
        yield "another user's", world.bobs[field]
    if field == "stream":
        yield "a conversation's", world.own["conversation"]


def test_the_matrix_is_not_empty() -> None:
    assert ("conversation.get", "conversation") in NAMING
    assert ("stream.append", "stream") in NAMING
    assert ("message.list", "leaf") in NAMING


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
    for what, identifier in foreign(world, action, field, chat=device is PHONE):
        request = world.request(action) | {field: identifier}
        answer = world.house.invoke(_event(device, action, request))
        assert answer["body"] == (
            '{"type":"error","ref":"r","code":"not_found","message":"Nothing here goes by that id.","retryable":false}'
        ), what
    assert world.contents() == before


@pytest.mark.parametrize(("action", "field"), ID_FIELDS)
def test_what_is_no_id_in_canonical_form_is_a_bad_request(world: World, action: str, field: str) -> None:
    device = device_for(action)
    before = world.contents()
    identifier = world.own.get(field) or ids.mint(START_MS)
    malformed: list[Any] = [
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
        7,
        [identifier],
        {"id": identifier},
        True,
    ]
    for value in malformed:
        reply = world.house.say(device, action, **world.request(action) | {field: value})
        assert reply["code"] == "bad_request", value
        assert field in reply["message"]
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
        world.house.invoke(_event(device, action, request | {"parent": parent}))["body"]
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


def test_the_cache_of_owners_lets_nobody_else_in(world: World) -> None:
    conversation = world.own["conversation"]
    for other in (BOB, UMBRELLA):
        world.house.ok(PHONE, "message.list", conversation=conversation)
        world.house.ok(WORKER, "message.list", conversation=conversation)
        assert world.house.say(other, "message.list", conversation=conversation)["code"] == "not_found"


# --- scopes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", SERVED)
@pytest.mark.parametrize("scope", ["chat", "produce", "admin", "", "CHAT", "chat,produce", "xchat producer"])
def test_an_action_is_done_under_its_scopes_alone(world: World, action: str, scope: str) -> None:
    device = msgspec.structs.replace(device_for(action), scope=scope)
    may = bool(set(scope.split()) & BY_ACTION[action].scopes)
    world.house.hot.unavailable = world.house.warm.unavailable = True
    reply = world.house.say(device, action, **world.request(action))
    assert (reply.get("code") == "unauthorized") is not may
    if not may:
        assert reply["retryable"] is False


@pytest.mark.parametrize("action", SERVED)
def test_one_scope_of_several_is_enough(world: World, action: str) -> None:
    device = msgspec.structs.replace(device_for(action), scope=" admin  chat produce ")
    assert world.house.say(device, action, **world.request(action)).get("code") != "unauthorized"


# --- who is vouched for ---------------------------------------------------------------------------------------

VOUCHED: Final = PHONE.vouched()
UNVOUCHED: Final[dict[str, Any]] = {
    "no authorizer": None,
    "a list": [],
    "text": "acme",
    "empty": {},
    **{
        f"without {name}": {n: v for n, v in VOUCHED.items() if n != name} for name in ("tenant", "sub", "scope", "exp")
    },
    **{
        f"{name}: {value!r:.9}": VOUCHED | {name: value}
        for name in ("tenant", "sub")
        for value in ("", None, [], ["acme"], {"acme": 1}, 7, True, "x" * 257)
    },
    **{f"scope: {value!r}": VOUCHED | {"scope": value} for value in (None, ["chat"], 7)},
    **{f"exp: {value!r}": VOUCHED | {"exp": value} for value in (None, 4_000_000_000, "", "soon", "-1", "1e12", "4.0")},
}


@pytest.mark.parametrize("context", UNVOUCHED.values(), ids=UNVOUCHED.keys())
def test_whoever_is_not_vouched_for_does_nothing(world: World, context: object) -> None:
    before = world.contents()
    world.house.hot.unavailable = world.house.warm.unavailable = True
    for action in SERVED:
        request = {"action": action, "ref": "r", **world.request(action)}
        reply = world.house.post(device_for(action), json.dumps(request), authorizer=context)
        assert (reply["code"], reply["ref"]) == ("unauthorized", "r")
    assert world.contents() == before


@pytest.mark.parametrize("context", UNVOUCHED.values(), ids=UNVOUCHED.keys())
def test_whoever_is_not_vouched_for_does_not_connect(house: House, context: object) -> None:
    assert house.invoke(connect_event(PHONE, authorizer=context)) == {"statusCode": 401}


@pytest.mark.parametrize("action", SERVED)
def test_an_expired_token_does_nothing_whatever_its_scope(world: World, action: str) -> None:
    before = world.contents()
    now_s = -(-world.house.clock.ms // 1_000)
    world.house.clock.ms = now_s * 1_000
    world.house.hot.unavailable = world.house.warm.unavailable = True
    for scope in (device_for(action).scope, "", "admin"):
        device = msgspec.structs.replace(device_for(action), expires_s=now_s, scope=scope)
        reply = world.house.say(device, action, **world.request(action))
        assert (reply["code"], reply["retryable"]) == ("token_expired", False)
    fresh = msgspec.structs.replace(device_for(action), expires_s=now_s + 1)
    assert world.house.say(fresh, action, **world.request(action)).get("code") in {None, "unavailable"}
    assert world.contents() == before


def test_nothing_in_a_body_says_who_is_asking(world: World) -> None:
    forged = {"tenant": "umbrella", "sub": "ann", "scope": "produce", "owner": "ann", "authorizer": VOUCHED}
    reply = world.house.say(BOB, "conversation.get", conversation=world.own["conversation"], **forged)
    assert reply["code"] == "not_found"
    created = world.house.ok(BOB, "conversation.create", **forged)["conversation"]
    assert created["owner"] == "bob"


def _event(device: Device, action: str, request: Frame) -> dict[str, Any]:
    return message_event(device, json.dumps({"action": action, "ref": "r", **request}))
