"""A cache that never heard of the newest message: whoever subscribes tells it."""

from __future__ import annotations

import pytest

from tests.support.house import LAPTOP, PHONE, House
from tests.support.tiers import Calls


def newest(house: House, conversation: str) -> list[str]:
    """The present path, newest first."""
    return [each["id"] for each in house.ok(PHONE, "message.list", conversation=conversation)["messages"]]


def test_what_was_sent_while_the_cache_was_away_is_read_again_once_somebody_subscribes(house: House) -> None:
    conversation = house.conversation()
    first = house.message(conversation)
    assert newest(house, conversation) == [first]
    house.hot.unavailable = True
    second = house.message(conversation, first)
    house.hot.unavailable = False
    told = house.ok(LAPTOP, "conversation.subscribe", conversation=conversation)
    assert told["leaf"] == second
    assert newest(house, conversation) == [second, first]


@pytest.mark.parametrize("is_behind", [False, True])
def test_so_it_is_once_the_table_is_read_for_the_page_anyway(house: House, *, is_behind: bool) -> None:
    """The tail is gone too, and the register has not heard of the newest message: one query tells both."""
    conversation = house.conversation()
    sent = [house.message(conversation)]
    newest(house, conversation)
    if is_behind:
        house.hot.unavailable = True
        sent.append(house.message(conversation, sent[0]))
        house.hot.unavailable = False
    house.hot._conversations[house.key(conversation)].tail.clear()
    calls = Calls(house)
    assert newest(house, conversation) == sent[::-1]
    assert [said.get("consistent", True) for said in calls.of("warm", "read_messages")] == [False]
    assert calls.counted["hot.live"] == is_behind
    calls.forget()
    assert newest(house, conversation) == sent[::-1]
    assert not calls.of("warm", "read_messages")


def test_a_live_branch_stays_the_present_path_where_the_table_has_an_older_message_than_it(house: House) -> None:
    conversation = house.conversation()
    first = house.message(conversation)
    newest(house, conversation)
    house.hot.unavailable = True
    house.message(conversation, first)
    house.hot.unavailable = False
    house.stream(conversation, first, fork=True)
    house.hot._conversations[house.key(conversation)].tail.clear()
    assert newest(house, conversation) == [first]


def test_it_is_told_whose_the_conversation_is_too(house: House) -> None:
    conversation = house.conversation()
    first = house.message(conversation)
    house.ok(LAPTOP, "conversation.subscribe", conversation=conversation)
    house.services.owners._known.clear()  # another sandbox
    house.warm.unavailable = True
    assert newest(house, conversation) == [first]
