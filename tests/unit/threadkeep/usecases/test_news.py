"""News of another region: whoever wrote, those who watch here are told, and the hot tier has it."""

from __future__ import annotations

import pytest

from tests.support.house import LAPTOP, PHONE, WORKER, Frame
from tests.support.regions import EU, US, Regions, endpoint, regions
from threadkeep.domain.bounds import PULSE_EVERY_MS
from threadkeep.domain.tail import Tail

__all__ = ["regions"]

HOUR_MS = 60 * 60_000


@pytest.fixture
def conversation(regions: Regions) -> str:
    """A conversation that both regions know, with a phone that watches in one and a laptop that does in the other."""
    made = regions.eu.conversation()
    regions.settle()
    regions.eu.ok(PHONE, "conversation.subscribe", conversation=made)
    regions.us.ok(LAPTOP, "conversation.subscribe", conversation=made)
    return made


def told(regions: Regions) -> tuple[list[Frame], list[Frame]]:
    """What the phone (in eu) and the laptop (in us) were told."""
    return regions.eu.frames(PHONE), regions.us.frames(LAPTOP)


def test_a_message_of_another_region_is_told_here_and_is_in_the_tail_and_the_leaf(
    regions: Regions, conversation: str
) -> None:
    question = regions.eu.message(conversation)
    regions.settle()
    (own,), (news,) = told(regions)
    assert own == news
    assert (news["type"], news["message"]["id"]) == ("message.created", question)
    page = regions.us.ok(LAPTOP, "message.list", conversation=conversation)
    assert [message["id"] for message in page["messages"]] == [question]
    assert page["tier"] == "hot"
    reply = regions.us.say(
        LAPTOP,
        "message.create",
        conversation=conversation,
        message=regions.us.new_id(),
        parent=None,
        role="user",
        parts=[],
    )
    assert (reply["reason"], reply["detail"]["leaf"]) == ("stale_leaf", question)


def test_what_a_region_wrote_itself_it_is_not_told_again(regions: Regions, conversation: str) -> None:
    regions.eu.message(conversation)
    regions.eu.stream(
        conversation, regions.eu.message(conversation, regions.eu.message(conversation, fork=True), fork=True)
    )
    regions.eu.ok(PHONE, "conversation.update", conversation=conversation, title="one")
    before = len(regions.eu.frames(PHONE))
    regions.settle()
    assert len(regions.eu.frames(PHONE)) == before


def test_news_that_comes_late_is_kept_no_longer_than_its_conversation(regions: Regions) -> None:
    made = regions.eu.conversation(retention_days=1)
    question = regions.eu.message(made)
    regions.replicate()
    regions.us.ok(PHONE, "message.list", conversation=made)  # it knows whose it is
    late = list(regions.us.records)
    regions.clock.ms += 3 * HOUR_MS
    regions.announce(regions.us)
    page = regions.us.ok(PHONE, "message.list", conversation=made)
    assert [message["id"] for message in page["messages"]] == [question]
    regions.clock.ms += 21 * HOUR_MS + PULSE_EVERY_MS
    for action in ("conversation.get", "message.list", "context.read"):
        assert regions.us.say(PHONE, action, conversation=made)["code"] == "not_found"
    regions.us.records = late
    regions.announce(regions.us)
    tail = regions.us.hot.read_tail(regions.us.key(made), limit=1)
    assert isinstance(tail, Tail)
    assert tail.messages == ()


def test_told_twice_it_does_no_harm(regions: Regions, conversation: str) -> None:
    question = regions.eu.message(conversation)
    regions.replicate()
    again = list(regions.us.records)
    regions.announce(regions.us)
    regions.us.records = again
    regions.announce(regions.us)
    page = regions.us.ok(LAPTOP, "message.list", conversation=conversation)
    assert [message["id"] for message in page["messages"]] == [question]


def test_a_new_title_is_told_as_a_whole(regions: Regions, conversation: str) -> None:
    updated = regions.eu.ok(PHONE, "conversation.update", conversation=conversation, title="one")["conversation"]
    regions.settle()
    _, (news,) = told(regions)
    assert news == {"type": "conversation.updated", "conversation": updated}


