"""A region that was taken for gone, or that knew no better: what it has left of a stream takes nobody's place."""

from __future__ import annotations

import pytest

from tests.support.house import LAPTOP, PHONE, WORKER, Frame
from tests.support.regional_answer import RegionalAnswer
from tests.support.regions import EU, US, Regions, regions
from threadkeep.domain.bounds import CONTESTED_AGAIN_MS, LEASE_MS
from threadkeep.schema import SORT_LIVE

__all__ = ["regions"]

HEL = [{"type": "text", "text": "Hel"}]
HELLO = [{"type": "text", "text": "Hello"}]


class Answer(RegionalAnswer):
    """Half an answer in eu, which then counts as gone in us."""

    def __init__(self, regions: Regions) -> None:
        super().__init__(regions)
        self.first = self.open(regions.eu)
        self.append(regions.eu, self.first, "Hel")
        regions.replicate()
        regions.us.evacuate(EU)

    def begin_again(self) -> Frame:
        """In us, by the producer that holds it."""
        again = self.open(self.regions.us, epoch=self.first["epoch"])
        self.append(self.regions.us, again, "Hello")
        return again

    def left_alone(self) -> None:
        """So long that nobody is thought to write it any more; then eu's sweeper comes."""
        self.regions.clock.ms += LEASE_MS
        self.regions.eu.sweep()


@pytest.fixture
def answer(regions: Regions) -> Answer:
    return Answer(regions)


def test_what_has_settled_elsewhere_stands_although_it_has_not_come_yet(answer: Answer) -> None:
    regions = answer.regions
    answer.close(answer.regions.us, answer.begin_again())
    answer.left_alone()
    assert answer.stored(regions.eu) is None, "nothing of its own is written"
    assert regions.eu.hot.live(regions.eu.key(answer.conversation)) == ()
    regions.settle()
    for house in (regions.eu, regions.us):
        stored = answer.stored(house)
        assert stored is not None
        assert (stored["status"], stored["parts"]) == ("complete", HELLO)


def test_what_goes_on_elsewhere_is_waited_for(answer: Answer) -> None:
    regions = answer.regions
    again = answer.begin_again()
    regions.replicate(lambda sort_key: sort_key.startswith(SORT_LIVE))
    answer.left_alone()
    assert answer.stored(regions.eu) is None
    answer.close(answer.regions.us, again)
    regions.replicate()
    answer.left_alone()
    assert regions.eu.hot.live(regions.eu.key(answer.conversation)) == ()
    stored = answer.stored(regions.eu)
    assert stored is not None
    assert stored["parts"] == HELLO


def test_of_two_that_each_began_it_the_later_ends_it_with_what_it_has(answer: Answer) -> None:
    regions = answer.regions
    answer.begin_again()
    regions.replicate()
    regions.us.evacuate()
    regions.clock.ms += LEASE_MS
    regions.us.sweep()
    stored = answer.stored(regions.us)
    assert stored is not None
    assert (stored["status"], stored["parts"]) == ("interrupted", HELLO)


def test_where_nobody_else_has_it_it_is_ended_with_what_it_has(answer: Answer) -> None:
    regions = answer.regions
    answer.left_alone()
    stored = answer.stored(regions.eu)
    assert stored is not None
    assert (stored["status"], stored["parts"]) == ("interrupted", HEL)


@pytest.mark.parametrize("ends", ["asked", "evacuated", "stopped"])
def test_who_cannot_be_asked_is_waited_for_unless_it_counts_as_gone_or_somebody_stops_it(
    answer: Answer, ends: str
) -> None:
    regions = answer.regions
    regions.us.warm.unavailable = True  # to eu, which asks there
    answer.left_alone()
    answer.left_alone()
    assert answer.stored(regions.eu) is None
    page = regions.eu.ok(
        PHONE, "stream.resume", conversation=answer.conversation, stream=answer.stream, epoch=0, offset=0
    )
    assert (page["state"], page["ops"]) == ("live", [["text", 0, "Hel"]]), "whoever watches keeps what there is"
    if ends == "stopped":
        regions.eu.ok(PHONE, "stream.cancel", conversation=answer.conversation, stream=answer.stream)
    elif ends == "evacuated":
        regions.eu.evacuate(US)
    else:
        regions.us.warm.unavailable = False
    answer.left_alone()
    regions.us.warm.unavailable = False
    stored = answer.stored(regions.eu)
    assert stored is not None
    assert (stored["status"], stored["parts"]) == ("interrupted", HEL)


