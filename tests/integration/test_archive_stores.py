"""The archive on the APIs of DynamoDB and S3, in two regions: what it costs, and a region that loses what it had."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import msgspec
import pytest

from tests.support.buckets import ELSEWHERE, HOME, REGIONS, Calls, S3Peek, moto_buckets
from tests.support.conversations import message, text_parts
from tests.support.house import PHONE, Frame, House, house
from tests.support.moto_table import TABLE, moto_clients
from threadkeep.domain.bounds import ARCHIVE_LEASE_MS, ARCHIVE_SETTLE_MS, FRAME_BYTES_MAX
from threadkeep.domain.erasure import Terms
from threadkeep.domain.errors import WarmUnavailable
from threadkeep.domain.model import StoredMessage
from threadkeep.ports import DueEntry
from threadkeep.stores.bodies_s3 import BodiesS3
from threadkeep.stores.cold_s3 import ColdS3
from threadkeep.stores.due_dynamodb import DueDynamoDB
from threadkeep.stores.erasures_dynamodb import ErasuresDynamoDB
from threadkeep.stores.manifests_dynamodb import ManifestsDynamoDB
from threadkeep.stores.warm_dynamodb import WarmDynamoDB
from threadkeep.usecases.archiving import Outcome, archive
from threadkeep.usecases.planning import plan

__all__ = ["house"]

DAY_MS = 24 * 60 * 60 * 1_000


class Regions:
    """A house whose table and buckets are moto's."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.peeks: dict[str, S3Peek] = {}

    def archive(self) -> Outcome:
        """What has fallen due is planned and archived; it is one conversation."""
        assert plan(self.house.services, days_back=1).queued == 1
        (job,) = self.house.archive_queue.take()
        return archive(self.house.services, msgspec.convert(job, DueEntry))

    def history(self, conversation: str) -> list[Frame]:
        """All messages, newest first, read past the hot tier."""
        self.house.lose_hot()
        found: list[Frame] = []
        cursor: str | None = None
        while True:
            more = {} if cursor is None else {"cursor": cursor}
            page = self.house.ok(PHONE, "message.list", conversation=conversation, limit=100, **more)
            found += page["messages"]
            cursor = page["cursor"]
            if cursor is None:
                return found


@pytest.fixture
def regions(house: House) -> Iterator[Regions]:
    with moto_clients() as (table, _):
        buckets = moto_buckets()
        house.replace(
            warm=WarmDynamoDB(table, TABLE, BodiesS3(buckets, HOME), sleep=lambda _: None),
            manifests=ManifestsDynamoDB(table, TABLE, sleep=lambda _: None),
            due=DueDynamoDB(table, TABLE),
            erasures=ErasuresDynamoDB(table, TABLE, sleep=lambda _: None),
            cold=ColdS3(buckets, HOME),
            terms=Terms(regions=REGIONS),
        )
        made = Regions(house)
        made.peeks = {region: S3Peek(bucket) for region, bucket in buckets.items()}
        yield made


def talk(house: House, turns: int) -> str:
    """A conversation of so many messages, one after the other, put where requests put them; its id."""
    conversation = house.conversation()
    key = house.key(conversation)
    parent: str | None = None
    for number in range(turns):
        said = message(key, text_parts(f"number {number}"), id=house.new_id(), parent=parent)
        assert house.services.warm.put_message(key.tenant, StoredMessage(said)) is None
        parent = said.id
    return conversation


def test_two_hundred_messages_take_one_put_in_each_region(regions: Regions) -> None:
    conversation = talk(regions.house, 200)
    said = regions.history(conversation)
    calls: dict[str, Calls] = {}
    with ExitStack() as counting:
        for region, peek in regions.peeks.items():
            calls[region] = counting.enter_context(peek.counted())
        regions.house.clock.ms += 31 * DAY_MS + 1
        first = regions.archive()
        regions.house.clock.ms += ARCHIVE_SETTLE_MS
        second = regions.archive()
    assert (first.state, first.segments, first.archived) == ("settling", 1, 200)
    assert (second.state, second.segments, second.removed) == ("cold", 0, 200)
    assert {region: made.puts for region, made in calls.items()} == dict.fromkeys(REGIONS, 1)
    assert sum(made.puts for made in calls.values()) <= 0.01 * 200
    assert regions.house.services.warm.newest_id(regions.house.key(conversation)) is None
    assert regions.history(conversation) == said
    assert plan(regions.house.services, days_back=40).queued == 0


@pytest.mark.parametrize("lost", [HOME, ELSEWHERE])
def test_nothing_leaves_the_table_before_a_region_has_back_what_it_lost(regions: Regions, lost: str) -> None:
    conversation = talk(regions.house, 3)
    key = regions.house.key(conversation)
    tip = regions.history(conversation)[0]["id"]
    regions.house.message(conversation, tip, "x" * (FRAME_BYTES_MAX - 2_000))
    said = regions.history(conversation)
    regions.house.clock.ms += 31 * DAY_MS + 1
    regions.archive()
    kept = {name: regions.peeks[lost].get(name) for name in regions.peeks[lost].listed()}
    for name in kept:
        regions.peeks[lost].delete(name)
    regions.house.clock.ms += ARCHIVE_SETTLE_MS
    with regions.peeks[lost].away(), pytest.raises(WarmUnavailable):
        regions.archive()
    assert regions.house.services.warm.newest_id(key) == said[0]["id"]
    assert regions.history(conversation) == said
    regions.house.clock.ms += ARCHIVE_LEASE_MS
    assert regions.archive().state == "cold"
    assert {name: regions.peeks[lost].get(name) for name in regions.peeks[lost].listed()} == kept
    assert regions.history(conversation) == said
