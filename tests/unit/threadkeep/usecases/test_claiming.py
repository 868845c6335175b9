"""Places that are claimed before the put: what the register says, and what the table says to it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.house import PHONE, Frame, House, text_part
from threadkeep.domain.errors import WarmThrottled


@pytest.fixture
def conversation(house: House) -> str:
    return house.conversation()


def send(house: House, conversation: str, parent: str | None) -> Frame:
    """Try to send a message; the reply."""
    said: dict[str, Any] = {"message": house.new_id(), "parent": parent, "role": "user", "parts": [text_part("hi")]}
    return house.say(PHONE, "message.create", conversation=conversation, **said)


def test_what_the_register_refuses_is_confirmed_by_the_table(house: House, conversation: str) -> None:
    """A message was put while the hot tier was away, whose register then still names the one before."""
    root = house.message(conversation)
    house.hot.unavailable = True
    second = house.message(conversation, root)
    house.hot.unavailable = False
    refused = send(house, conversation, None)
    assert (refused["reason"], refused["detail"]) == ("stale_leaf", {"leaf": second})


def test_a_message_that_the_register_does_not_know_is_a_parent(house: House, conversation: str) -> None:
    root = house.message(conversation)
    house.hot.unavailable = True
    second = house.message(conversation, root)
    house.hot.unavailable = False
    assert send(house, conversation, second)["type"] == "message.create.ok"


def test_a_send_that_the_table_refused_gives_its_place_back(house: House, conversation: str) -> None:
    root = house.message(conversation)

    class Throttled:
        """The table, which takes no message at present."""

        def __getattr__(self, name: str) -> Any:
            return getattr(house.warm, name)

        def put_message(self, *_: object) -> None:
            raise WarmThrottled("told to")

    house.replace(warm=Throttled())
    assert send(house, conversation, root)["retryable"]
    house.replace(warm=house.warm)
    assert send(house, conversation, root)["type"] == "message.create.ok"
