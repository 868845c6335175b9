"""What counts as a conversation's activity, from which its retention runs: what is new, and nothing else."""

from __future__ import annotations

from typing import Final

import pytest

from tests.support.house import PHONE, WORKER, Frame, House, house, text_part

__all__ = ["house"]

HOURS_MS: Final = 12 * 60 * 60_000


def active_at(house: House, conversation: str) -> str:
    at: str = house.ok(PHONE, "conversation.get", conversation=conversation)["conversation"]["active_at"]
    return at


class Closing:
    """An answer that was closed with its body, since the hot tier had lost it; twelve hours ago."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.conversation = house.conversation(retention_days=1)
        question = house.message(self.conversation)
        self.close: Frame = {
            "conversation": self.conversation,
            "stream": house.new_id(),
            "epoch": 1,
            "offset": 0,
            "status": "complete",
            "parent": question,
            "role": "assistant",
            "body": [text_part("all of it")],
        }
        house.ok(WORKER, "stream.close", **self.close)
        house.clock.ms += HOURS_MS

    def again(self, tier: str, **other: object) -> Frame:
        """Close once more, with the hot tier in that state."""
        if tier == "lost":
            self.house.lose_hot()
        self.house.hot.unavailable = tier == "away"
        reply = self.house.say(WORKER, "stream.close", **(self.close | other))
        self.house.hot.unavailable = False
        return reply


@pytest.mark.parametrize("tier", ["there", "lost", "away"])
@pytest.mark.parametrize(
    "other", [{}, {"body": [text_part("something else")]}, {"status": "interrupted"}], ids=["same", "other", "status"]
)
def test_a_close_that_is_repeated_or_refused_is_no_activity(house: House, tier: str, other: Frame) -> None:
    closing = Closing(house)
    before = active_at(house, closing.conversation)
    reply = closing.again(tier, **other)
    assert reply.get("code", reply["type"]) == ("closed" if other else "stream.close.ok")
    assert active_at(house, closing.conversation) == before
    house.clock.ms += HOURS_MS + 3_600_000
    assert house.say(PHONE, "conversation.get", conversation=closing.conversation)["code"] == "not_found"


def test_nor_is_one_that_is_refused_before_it_is_put(house: House) -> None:
    conversation = house.conversation(retention_days=1)
    before = active_at(house, conversation)
    house.clock.ms += HOURS_MS
    said = {"conversation": conversation, "parent": house.new_id(), "role": "assistant", "stream": house.new_id()}
    end = {"epoch": 1, "offset": 0, "status": "complete"}
    reply = house.say(WORKER, "stream.close", **said, **end, body=[text_part("of no parent")])
    assert reply["reason"] == "parent_missing"
    assert active_at(house, conversation) == before


@pytest.mark.parametrize("other", [{}, {"parts": [text_part("something else")]}], ids=["same", "other"])
@pytest.mark.parametrize("tier", ["there", "lost", "away"])
def test_a_send_that_is_repeated_or_refused_is_none_either(house: House, tier: str, other: Frame) -> None:
    conversation = house.conversation(retention_days=1)
    send = {"conversation": conversation, "message": house.new_id(), "parent": None, "role": "user"}
    house.ok(PHONE, "message.create", **send, parts=[text_part("hello")])
    house.clock.ms += HOURS_MS
    before = active_at(house, conversation)
    if tier == "lost":
        house.lose_hot()
    house.hot.unavailable = tier == "away"
    reply = house.say(PHONE, "message.create", **({**send, "parts": [text_part("hello")]} | other))
    house.hot.unavailable = False
    assert reply.get("reason", reply.get("duplicate")) == ("id_taken" if other else True)
    assert active_at(house, conversation) == before


def test_the_end_of_a_long_answer_is_activity(house: House) -> None:
    conversation = house.conversation(retention_days=1)
    place = house.stream(conversation, house.message(conversation))
    before = active_at(house, conversation)
    house.clock.ms += 10 * 60_000
    house.ok(WORKER, "stream.close", **place, status="complete")
    assert active_at(house, conversation) > before
