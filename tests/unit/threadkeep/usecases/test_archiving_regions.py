"""The archive where another region notes activity: it runs at home, and hears of that a moment later."""

from __future__ import annotations

from typing import Final

import msgspec

from tests.support.house import PHONE
from tests.support.regions import Regions, regions
from threadkeep.domain import times
from threadkeep.ports import DueEntry
from threadkeep.usecases.archiving import archive
from threadkeep.usecases.planning import plan

__all__ = ["regions"]

HOUR_MS: Final = 60 * 60_000
DAY_MS: Final = 24 * HOUR_MS


def archived(regions: Regions) -> list[str]:
    """Let home's archive run; what became of what had fallen due."""
    eu = regions.eu
    with regions.serving_from(eu):
        plan(eu.services, days_back=3)
        return [archive(eu.services, msgspec.convert(job, DueEntry)).state for job in eu.archive_queue.take()]


def test_what_another_region_was_told_while_home_archived_stays_where_readers_look_for_it(regions: Regions) -> None:
    """Whoever comes back after a month is served by us; home has not heard of it, and files the conversation anew."""
    eu, us = regions.eu, regions.us
    conversation = eu.conversation()
    first = eu.message(conversation, text="a month ago")
    regions.settle()
    regions.clock.ms += 31 * DAY_MS + 2 * HOUR_MS
    back = us.message(conversation, first, text="I am back")
    said_ms = regions.clock.ms
    archived(regions)
    regions.settle()
    key = eu.key(conversation)
    assert eu.warm.active_at[key] == us.warm.active_at[key] == times.to_rfc3339(said_ms)
    for _ in range(4):
        regions.clock.ms += HOUR_MS + 5 * 60_000
        archived(regions)
        regions.settle()
    for house in (eu, us):
        assert back in house.warm.messages[key]
        house.lose_hot()
        house.ok(PHONE, "stream.resume", conversation=conversation, stream=back, epoch=0, offset=0)
        sent = house.ok(
            PHONE,
            "message.create",
            conversation=conversation,
            message=back,
            parent=first,
            role="user",
            parts=[{"type": "text", "text": "I am back"}],
        )
        assert sent["duplicate"] is True
