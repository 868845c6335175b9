"""Handshakes that were let through, and ends of connections."""

from __future__ import annotations

import pytest

from tests.support.house import PHONE, House, connect_event, disconnect_event

ACCEPTED = {"statusCode": 200, "headers": {"Sec-WebSocket-Protocol": "threadkeep.v1"}}


@pytest.mark.parametrize(
    "offered", ["threadkeep.v1", "threadkeep.v1, bearer.abc", "bearer.abc,threadkeep.v1", " other ,  threadkeep.v1 "]
)
@pytest.mark.parametrize("name", ["Sec-WebSocket-Protocol", "sec-websocket-protocol"])
def test_the_protocol_is_accepted_where_it_is_offered_and_the_token_never_echoed(
    house: House, name: str, offered: str
) -> None:
    assert house.invoke(connect_event(PHONE, headers={name: offered})) == ACCEPTED


@pytest.mark.parametrize("headers", [{}, {"Sec-WebSocket-Protocol": "other, bearer.threadkeep.v1"}])
def test_where_it_is_not_offered_no_protocol_is_named(house: House, headers: dict[str, str]) -> None:
    assert house.invoke(connect_event(PHONE, headers=headers)) == {"statusCode": 200}


def test_a_handshake_and_an_end_ask_no_store(house: House) -> None:
    house.hot.unavailable = house.warm.unavailable = True
    assert house.invoke(connect_event(PHONE)) == {"statusCode": 200}
    assert house.invoke(disconnect_event(PHONE)) == {"statusCode": 200}


def test_an_end_is_taken_of_whoever(house: House) -> None:
    event = disconnect_event(PHONE)
    del event["requestContext"]["authorizer"]
    assert house.invoke(event) == {"statusCode": 200}


def test_a_viewer_that_ended_without_a_word_costs_one_frame_and_is_forgotten(house: House) -> None:
    conversation = house.conversation()
    house.ok(PHONE, "conversation.subscribe", conversation=conversation)
    house.invoke(disconnect_event(PHONE))
    house.push.gone.add(PHONE.connection)
    first = house.message(conversation)
    assert house.hot.viewers(house.key(conversation)) == ()
    house.message(conversation, first)
