"""Faults by which people came to see, or to lose, what was another's, or their secrets were seen (README.md)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import msgspec
import pytest
from valkey import Valkey
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Subprotocol

from local.keys import SigningKey
from local.state import Address
from tests.support import canaries
from tests.support.canaries import Canaries
from tests.support.gateway.deployment import deployed
from tests.support.hot import REGION, SystemClock, client_of, hot_valkey
from tests.support.house import BULKHEADS, PHONE, START_MS, WORKER, Device, House, connect_event
from tests.support.tenancy import Keys
from tests.unit.handlers.access import (
    BY_ACTION,
    NOT_FOUND,
    SERVED,
    World,
    device_for,
    event,
    fields_of,
    foreign,
    kind_of,
    of_kind,
)
from tests.unit.handlers.conftest import logged  # noqa: F401 -- a fixture
from tests.unit.handlers.test_scopes import UNVOUCHED
from threadkeep.domain import ids
from threadkeep.schema import ROUTES
from threadkeep.stores.hot_memory import HotMemory

UMBRELLA: Final = Device(connection="umbrella=", tenant="umbrella")
"""Another tenant's user of the same name."""


def test_a72_every_route_refuses_a_foreign_id_as_it_refuses_one_that_never_was(house: House) -> None:
    """Any user who was logged in read, deleted and wrote by another's id: a route had forgotten the check."""
    world = World(house)
    before = world.contents()
    tried = set()
    for action, field in of_kind("names"):
        for what, identifier in foreign(world, action, field):
            answer = house.invoke(event(device_for(action), action, world.request(action) | {field: identifier}))
            assert (answer["statusCode"], answer["body"]) == (200, NOT_FOUND), (action, field, what)
            tried.add(action)
    assert world.contents() == before
    # Those left over name nothing that is there: a route that is new, and is not among them, has been tried.
    assert set(BULKHEADS) - tried == {"ping", "conversation.list", "conversation.create"}
    assert not [field for action in ("ping", "conversation.list") for field in fields_of(action) if "names" in field]


def test_a72_no_field_of_any_route_is_without_an_answer_to_what_it_may_name() -> None:
    """A stream's routes were added and nobody asked of them what the others were asked."""
    for actions in ROUTES.values():
        for action in actions:
            assert BY_ACTION[action].scopes
            assert all(kind_of(action, field) for field in fields_of(action))


# --- A73 ------------------------------------------------------------------------------------------------------------


async def test_a73_a_token_is_in_no_log_metric_trace_or_error_wherever_it_was_sent() -> None:
    """Tokens in URLs and headers ended up in the logs of servers, proxies and clients."""
    key, other = SigningKey.generate(), SigningKey.generate()
    good = key.mint_token(sub="ann", tenant="acme", scope=["chat"])
    foreign_key = other.mint_token(sub="ann", tenant="acme", scope=["chat"])
    expired = key.mint_token(sub="ann", tenant="acme", scope=["chat"], lifetime_s=-60)
    no_tenant = key.mint_token(sub="ann", tenant="", scope=["chat"])
    broken = good[:-8] + "AAAAAAAA"
    secrets = Canaries()
    said: list[str] = []
    with canaries.listening(secrets):
        async with deployed(HotMemory(SystemClock(), region=REGION), key) as deployment:
            for token in (good, foreign_key, expired, no_tenant, broken):
                secrets.note(token)
                for name, arguments in ways(deployment.gateway.url, token).items():
                    try:
                        async with connect(*arguments[0], **arguments[1], open_timeout=10) as socket:
                            for request in ({"action": "ping", "ref": token[:256]}, {"action": token}, token):
                                await socket.send(request if isinstance(request, str) else json.dumps(request))
                                answer = json.loads(await socket.recv())
                                answer.pop("ref", None)  # the client's own word, given back to it alone
                                said.append(json.dumps(answer))
                            assert token == good, name
                    except InvalidStatus as refused:
                        assert token != good, name
                        said += [str(refused), str(refused.response.body), str(refused.response.headers)]
    assert secrets.heard, "something was logged"
    assert said
    assert secrets.found() == []
    assert not [text for text in said for secret in secrets.secrets if secret in text]


def ways(url: str, token: str) -> dict[str, tuple[tuple[Any, ...], dict[str, Any]]]:
    """How a token may be sent, and where it should not have been."""
    protocols = [Subprotocol("threadkeep.v1"), Subprotocol(f"bearer.{token}")]
    return {
        "header": ((url,), {"additional_headers": {"Authorization": f"Bearer {token}"}}),
        "subprotocol": ((url,), {"subprotocols": protocols}),
        "query": ((f"{url}?token={token}",), {}),
    }


# --- A74 ------------------------------------------------------------------------------------------------------------


def tell_the_same(house: House, by: Device, worker: Device) -> dict[str, Any]:
    """A question and its answer, word for word what everybody else asks; then a page of it."""
    conversation = house.conversation(by)
    question = house.message(conversation, text="What is the capital of France?", by=by)
    place = house.stream(conversation, question, by=worker)
    house.ok(worker, "stream.append", **place, ops=[["text", 0, f"Paris, says {by.tenant}."]])
    house.ok(worker, "stream.close", **place | {"offset": 1}, status="complete")
    house.ok(by, "conversation.subscribe", conversation=conversation)
    page: dict[str, Any] = house.ok(by, "message.list", conversation=conversation)
    return page


