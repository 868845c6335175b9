"""What all handlers share: one reply to every frame, the errors' precedence, nothing of a fault shown or told."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from typing import Any, Final

import msgspec
import pytest

from tests.support.house import (
    BULKHEADS,
    LAPTOP,
    PHONE,
    WORKER,
    Answer,
    Device,
    House,
    LambdaContext,
    message_event,
    text_part,
)
from threadkeep.domain import ids
from threadkeep.schema import ROUTES

CANARY_TITLE: Final = "canary-of-a-title"
CANARY_TEXT: Final = "canary-of-a-text"
CANARY_TOKEN: Final = "canary-of-a-token"

NO_FRAMES: Final = [
    "",
    "no json",
    "[]",
    "null",
    '"ping"',
    "{}",
    '{"action":7}',
    '{"action":null}',
    '{"action":"nothing.known"}',
    '{"action":"$connect"}',
    '{"action":"$disconnect"}',
    '{"action":"$default"}',
    '{"action":"ping","ref":7}',
    '{"action":"ping"}{}',
    '{"action":"ping","x":' + "[" * 100_000,
    "\0",
    "\ud800",
]


@pytest.mark.parametrize("body", NO_FRAMES, ids=range(len(NO_FRAMES)))
@pytest.mark.parametrize("route", [*sorted(BULKHEADS), "$default", "$connect", "$disconnect"])
def test_whatever_comes_on_whatever_route_has_one_error_for_a_reply(house: House, body: str, route: str) -> None:
    reply = house.post(WORKER, body, route=route)
    assert (reply["type"], reply["code"], reply["retryable"]) == ("error", "bad_request", False)
    assert "ref" not in reply
    assert house.push.frames == []


LONG: Final = "' - at `$.role` \1" * 1_000


@pytest.mark.parametrize(
    ("action", "fields", "said"),
    [
        (LONG, {}, "`action` is none of "),
        ("message.create", {"parent": None, "role": LONG, "parts": []}, "`role` must be one of "),
        (
            "stream.append",
            {"stream": ids.mint(0), "epoch": 1, "offset": 0, "ops": [[LONG, 0, "a"]]},
            "`[0][0]` must be one of ",
        ),
    ],
)
def test_an_error_names_the_field_and_says_nothing_of_what_stood_there(
    house: House, action: str, fields: dict[str, Any], said: str
) -> None:
    request = {"action": action, "ref": "r", "conversation": house.conversation(), **fields}
    reply = house.post(WORKER, json.dumps(request), route=action if action in BULKHEADS else "$default")
    assert (reply["code"], reply["ref"]) == ("bad_request", "r")
    assert said in reply["message"]
    assert "\1" not in reply["message"]


def test_a_reply_carries_the_ref_of_its_request_and_none_where_there_was_none(house: House) -> None:
    assert house.post(PHONE, '{"action":"ping","ref":"界"}')["ref"] == "界"
    assert "ref" not in house.post(PHONE, '{"action":"ping"}')
    assert "ref" not in house.post(PHONE, '{"action":"ping","ref":null}')
    assert house.post(PHONE, '{"action":"no.such","ref":"r7"}')["ref"] == "r7"
    assert house.post(PHONE, '{"action":"conversation.get","ref":"r8"}')["ref"] == "r8"


def test_unknown_fields_are_ignored(house: House) -> None:
    assert house.ok(PHONE, "ping", something={"new": [1]})["now"] == "2027-01-15T08:00:00.000Z"


def test_ping_tells_the_servers_clock(house: House) -> None:
    house.clock.ms += 1_234
    assert house.ok(PHONE, "ping")["now"] == "2027-01-15T08:00:01.234Z"


@pytest.mark.parametrize("bulkhead", sorted(ROUTES))
def test_an_action_on_another_bulkheads_route_is_refused(house: House, bulkhead: str) -> None:
    handler = importlib.import_module(f"handlers.{bulkhead}").handler
    conversation = house.conversation()
    place = {"stream": conversation, "epoch": 1, "offset": 0}
    fields = {"conversation": conversation, "parent": None, "role": "user", "parts": [], "producer": "p"} | place
    fields |= {"ops": [], "status": "complete", "bytes": 1, "sha256": "0" * 64, "reply": conversation}
    for action in sorted(set(BULKHEADS) - set(ROUTES[bulkhead])):
        event = message_event(WORKER, json.dumps({"action": action, "ref": "r", **fields}))
        reply = json.loads(handler(event, LambdaContext())["body"])
        assert (reply["code"], reply["ref"]) == ("bad_request", "r"), action


# --- precedence -----------------------------------------------------------------------------------------------


def test_what_is_wrong_comes_in_the_order_of_the_protocol(house: House) -> None:
    """One request with everything wrong, mended one fault at a time; up to the last no store is asked."""
    house.hot.unavailable = house.warm.unavailable = True
    expired = msgspec.structs.replace(PHONE, scope="admin", expires_s=1)
    fields: dict[str, Any] = {"conversation": "none", "title": "x" * 400, "metadata": {"a": "x" * 24_576}}

    def code(device: Device, **mended: Any) -> object:
        fields.update(mended)
        return house.say(device, "conversation.update", **fields)["code"]

    assert code(expired) == "bad_request"
    assert code(expired, conversation=house.new_id()) == "too_large"
    assert code(expired, metadata={}) == "token_expired"
    assert code(msgspec.structs.replace(PHONE, scope="admin")) == "unauthorized"
    assert code(PHONE, metadata={"a": "x" * 16_384}) == "too_large"
    assert code(PHONE, metadata={}) == "unavailable"
    house.warm.unavailable = False
    assert code(PHONE) == "not_found"


# --- faults and logs ------------------------------------------------------------------------------------------


class Faulty:
    """A store that fails in an unforeseen way, quoting what it was given."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def fail(*args: object, **kwargs: object) -> None:
            inner = KeyError(f"{name} {args} {kwargs}")
            raise RuntimeError(f"{name} of {args} {kwargs}") from inner

        return fail


