"""Sweeping: streams that nobody ends are ended, and the index forgets nothing too soon."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.house import LAPTOP, PHONE, Answer, Frame, House, text_part
from threadkeep.domain.bounds import LEASE_MS
from threadkeep.domain.errors import WarmUnavailable
from threadkeep.domain.model import StoredMessage
from threadkeep.usecases.sweeping import Swept, file_forgotten, sweep


@pytest.fixture
def answer(house: House) -> Answer:
    return Answer(house)


def newest(house: House, conversation: str) -> Frame:
    """The newest message that is kept."""
    found: Frame = house.ok(PHONE, "message.list", conversation=conversation, leaf="all")["messages"][0]
    return found


def test_what_nobody_writes_any_more_is_ended_with_what_it_has(answer: Answer) -> None:
    house = answer.house
    opened = answer.written("a", "b")
    house.ok(LAPTOP, "conversation.subscribe", conversation=answer.conversation)
    house.clock.ms += LEASE_MS
    assert sweep(house.services) == Swept(looked_at=1, ended=1)
    message = newest(house, answer.conversation)
    assert (message["id"], message["status"], message["parts"]) == (answer.stream, "interrupted", [text_part("ab")])
    assert house.frames(LAPTOP)[-1]["message"] == message
    late = answer.append(opened, 2, "c")
    assert (late["code"], late["detail"]) == ("closed", {"settled": message}), "whoever wakes late is told"


def test_what_lives_is_left_alone_and_looked_at_again(answer: Answer) -> None:
    house = answer.house
    opened = answer.written("a")
    house.clock.ms += LEASE_MS - 1
    assert sweep(house.services) == Swept()
    answer.append(opened, 1, "b")
    house.clock.ms += 1
    assert sweep(house.services) == Swept(looked_at=1)
    assert sweep(house.services) == Swept(), "not before its time runs out"
    house.clock.ms += LEASE_MS
    assert sweep(house.services).ended == 1


def test_what_a_sweep_ended_is_looked_at_once_more_and_then_forgotten(answer: Answer) -> None:
    """A failover in between may bring the stream back from before its end."""
    house = answer.house
    answer.written("a")
    house.clock.ms += LEASE_MS
    assert sweep(house.services).ended == 1
    house.clock.ms += LEASE_MS
    assert sweep(house.services) == Swept(looked_at=1)
    house.clock.ms += 10 * LEASE_MS
    assert sweep(house.services) == Swept()


def test_one_that_cannot_be_stored_keeps_no_other_waiting(answer: Answer) -> None:
    house, other = answer.house, Answer(answer.house)
    answer.written("a")
    other.written("b")

    class Partial:
        """The table, which does not take the first answer."""

        def __getattr__(self, name: str) -> Any:
            return getattr(house.warm, name)

        def put_message(self, tenant: str, stored: StoredMessage) -> StoredMessage | None:
            if stored.message.id == answer.stream:
                raise WarmUnavailable("told to fail")
            return house.warm.put_message(tenant, stored)

    house.replace(warm=Partial())
    house.clock.ms += LEASE_MS
    assert sweep(house.services) == Swept(looked_at=2, ended=1, failed=1)
    assert newest(house, other.conversation)["parts"] == [text_part("b")]
    house.replace(warm=house.warm)
    house.clock.ms += LEASE_MS
    assert sweep(house.services) == Swept(looked_at=2, ended=1)
    assert newest(house, answer.conversation)["status"] == "interrupted", "as it was sealed at first"


def test_what_the_index_forgot_is_entered_again(answer: Answer) -> None:
    house = answer.house
    answer.written("a")
    house.hot._deadlines.clear()
    house.clock.ms += LEASE_MS
    assert sweep(house.services) == Swept()
    assert file_forgotten(house.services) == 1
    house.clock.ms += LEASE_MS
    assert sweep(house.services).ended == 1


def test_one_whose_ending_never_returns_keeps_no_other_waiting(answer: Answer) -> None:
    """The sweep is killed at its time limit, in the middle of that stream, whenever it comes to it."""
    house, others = answer.house, [Answer(answer.house) for _ in range(3)]
    answer.written("a")
    for other in others:
        house.clock.ms += 1
        other.written("b")
    begun: list[str] = []

    class Killed(BaseException):
        """What no handler of faults sees."""

    class Endless:
        """The table, at which the first answer's ending hangs."""

        def __getattr__(self, name: str) -> Any:
            return getattr(house.warm, name)

        def put_message(self, tenant: str, stored: StoredMessage) -> StoredMessage | None:
            begun.append(stored.message.id)
            if stored.message.id == answer.stream:
                raise Killed
            return house.warm.put_message(tenant, stored)

    house.replace(warm=Endless())
    house.clock.ms += LEASE_MS
    with pytest.raises(Killed):
        sweep(house.services)
    assert sweep(house.services) == Swept(looked_at=3, ended=3)
    assert begun == [answer.stream, *(other.stream for other in others)]
    house.clock.ms += LEASE_MS
    with pytest.raises(Killed):
        sweep(house.services)
    assert sweep(house.services) == Swept(looked_at=3), "and never keeps them waiting"
