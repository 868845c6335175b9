"""A cache that never heard of the newest message: whoever subscribes tells it."""

from __future__ import annotations

from tests.support.house import LAPTOP, PHONE, House


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


def test_it_is_told_whose_the_conversation_is_too(house: House) -> None:
    conversation = house.conversation()
    first = house.message(conversation)
    house.ok(LAPTOP, "conversation.subscribe", conversation=conversation)
    house.services.owners._known.clear()  # another sandbox
    house.warm.unavailable = True
    assert newest(house, conversation) == [first]