def test_a_message_that_has_taken_the_place_of_another_is_read_by_everybody(answer: Answer) -> None:
    regions = answer.regions
    regions.us.ok(LAPTOP, "conversation.subscribe", conversation=answer.conversation)
    regions.eu.ok(PHONE, "conversation.subscribe", conversation=answer.conversation)
    again = answer.begin_again()
    regions.eu.ok(PHONE, "stream.cancel", conversation=answer.conversation, stream=answer.stream)
    kept = regions.eu.ok(PHONE, "message.list", conversation=answer.conversation)["messages"][0]
    assert kept["status"] == "stopped"
    answer.close(answer.regions.us, again)  # later, so it stands
    regions.settle()
    for house, device in ((regions.eu, PHONE), (regions.us, LAPTOP)):
        page = house.ok(device, "message.list", conversation=answer.conversation)
        assert [(message["id"], message["status"]) for message in page["messages"]] == [
            (answer.stream, "complete"),
            (answer.question, "complete"),
        ]
        created = [frame for frame in house.frames(device) if frame["type"] == "message.created"]
        assert created[-1]["message"]["parts"] == HELLO


@pytest.mark.parametrize("late", ["closes first", "closes last", "goes on", "is stopped"])
def test_a_producer_that_a_returned_region_still_lets_write_leaves_nothing_of_it(answer: Answer, late: str) -> None:
    """Two runs of one answer, each acknowledged in its region: all come to the one that was begun anew, as a whole."""
    regions, eu = answer.regions, answer.regions.eu
    eu.ok(PHONE, "conversation.subscribe", conversation=answer.conversation)
    place = {"conversation": answer.conversation, "stream": answer.stream, "epoch": answer.first["epoch"]}
    again = answer.begin_again()
    if late == "closes first":
        eu.ok(WORKER, "stream.close", status="complete", offset=1, **place)
    elif late == "goes on":
        eu.ok(WORKER, "stream.append", offset=1, ops=[["text", 0, "p me"]], **place)
    answer.close(answer.regions.us, again)
    if late == "closes last":
        eu.ok(WORKER, "stream.close", status="complete", offset=1, **place)
    elif late == "goes on":
        eu.ok(WORKER, "stream.append", offset=2, ops=[["text", 0, "!"]], **place)
    elif late == "is stopped":
        eu.ok(PHONE, "stream.cancel", conversation=answer.conversation, stream=answer.stream)
    for _ in range(3):  # one for what came, one for what was put back, one for what that brings
        regions.settle()
        regions.clock.ms += CONTESTED_AGAIN_MS
    for house in (eu, regions.us):
        stored = answer.stored(house)
        assert stored is not None
        assert (stored["status"], stored["parts"]) == ("complete", HELLO)
        assert house.hot.live(house.key(answer.conversation)) == ()
        asked = {"conversation": answer.conversation, "stream": answer.stream, "epoch": answer.first["epoch"]}
        page = house.ok(LAPTOP, "stream.resume", offset=1, **asked)
        assert (page["state"], page["message"]["parts"]) == ("settled", HELLO), "nothing of the old text is shown"
    told = [frame["message"] for frame in eu.frames(PHONE) if frame["type"] == "message.created"]
    assert [one["parts"] for one in told if one["id"] == answer.stream][-1] == HELLO
    if late == "goes on":
        assert eu.say(WORKER, "stream.append", offset=3, ops=[], **place)["code"] == "not_found"
        opening = {"message": answer.stream, "parent": answer.question, "role": "assistant", "producer": "run-1"}
        held = {"conversation": answer.conversation, "epoch": answer.first["epoch"]}
        refused = eu.say(WORKER, "stream.open", **opening, **held)
        assert (refused["code"], refused["detail"]["settled"]["parts"]) == ("closed", HELLO), "it has the answer"
