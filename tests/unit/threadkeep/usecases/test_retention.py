"""The end of a retention where several regions note activity: none ends what another knows to be active."""

from __future__ import annotations

from typing import Final

import msgspec
import pytest

from tests.support.house import PHONE, WORKER, Device
from tests.support.regions import EU, US, RegionHouse, Regions, regions
from threadkeep import telemetry
from threadkeep.domain import ids, times
from threadkeep.domain.bounds import ID_AHEAD_MS_MAX, LEASE_MS, PULSE_EVERY_MS, RETENTION_AGAIN_MS, RETENTION_MARGIN_MS
from threadkeep.domain.model import Conversation
from threadkeep.ports import DueEntry
from threadkeep.schema import SORT_PULSE
from threadkeep.usecases.archiving import archive
from threadkeep.usecases.planning import plan
from threadkeep.usecases.retention import as_known_everywhere

__all__ = ["regions"]

BOB: Final = Device(connection="bob=", user="bob")
DAY_MS: Final = 24 * 60 * 60_000
END_MS: Final = DAY_MS + PULSE_EVERY_MS
"""From the last activity to the retention's end."""


def archived(regions: Regions) -> list[str]:
    """Let home's archive run; what became of what had fallen due."""
    eu = regions.eu
    with regions.serving_from(eu):
        plan(eu.services, days_back=2)
        return [archive(eu.services, msgspec.convert(job, DueEntry)).state for job in eu.archive_queue.take()]


class Ending:
    """A conversation of both regions with a retention of a day, a second before its end."""

    def __init__(self, regions: Regions) -> None:
        self.regions = regions
        self.conversation = regions.eu.conversation(retention_days=1)
        self.question = regions.eu.message(self.conversation)
        self.key = regions.eu.key(self.conversation)
        regions.settle()
        active_ms = times.from_rfc3339(regions.eu.warm.active_at[self.key])
        regions.clock.ms = active_ms + END_MS - 1_000

    def say_in_us(self) -> str:
        """Something that eu has not been given yet."""
        return self.regions.us.message(self.conversation, self.question)

    def archived(self, after_ms: int = RETENTION_MARGIN_MS + 1_000) -> list[str]:
        """Let home's archive run so much later; what became of what had fallen due."""
        self.regions.clock.ms += after_ms
        return archived(self.regions)

    @property
    def due_ms(self) -> int:
        return times.from_rfc3339(self.regions.eu.warm.due_at[self.key])

    def read(self, house: RegionHouse) -> list[str] | str:
        """Its messages as a region answers, or why not."""
        said = house.say(PHONE, "message.list", conversation=self.conversation, leaf="all")
        return [message["id"] for message in said["messages"]] if "messages" in said else str(said["code"])


@pytest.fixture
def ending(regions: Regions) -> Ending:
    return Ending(regions)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what is counted."""
    names: list[str] = []
    count = telemetry.count

    def noted(name: str, number: int = 1, **dimensions: str) -> None:
        names.append(name)
        count(name, number, **dimensions)

    monkeypatch.setattr(telemetry, "count", noted)
    return names


def test_what_another_region_was_told_a_moment_before_the_end_keeps_the_conversation(ending: Ending) -> None:
    regions = ending.regions
    late = ending.say_in_us()
    active_ms = regions.clock.ms
    assert ending.archived() == ["active"]
    assert regions.eu.warm.gone == {}
    assert ending.due_ms == active_ms + END_MS + RETENTION_MARGIN_MS
    regions.settle()
    assert ending.read(regions.eu) == ending.read(regions.us) == [late, ending.question]


def test_what_the_archive_files_leaves_the_activity_that_another_region_has_noted(ending: Ending) -> None:
    """Of two writes of one item the later stands as a whole. The archive's is the later one, and of another item."""
    regions = ending.regions
    late = ending.say_in_us()
    active_at = times.to_rfc3339(regions.clock.ms)
    regions.clock.ms += RETENTION_MARGIN_MS + 1_000
    eu = regions.eu
    with regions.serving_from(eu):
        plan(eu.services, days_back=2)  # while the two regions cannot hear each other
    regions.replicate()
    assert eu.warm.active_at[ending.key] == regions.us.warm.active_at[ending.key] == active_at
    with regions.serving_from(eu):
        states = [archive(eu.services, msgspec.convert(job, DueEntry)).state for job in eu.archive_queue.take()]
    assert states == ["active"]
    regions.settle()
    assert ending.read(eu) == ending.read(regions.us) == [late, ending.question]


