"""A write that was let through just before the conversation was deleted: the gravestone refuses it."""

from __future__ import annotations

import copy

import pytest

from tests.support.house import PHONE, WORKER, House, text_part
from tests.support.tiers import Calls


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


@pytest.fixture
def lost(house: House) -> str:
    """Deleted and erased, and the hot tier has lost the gravestone; another sandbox still remembers the owner."""
    conversation = house.conversation()
    house.message(conversation)
    remembered = copy.deepcopy(house.services.owners)
    house.ok(PHONE, "conversation.delete", conversation=conversation)
    while house.erasures.clear(house.key(conversation)):
        pass
    house.lose_hot()
    house.replace(owners=remembered)
    return conversation


def test_where_it_is_lost_a_send_asks_the_table_before_it_is_acknowledged(house: House, lost: str) -> None:
    for fork in (False, True):
        said = {"message": house.new_id(), "parent": None, "role": "user", "parts": [text_part("too late")]}
        refused = house.say(PHONE, "message.create", conversation=lost, fork=fork, **said)
        assert refused["code"] == "not_found"
    assert not house.warm.messages.get(house.key(lost))
    assert not house.services.owners.get(house.key(lost), house.clock.ms)


def test_where_it_is_lost_no_stream_is_opened(house: House, lost: str) -> None:
    said = {"message": house.new_id(), "parent": None, "role": "assistant", "producer": "run-1"}
    assert house.say(WORKER, "stream.open", conversation=lost, **said)["code"] == "not_found"
    assert house.hot.live(house.key(lost)) == ()


def test_only_a_tier_that_knows_nothing_of_a_conversation_makes_a_send_ask_whether_it_stands(house: House) -> None:
    conversation = house.conversation()
    leaf = house.message(conversation)
    calls = Calls(house)
    for known in (True, False, True):
        if not known:
            house.lose_hot()
        calls.forget()
        leaf = house.message(conversation, leaf)
        assert calls.counted["warm.read_head"] == (0 if known else 1)
    calls.forget()
    house.stream(conversation, leaf)
    assert calls.counted["warm.read_head"] == 0


def test_nothing_is_shown(house: House, conversation: str) -> None:
    for action in ("message.list", "context.read"):
        assert house.say(PHONE, action, conversation=conversation)["code"] == "not_found"