def test_a74_two_tenants_who_ask_the_same_share_no_key(
    house: House, valkey_cluster: Address, tenant_in_every_key: Keys
) -> None:
    """Tenant B was served tenant A's cached answer: the tenant was not in the cache's keys."""
    with Valkey(host=valkey_cluster.host, port=valkey_cluster.port) as untyped:
        server: Any = untyped
        client = client_of(valkey_cluster, is_cluster=True)
        house.replace(hot=hot_valkey(client))
        keys: dict[str, set[str]] = {}
        for tenant in ("acme", "umbrella"):
            before = {name.decode() for name in server.scan_iter()}
            phone, worker = (msgspec.structs.replace(device, tenant=tenant) for device in (PHONE, WORKER))
            page = tell_the_same(house, phone, worker)
            assert f"Paris, says {tenant}." in json.dumps(page["messages"])
            keys[tenant] = {name.decode() for name in server.scan_iter()} - before
        client.close()
        assert keys["acme"]
        assert keys["umbrella"]
        for tenant, own in keys.items():
            assert all(name.startswith((f"{{{tenant}/", "due:{")) for name in own)
    assert {"acme", "umbrella"} <= tenant_in_every_key.tenants
    assert tenant_in_every_key.found() == []


@pytest.mark.parametrize("make", [lambda house: house.hot, lambda _: None])
def test_a74_under_one_id_two_tenants_have_each_their_own(
    house: House, make: Callable[[House], HotMemory | None]
) -> None:
    """The conversation's id alone was the key, and whoever named it was given what lay there."""
    identifier = house.new_id()
    for device in (PHONE, UMBRELLA):
        house.ok(device, "conversation.create", conversation=identifier, title=device.tenant)
        house.message(identifier, text=f"of {device.tenant}", by=device)
    if make(house) is None:
        house.lose_hot()
    for device in (PHONE, UMBRELLA):
        page = house.ok(device, "message.list", conversation=identifier)
        assert [message["parts"][0]["text"] for message in page["messages"]] == [f"of {device.tenant}"]
        assert house.ok(device, "conversation.get", conversation=identifier)["conversation"]["title"] == device.tenant
        assert [item["title"] for item in house.ok(device, "conversation.list")["items"]] == [device.tenant]
    house.ok(UMBRELLA, "conversation.delete", conversation=identifier)
    assert house.ok(PHONE, "message.list", conversation=identifier)["messages"]
    house.message(identifier, house.ok(PHONE, "message.list", conversation=identifier)["messages"][0]["id"])


# --- A75 ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("context", UNVOUCHED.values(), ids=UNVOUCHED.keys())
def test_a75_whoever_has_no_tenant_is_refused_and_counted_and_shares_none(
    house: House,
    context: object,
    logged: Callable[[], str],  # noqa: F811 -- the fixture
) -> None:
    """Requests without a tenant all went to one "default" tenant, and saw each other's."""
    world = World(house)
    before = world.contents()
    logged()
    for action in SERVED:
        request = {"action": action, "ref": "r", **world.request(action)}
        reply = house.post(device_for(action), json.dumps(request), authorizer=context)
        assert (reply["code"], reply["retryable"]) == ("unauthorized", False)
    assert house.invoke(connect_event(PHONE, authorizer=context)) == {"statusCode": 401}
    counted = [json.loads(line) for line in logged().splitlines() if '"_aws"' in line]
    refused = {line["action"] for line in counted if line.get("outcome") == "unauthorized" and "Requests" in line}
    assert refused == set(SERVED)
    assert [line["outcome"] for line in counted if "Connections" in line] == ["refused"]
    assert world.contents() == before


# --- A76 ------------------------------------------------------------------------------------------------------------


def test_a76_one_clients_id_has_an_outcome_of_its_own_in_every_conversation_and_tenant(house: House) -> None:
    """A customer was given what another's request with the same idempotency key had come to."""
    umbrella = msgspec.structs.replace(PHONE, tenant="umbrella")
    places = [(by, house.conversation(by)) for by in (PHONE, PHONE, umbrella)]
    identifier = house.new_id()
    for number, (by, conversation) in enumerate(places):
        said = {"message": identifier, "parent": None, "role": "user"}
        parts = [{"type": "text", "text": f"question {number}"}]
        first = house.ok(by, "message.create", conversation=conversation, **said, parts=parts)
        assert "duplicate" not in first
        again = house.ok(by, "message.create", conversation=conversation, **said, parts=parts)
        assert again["duplicate"] is True
        assert again["message"] == first["message"]
        assert first["message"]["parts"] == parts
    for number, (by, conversation) in enumerate(places):
        [message] = house.ok(by, "message.list", conversation=conversation)["messages"]
        assert (message["conversation"], message["parts"][0]["text"]) == (conversation, f"question {number}")


def test_a76_so_has_a_stream(house: House) -> None:
    """A producer that repeated its id in another conversation was told of the first one's answer."""
    umbrella, their_worker = (msgspec.structs.replace(device, tenant="umbrella") for device in (PHONE, WORKER))
    identifier = ids.mint(START_MS + 60_000)
    places = []
    for by, worker in ((PHONE, WORKER), (PHONE, WORKER), (umbrella, their_worker)):
        conversation = house.conversation(by)
        place = house.stream(conversation, house.message(conversation, by=by), message=identifier, by=worker)
        places.append((by, worker, place))
    for number, (_, worker, place) in enumerate(places):
        house.ok(worker, "stream.append", **place, ops=[["text", 0, f"answer {number}"]])
    first, *others = places
    house.ok(first[1], "stream.close", **first[2] | {"offset": 1}, status="complete")
    for number, (by, worker, place) in enumerate(others, start=1):
        page = house.ok(by, "stream.resume", **place)
        assert (page["state"], page["ops"]) == ("live", [["text", 0, f"answer {number}"]])
        closed = house.ok(worker, "stream.close", **place | {"offset": 1}, status="stopped")["message"]
        assert (closed["status"], closed["parts"][0]["text"]) == ("stopped", f"answer {number}")