def test_our_own_newest_message_counts_where_the_pulse_does_not_say_so(ending: Ending) -> None:
    """Of two pulses that were written at once the table keeps one: here another region's, with something earlier."""
    eu = ending.regions.eu
    earlier = eu.warm.active_at[ending.key]
    late = eu.message(ending.conversation, ending.question)
    eu.warm.active_at[ending.key] = earlier
    assert ending.archived() == ["active"]
    assert ending.read(eu) == [late, ending.question]


def test_a_message_whose_id_is_older_than_its_activity_keeps_the_conversation_as_long_as_any_other(
    regions: Regions,
) -> None:
    """A client offline has minted its id long before it could send it: the id alone tells nothing of the activity."""
    eu, us = regions.eu, regions.us
    conversation = eu.conversation(retention_days=1)
    question = eu.message(conversation)
    regions.settle()
    regions.clock.ms += DAY_MS // 2
    second = eu.message(conversation, question)
    regions.settle()
    queued = us.new_id()
    regions.clock.ms += DAY_MS // 2 + RETENTION_MARGIN_MS + 60_000
    third = us.message(conversation, second, message=queued)  # eu has not been given it yet
    said_ms = regions.clock.ms
    assert archived(regions) == ["active"]
    regions.settle()
    for hours in (11, 12):
        regions.clock.ms = said_ms + hours * 60 * 60_000 + RETENTION_MARGIN_MS
        assert archived(regions) in ([], ["active"])
        regions.settle()
    for house in (eu, us):
        shown = house.ok(PHONE, "message.list", conversation=conversation, leaf="all")["messages"]
        assert [message["id"] for message in shown] == sorted([question, second, third], reverse=True)
    regions.clock.ms = said_ms + END_MS + RETENTION_MARGIN_MS + 1_000
    assert archived(regions) == ["expired"]


def test_it_is_kept_through_a_partition_at_its_end(regions: Regions) -> None:
    eu, us = regions.eu, regions.us
    conversation = eu.conversation(retention_days=1)
    question = eu.message(conversation)
    regions.settle()
    queued = us.new_id()
    regions.clock.ms += DAY_MS - 60 * 60_000
    us.message(conversation, question, message=queued)
    us.warm.unavailable = True
    regions.clock.ms += 60 * 60_000 + RETENTION_MARGIN_MS + 2 * 60_000
    assert archived(regions) == ["ending"]
    us.warm.unavailable = False
    regions.settle()
    assert {house.say(PHONE, "conversation.get", conversation=conversation)["type"] for house in (eu, us)} == {
        "conversation.get.ok"
    }
    regions.clock.ms += RETENTION_AGAIN_MS + 1
    assert archived(regions) == ["active"]


def test_where_a_head_was_put_back_its_own_retention_counts(regions: Regions) -> None:
    eu, us = regions.eu, regions.us
    conversation = eu.conversation(retention_days=1)
    regions.clock.ms += 5
    us.evacuate(EU)
    us.ok(BOB, "conversation.create", conversation=conversation)
    regions.settle()
    regions.settle()
    us.evacuate()
    assert us.say(PHONE, "conversation.get", conversation=conversation)["type"] == "conversation.get.ok"
    regions.clock.ms += END_MS + RETENTION_MARGIN_MS + 1_000
    assert archived(regions) == ["expired"]


