"""A tier that cannot be reached: nothing half done, nothing lied about, and a retry completes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.house import LAPTOP, PHONE, WORKER, Answer, Frame, House, text_part
from threadkeep.domain.errors import HotUnavailable, WarmUnavailable


@pytest.fixture
def answer(house: House) -> Answer:
    return Answer(house)


class FailingAt:
    """A store whose call of that number, from now on, fails; the others go through.

    ``after``: it is carried out, and only its answer is lost.
    """

    def __init__(self, store: Any, number: int, error: type[Exception], *, after: bool) -> None:
        self._store = store
        self._left = number
        self._error = error
        self._after = after

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._store, name)
        if not callable(call):
            return call

        def counted(*args: Any, **kwargs: Any) -> Any:
            self._left -= 1
            if self._left != -1:
                return call(*args, **kwargs)
            if self._after:
                call(*args, **kwargs)
            raise self._error("told to fail")

        return counted

    @property
    def has_failed(self) -> bool:
        """Whether it came to that call."""
        return self._left < 0


def break_warm(house: House, number: int, *, after: bool) -> FailingAt:
    """Let the warm tier fail once."""
    failing = FailingAt(house.warm, number, WarmUnavailable, after=after)
    house.replace(warm=failing)
    return failing


def messages(house: House, conversation: str) -> list[Frame]:
    """All that is kept, newest first."""
    found: list[Frame] = house.ok(PHONE, "message.list", conversation=conversation, leaf="all")["messages"]
    return found


# --- warm -----------------------------------------------------------------------------------------------------


def test_without_the_warm_tier_everything_but_ping_and_appends_is_unavailable(answer: Answer) -> None:
    opened = answer.written("a")
    house, conversation = answer.house, answer.conversation
    house.warm.unavailable = True
    place = answer.place(opened, 1)
    requests: list[tuple[str, dict[str, Any]]] = [
        ("conversation.create", {"conversation": house.new_id()}),
        ("conversation.get", {"conversation": conversation}),
        ("conversation.update", {"conversation": conversation, "title": "x"}),
        ("conversation.list", {}),
        ("conversation.subscribe", {"conversation": conversation}),
        ("message.create", {"conversation": conversation, "parent": None, "role": "user", "parts": [], "fork": True}),
        ("message.list", {"conversation": conversation}),
    ]
    for action, fields in requests:
        reply = house.say(PHONE, action, **fields)
        assert (reply["code"], reply["retryable"]) == ("unavailable", True), action
    assert house.say(PHONE, "ping")["type"] == "ping.ok"
    assert house.say(WORKER, "stream.append", conversation=conversation, ops=[], **place)["offset"] == 2
    house.warm.unavailable = False
    assert [message["id"] for message in messages(house, conversation)] == [answer.question]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("number", range(8))
def test_a_send_that_failed_at_any_call_is_completed_by_its_repetition(
    house: House,
    number: int,
    after: bool,  # noqa: FBT001 -- a case
) -> None:
    conversation = house.conversation()
    house.ok(LAPTOP, "conversation.subscribe", conversation=conversation)
    house.clock.ms += 120_000
    said: dict[str, Any] = {"conversation": conversation, "message": house.new_id(), "parent": None}
    said |= {"role": "user", "parts": [text_part("hello")]}
    failing = break_warm(house, number, after=after)
    first = house.say(PHONE, "message.create", **said)
    assert first.get("code", "ok") == ("unavailable" if failing.has_failed else "ok")
    house.replace(warm=house.warm)
    second = house.ok(PHONE, "message.create", **said)
    assert second["message"]["parts"] == [text_part("hello")]
    assert [message["id"] for message in messages(house, conversation)] == [said["message"]]
    assert house.frames(LAPTOP)[-1]["message"] == second["message"]
    conversation_now = house.ok(PHONE, "conversation.get", conversation=conversation)["conversation"]
    assert conversation_now["active_at"] > conversation_now["created_at"]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("by_body", [False, True])
def test_a_close_that_failed_at_any_call_is_completed_by_its_repetition(
    answer: Answer,
    number: int,
    after: bool,  # noqa: FBT001 -- a case
    by_body: bool,  # noqa: FBT001 -- a case
) -> None:
    house = answer.house
    opened = answer.written("a")
    said: dict[str, Any] = {}
    if by_body:
        house.lose_hot()
        said = {"body": [text_part("a")], "parent": answer.question, "role": "assistant"}
    house.ok(LAPTOP, "conversation.subscribe", conversation=answer.conversation)
    house.clock.ms += 120_000
    failing = break_warm(house, number, after=after)
    first = answer.close(opened, 1, **said)
    assert first.get("code", "ok") == ("unavailable" if failing.has_failed else "ok")
    house.replace(warm=house.warm)
    second = answer.close(opened, 1, **said)
    assert second["message"]["parts"] == [text_part("a")]
    assert messages(house, answer.conversation)[0] == second["message"]
    assert house.frames(LAPTOP)[-1]["message"] == second["message"]
    conversation_now = house.ok(PHONE, "conversation.get", conversation=answer.conversation)["conversation"]
    assert conversation_now["active_at"] > conversation_now["created_at"]


# --- hot ------------------------------------------------------------------------------------------------------


def test_without_the_hot_tier_sends_and_history_still_work(answer: Answer) -> None:
    house, conversation = answer.house, answer.conversation
    house.hot.unavailable = True
    second = house.message(conversation, answer.question)
    created = house.ok(PHONE, "conversation.create")["conversation"]["id"]
    house.ok(PHONE, "conversation.update", conversation=conversation, title="still")
    assert house.ok(PHONE, "conversation.get", conversation=conversation)["conversation"]["title"] == "still"
    assert house.ok(PHONE, "conversation.list")["items"][0]["id"] == created
    path = house.ok(PHONE, "message.list", conversation=conversation)["messages"]
    assert [message["id"] for message in path] == [second, answer.question]
    settled = house.ok(PHONE, "stream.resume", conversation=conversation, stream=second, epoch=0, offset=0)
    assert settled["message"] == path[0]
    stale = house.say(PHONE, "message.create", conversation=conversation, parent=answer.question, role="user", parts=[])
    assert stale["detail"] == {"leaf": second}


def test_without_the_hot_tier_streams_and_subscriptions_are_unavailable(answer: Answer) -> None:
    opened = answer.written("a")
    house = answer.house
    house.hot.unavailable = True
    place = answer.place(opened, 1)
    assert answer.open()["code"] == "unavailable"
    assert answer.append(opened, 1, "b")["code"] == "unavailable"
    assert answer.close(opened, 1)["code"] == "unavailable"
    for action in ("conversation.subscribe", "conversation.unsubscribe"):
        assert house.say(PHONE, action, conversation=answer.conversation)["code"] == "unavailable"
    resumed = house.say(PHONE, "stream.resume", conversation=answer.conversation, **place)
    assert resumed["code"] == "unavailable", "it may well live: better to ask again than to be told that it does not"
    house.hot.unavailable = False
    assert answer.append(opened, 1, "b")["offset"] == 2


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("after", [False, True])
def test_a_close_during_which_the_hot_tier_fails_is_completed_by_its_repetition(
    answer: Answer,
    number: int,
    after: bool,  # noqa: FBT001 -- a case
) -> None:
    opened = answer.written("a")
    answer.house.replace(hot=FailingAt(answer.house.hot, number, HotUnavailable, after=after))
    answer.close(opened, 1)
    answer.house.replace(hot=answer.house.hot)
    message = answer.close(opened, 1)["message"]
    assert message["parts"] == [text_part("a")]
    assert messages(answer.house, answer.conversation)[0] == message
