"""A write that was let through just before the conversation was deleted: the gravestone refuses it."""

from __future__ import annotations

import pytest

from tests.support.house import PHONE, WORKER, House


@pytest.fixture
def conversation(house: House) -> str:
    """Buried in the hot tier; its owner is still remembered."""
    conversation = house.conversation()
    house.message(conversation)
    house.hot.bury(house.key(conversation))
    return conversation


def test_no_message_is_taken_in(house: House, conversation: str) -> None:
    key = house.key(conversation)
    before = dict(house.warm.messages[key])
    for fork in (False, True):
        refused = house.say(
            PHONE,
            "message.create",
            conversation=conversation,
            message=house.new_id(),
            parent=None,
            role="user",
            fork=fork,
            parts=[{"type": "text", "text": "too late"}],
        )
        assert refused["code"] == "not_found"
    assert house.warm.messages[key] == before
    assert not house.frames(PHONE)


def test_no_stream_is_opened(house: House, conversation: str) -> None:
    question = max(house.warm.messages[house.key(conversation)])
    refused = house.say(
        WORKER,
        "stream.open",
        conversation=conversation,
        message=house.new_id(),
        parent=question,
        role="assistant",
        producer="run-1",
    )
    assert refused["code"] == "not_found"
    assert house.hot.live(house.key(conversation)) == ()


def test_nobody_watches(house: House, conversation: str) -> None:
    """Who subscribes has just read the table; deleted in that instant, it is gone all the same."""
    assert house.say(PHONE, "conversation.subscribe", conversation=conversation)["code"] == "not_found"
    assert house.hot.viewers(house.key(conversation)) == ()


def test_nothing_is_shown(house: House, conversation: str) -> None:
    for action in ("message.list", "context.read"):
        assert house.say(PHONE, action, conversation=conversation)["code"] == "not_found"