def test_a_region_that_cannot_be_asked_puts_it_off_and_what_it_knew_counts_afterwards(
    ending: Ending, counted: list[str]
) -> None:
    regions = ending.regions
    late = ending.say_in_us()
    regions.us.warm.unavailable = True
    assert ending.archived() == ["ending"]
    assert counted.count("RetentionsAwaited") == 1
    assert regions.eu.warm.gone == {}
    assert ending.due_ms == regions.clock.ms + RETENTION_AGAIN_MS
    assert ending.read(regions.eu) == "not_found", "to whoever asks here it has ended"
    assert ending.archived(RETENTION_AGAIN_MS) == ["ending"]
    regions.us.warm.unavailable = False
    assert ending.archived(RETENTION_AGAIN_MS) == ["active"]
    regions.settle()
    assert ending.read(regions.eu) == ending.read(regions.us) == [late, ending.question]


def test_what_no_region_knows_to_be_active_is_entombed_with_one_question_a_region(ending: Ending) -> None:
    eu = ending.regions.eu
    eu.others.asked.clear()
    assert ending.archived() == ["expired"]
    assert eu.others.asked == [(US, ending.conversation)]
    assert eu.warm.gone[ending.key].reason == "retention"


def test_the_archive_lets_what_was_under_way_at_the_end_come_in_first(ending: Ending) -> None:
    eu = ending.regions.eu
    eu.others.asked.clear()
    assert ending.archived(RETENTION_MARGIN_MS) == []
    entry = DueEntry(ending.key, eu.warm.due_at[ending.key])
    assert archive(eu.services, entry).state == "ending"
    assert eu.others.asked == []
    assert ending.archived(1_000) == ["expired"]


def test_an_id_ahead_of_our_clock_counts_as_now(ending: Ending) -> None:
    regions = ending.regions
    ahead = ids.mint(regions.clock.ms + ID_AHEAD_MS_MAX)
    regions.us.message(ending.conversation, ending.question, message=ahead)
    del regions.us.warm.active_at[ending.key]  # so that the id alone counts
    assert ending.archived(3_000) == []
    entry = DueEntry(ending.key, regions.eu.warm.due_at[ending.key])
    head = regions.eu.warm.read_head(ending.key)
    assert isinstance(head, Conversation)
    known = as_known_everywhere(regions.eu.services, ending.key, head)
    assert known.active_at == times.to_rfc3339(regions.clock.ms)
    assert archive(regions.eu.services, entry).state == "active"


@pytest.mark.parametrize("end", ["close", "sweep"])
def test_an_answer_is_not_dropped_where_another_region_knows_of_activity(ending: Ending, end: str) -> None:
    regions = ending.regions
    eu = regions.eu
    place = eu.stream(ending.conversation, ending.question)
    ending.say_in_us()
    regions.clock.ms += 2_000 + LEASE_MS
    regions.us.warm.unavailable = True
    if end == "close":
        assert eu.say(WORKER, "stream.close", status="complete", **place)["code"] == "unavailable"
    else:
        eu.sweep()
    assert [live.stream for live in eu.hot.live(ending.key)] == [place["stream"]], "nothing is decided yet"
    regions.us.warm.unavailable = False
    if end == "close":
        eu.ok(WORKER, "stream.close", status="complete", **place)
    else:
        regions.clock.ms += LEASE_MS
        eu.sweep()
    regions.settle()
    assert place["stream"] in ending.read(regions.us)
    assert ending.read(regions.us) == ending.read(eu)


def test_a_pulse_of_another_region_that_has_come_needs_nobody_to_be_asked(ending: Ending) -> None:
    regions = ending.regions
    ending.say_in_us()
    regions.replicate(lambda sort_key: sort_key == SORT_PULSE)
    regions.eu.others.asked.clear()
    assert ending.archived() == ["active"]
    assert regions.eu.others.asked == []
