"""Cases of two regions that write at once, over a table of which the later writer of an item wins as a whole."""

from __future__ import annotations

import pytest

from tests.support.house import LAPTOP, PHONE, WORKER
from tests.support.regions import Regions, regions

__all__ = ["regions"]


@pytest.mark.parametrize("renames_first", [True, False])
def test_a55_of_a_rename_in_one_region_and_a_message_in_another_at_once_neither_is_lost(
    regions: Regions, *, renames_first: bool
) -> None:
    """Two regions change different attributes of one item, and the later one's item replaces the other's change."""
    eu, us = regions.eu, regions.us
    conversation = eu.conversation(title="before", metadata={"kept": 1})
    regions.replicate()
    regions.clock.ms += 120_000  # so that the message moves the activity too

    def rename() -> None:
        eu.ok(PHONE, "conversation.update", conversation=conversation, title="after")

    def append() -> None:
        messages.append(us.message(conversation, by=LAPTOP))

    messages: list[str] = []
    for write in (rename, append) if renames_first else (append, rename):
        write()
    regions.clock.ms += 1_000  # the lag: neither region has heard of the other till here
    regions.replicate()
    for house in (eu, us):
        got = house.ok(PHONE, "conversation.get", conversation=conversation)["conversation"]
        assert (got["title"], got["metadata"]) == ("after", {"kept": 1})
        assert got["active_at"] > got["created_at"]
        page = house.ok(PHONE, "message.list", conversation=conversation, leaf="all")
        assert [message["id"] for message in page["messages"]] == messages


def test_a55_nor_is_any_of_what_two_regions_write_at_once(regions: Regions) -> None:
    """An item that both regions write: the register of live streams, the list of messages, the receipt."""
    eu, us = regions.eu, regions.us
    conversation = eu.conversation()
    question = eu.message(conversation)
    regions.replicate()
    sent = [house.message(conversation, question, by=device) for house, device in ((eu, PHONE), (us, LAPTOP))]
    places = [house.stream(conversation, question, fork=True) for house in (eu, us)]
    regions.replicate()
    for house in (eu, us):
        live = house.ok(PHONE, "conversation.subscribe", conversation=conversation)["live"]
        assert {stream["stream"] for stream in live} == {place["stream"] for place in places}
    for house, place in zip((eu, us), places, strict=True):
        house.ok(WORKER, "stream.close", **place, status="complete")
    regions.replicate()
    for house in (eu, us):
        page = house.ok(PHONE, "message.list", conversation=conversation, leaf="all")
        answers = [place["stream"] for place in places]
        assert sorted(message["id"] for message in page["messages"]) == sorted([question, *sent, *answers])
        assert house.ok(PHONE, "conversation.subscribe", conversation=conversation)["live"] == []
    for house in (eu, us):
        house.say(PHONE, "conversation.delete", conversation=conversation)
    regions.settle()
    regions.clock.ms = eu.warm.gone[eu.key(conversation)].second_pass_ms
    for _ in range(2):
        regions.settle()
    lines = [house.ok(PHONE, "erasure.get", erasure=conversation)["erasure"]["lines"] for house in (eu, us)]
    assert lines[0] == lines[1]
    assert {line["state"] for line in lines[0]} == {"done"}
