"""Who may do what at all: the scopes of every action, and whom the authorizer's context vouches for."""

from __future__ import annotations

import json
from itertools import chain, combinations
from typing import Any, Final

import msgspec
import pytest

from tests.support.house import PHONE, House, connect_event
from tests.unit.handlers.access import BOB, BY_ACTION, SERVED, World, device_for

SCOPE_SETS: Final = [
    " ".join(scopes)
    for scopes in chain.from_iterable(combinations(("chat", "produce", "admin"), size) for size in range(4))
]
"""Every set of the scopes that there are."""


@pytest.fixture
def world(house: House) -> World:
    return World(house)


# --- scopes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", SERVED)
@pytest.mark.parametrize("scope", [*SCOPE_SETS, "CHAT", "chat,produce", "xchat producer", " admin  chat produce "])
def test_an_action_is_done_under_its_scopes_alone(world: World, action: str, scope: str) -> None:
    device = msgspec.structs.replace(device_for(action), scope=scope)
    may = bool(set(scope.split()) & BY_ACTION[action].scopes)
    world.house.hot.unavailable = world.house.warm.unavailable = True
    reply = world.house.say(device, action, **world.request(action))
    assert (reply.get("code") == "unauthorized") is not may
    if not may:
        assert reply["retryable"] is False


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
    assert world.contents() == before
    fresh = msgspec.structs.replace(device_for(action), expires_s=now_s + 1)
    assert world.house.say(fresh, action, **world.request(action)).get("code") in {None, "unavailable"}


def test_nothing_in_a_body_says_who_is_asking(world: World) -> None:
    forged = {"tenant": "umbrella", "sub": "ann", "scope": "produce", "owner": "ann", "authorizer": VOUCHED}
    reply = world.house.say(BOB, "conversation.get", conversation=world.own["conversation"], **forged)
    assert reply["code"] == "not_found"
    created = world.house.ok(BOB, "conversation.create", **forged)["conversation"]
    assert created["owner"] == "bob"