def test_a_fault_is_a_bare_internal_and_noted_by_kind_and_line_alone(house: House, logged: Callable[[], str]) -> None:
    house.replace(warm=Faulty())
    body = json.dumps({"action": "conversation.create", "ref": "r", "title": CANARY_TITLE})
    reply = house.post(PHONE, body)
    assert reply == {
        "type": "error",
        "ref": "r",
        "code": "internal",
        "message": "Something failed here; it has been noted. Ask again in a moment.",
        "retryable": True,
    }
    said = logged()
    assert "builtins.RuntimeError" in said
    assert "builtins.KeyError" in said
    assert "conversations.py:" in said
    assert '"outcome":"internal"' in said.replace(" ", "")
    assert CANARY_TITLE not in said


def test_a_tier_that_is_away_is_noted(house: House, logged: Callable[[], str]) -> None:
    house.warm.unavailable = True
    house.say(PHONE, "conversation.list")
    said = logged()
    assert "A tier is unavailable" in said
    assert "threadkeep.domain.errors.WarmUnavailable" in said


def test_neither_text_nor_title_nor_token_is_ever_logged(house: House, logged: Callable[[], str]) -> None:
    authorizer = PHONE.vouched() | {"token": CANARY_TOKEN}

    def post(device: Device, action: str, **fields: Any) -> None:
        house.post(
            device,
            json.dumps({"action": action, "token": CANARY_TOKEN, **fields}),
            authorizer=authorizer | device.vouched(),
        )

    conversation = house.conversation(title=CANARY_TITLE)
    house.ok(LAPTOP, "conversation.subscribe", conversation=conversation)
    answer = Answer(house)
    opened = answer.written(CANARY_TEXT, metadata={"a": CANARY_TEXT})
    stores = [{}, {"warm": Faulty()}, {"hot": Faulty()}, {"push": Faulty()}]
    for replaced in stores:
        house.replace(warm=house.warm, hot=house.hot, push=house.push)
        house.replace(**replaced)
        post(PHONE, "conversation.create", title=CANARY_TITLE)
        post(PHONE, "conversation.update", conversation=conversation, title=CANARY_TITLE)
        post(PHONE, "conversation.update", conversation=conversation, title=[CANARY_TITLE])
        post(
            PHONE, "message.create", conversation=conversation, parent=None, role="user", parts=[text_part(CANARY_TEXT)]
        )
        post(PHONE, "message.create", conversation=conversation, parent=None, role=CANARY_TEXT, parts=[])
        post(PHONE, "message.create", conversation=CANARY_TEXT, parent=None, role="user", parts=[])
        post(PHONE, CANARY_TEXT)
        post(
            WORKER,
            "stream.append",
            conversation=answer.conversation,
            ops=[["text", 0, CANARY_TEXT]],
            **answer.place(opened, 1),
        )
        post(WORKER, "stream.append", conversation=answer.conversation, ops=[[CANARY_TEXT]], **answer.place(opened, 1))
        post(WORKER, "stream.close", conversation=answer.conversation, status=CANARY_TEXT, **answer.place(opened, 2))
        post(
            WORKER,
            "stream.close",
            conversation=answer.conversation,
            status="failed",
            error={"m": CANARY_TEXT},
            **answer.place(opened, 2),
        )
        house.post(PHONE, CANARY_TEXT)
    said = logged()
    assert said.count('"outcome"') >= 12 * len(stores)
    assert "RuntimeError" in said
    for canary in (CANARY_TITLE, CANARY_TEXT, CANARY_TOKEN):
        assert canary not in said


def test_a_request_that_failed_is_counted_over_all_actions_too(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    """The function has no error to show of it, and an alarm cannot add up over actions."""

    def counted() -> set[str]:
        told = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith('{"_aws"')]
        return {name for line in told for name in line if name.startswith("Requests")}

    house.ok(PHONE, "conversation.create")
    assert counted() == {"Requests"}
    house.warm.unavailable = True
    assert house.say(PHONE, "conversation.create")["code"] == "unavailable"
    assert counted() == {"Requests", "RequestsUnavailable"}
    house.replace(warm=Faulty())
    assert house.post(PHONE, json.dumps({"action": "conversation.create", "ref": "r"}))["code"] == "internal"
    assert counted() == {"Requests", "RequestsFailed"}