def test_a_stream_that_begins_elsewhere_is_told_with_where_to_follow_it(regions: Regions, conversation: str) -> None:
    question = regions.eu.message(conversation)
    place = regions.eu.stream(conversation, question)
    regions.settle()
    own, news = told(regions)
    opened = [frame for frame in news if frame["type"] == "stream.opened"]
    assert opened == [
        {
            "type": "stream.opened",
            "conversation": conversation,
            "stream": place["stream"],
            "epoch": place["epoch"],
            "parent": question,
            "role": "assistant",
            "region": EU,
            "endpoint": endpoint(EU),
        }
    ]
    assert [set(frame) for frame in own if frame["type"] == "stream.opened"] == [set(opened[0]) - {"endpoint"}]


def test_each_stream_is_told_when_it_begins_and_not_when_another_one_does(regions: Regions, conversation: str) -> None:
    question = regions.eu.message(conversation)
    streams = []
    for _ in range(2):
        streams.append(regions.eu.stream(conversation, question, fork=True)["stream"])
        regions.settle()
    opened = [frame["stream"] for frame in regions.us.frames(LAPTOP) if frame["type"] == "stream.opened"]
    assert opened == streams


def test_nobody_is_sent_to_an_evacuated_region(regions: Regions, conversation: str) -> None:
    regions.us.evacuate(EU)
    regions.eu.stream(conversation, regions.eu.message(conversation))
    regions.settle()
    assert "stream.opened" not in {frame["type"] for frame in regions.us.frames(LAPTOP)}


def test_the_message_of_a_stream_that_lives_here_too_ends_it(regions: Regions, conversation: str) -> None:
    question = regions.eu.message(conversation)
    regions.settle()
    stream = regions.eu.new_id()
    places = [house.stream(conversation, question, message=stream) for house in (regions.eu, regions.us)]
    regions.eu.ok(WORKER, "stream.close", **places[0], status="complete")
    regions.settle()
    assert regions.us.hot.live(regions.us.key(conversation)) == ()
    late = regions.us.say(WORKER, "stream.append", **places[1], ops=[])
    assert late["code"] == "not_found"
    again = regions.us.say(
        WORKER,
        "stream.open",
        conversation=conversation,
        message=stream,
        parent=question,
        role="assistant",
        producer="run-1",
        epoch=places[1]["epoch"],
    )
    assert again["code"] == "closed"


# --- deleted --------------------------------------------------------------------------------------------------


def test_a_deletion_is_told_everywhere_and_its_receipt_has_a_line_of_each_region(
    regions: Regions, conversation: str
) -> None:
    regions.us.message(conversation)
    regions.settle()
    deleted = regions.us.ok(LAPTOP, "conversation.delete", conversation=conversation)["erasure"]
    assert {(line["region"], line["store"]) for line in deleted["lines"]} == {
        (EU, "hot"),
        (EU, "objects"),
        (EU, "table"),
        (US, "hot"),
        (US, "objects"),
    }
    regions.settle()
    assert "conversation.deleted" in {frame["type"] for frame in regions.eu.frames(PHONE)}
    for house in (regions.eu, regions.us):
        assert house.say(PHONE, "message.list", conversation=conversation)["code"] == "not_found"
        assert house.hot._conversations[house.key(conversation)].is_buried
    regions.clock.ms = regions.us.warm.gone[regions.us.key(conversation)].second_pass_ms
    for _ in range(2):
        regions.settle()
    for house in (regions.eu, regions.us):
        erasure = house.ok(PHONE, "erasure.get", erasure=conversation)["erasure"]
        assert erasure["state"] == "done", erasure


def test_what_lands_beside_a_tombstone_is_told_to_nobody(regions: Regions, conversation: str) -> None:
    regions.eu.message(conversation)
    regions.us.ok(LAPTOP, "conversation.delete", conversation=conversation)
    regions.announce(regions.us)
    before = len(regions.us.frames(LAPTOP))
    regions.settle()
    assert len(regions.us.frames(LAPTOP)) == before
    assert not regions.us.hot._conversations[regions.us.key(conversation)].tail
