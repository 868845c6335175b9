"""Producers are killed, 50 times for real: nothing acknowledged is lost, doubled, or written by the dead."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

import pytest

from local.keys import SigningKey
from local.state import Address
from tests.support.gateway import Faults
from tests.support.gateway.deployment import Deployment, deployed
from tests.support.killing import producing
from tests.support.killing.runs import killed_run
from tests.support.killing.tier import CountingHot, hot_tier
from threadkeep.domain.json_values import encode
from threadkeep.domain.model import ConversationKey, StoredMessage
from threadkeep.domain.streams import Limits
from threadkeep.usecases.sweeping import sweep
from threadkeep_client.client import Client
from threadkeep_client.ids import new_id
from threadkeep_client.ops import Assembly
from threadkeep_client.reading import read_page
from threadkeep_client.wire import text_of

POINTS: Final = range(50)
"""After how many acknowledged pieces a run is killed; each is one of the 50."""
TAKEN_OVER: Final = POINTS[::2]
SWEPT: Final = POINTS[1::2]
AT_ONCE: Final = 2
LATE: Final = Faults(seed=1, delay_request=0.3, delay_ms_max=150.0)
"""Appends of the dead arrive when it is dead, and its successor may have opened."""
LEASE: Final = Limits(lease_ms=1_000)
SUCCESSOR: Final = tuple(f"[heir {number}]" for number in range(3))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dead:
    """A run that was killed.

    Attributes:
        epoch: in which it wrote.
        told: the pieces that it knew to be acknowledged, in order.
    """

    conversation: str
    question: str
    answer: str
    epoch: int
    told: list[str]

    @property
    def possible(self) -> tuple[str, ...]:
        """What may stand of it: all that was acknowledged, and the one piece that may have been on its way."""
        said = "".join(self.told)
        assert said == "".join(producing.piece(number) for number in range(len(self.told)))
        return said, said + producing.piece(len(self.told))


@pytest.fixture(scope="module")
def key() -> SigningKey:
    return SigningKey.generate()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Service:
    """The service on a real Valkey, a user and a worker."""

    deployment: Deployment
    hot: CountingHot
    asker: Client
    worker: Client

    async def killed(self, point: int) -> Dead:
        """A question, and a run that is killed while it answers."""
        conversation = (await self.asker.create_conversation())["id"]
        question = (await self.asker.create_message(conversation, "Why?", parent=None))["id"]
        answer = new_id(after=question)
        token = self.deployment.key.mint_token(sub="worker", tenant="acme", scope=["produce"])
        epoch, told = await killed_run(
            self.deployment.gateway.url,
            token,
            conversation,
            question,
            answer,
            after=point,
            delay_s=point * 7 % 11 / 1_000,
        )
        assert len(told) >= point
        return Dead(conversation=conversation, question=question, answer=answer, epoch=epoch, told=told)

    def stored(self, dead: Dead) -> StoredMessage | None:
        """The answer as the table has it."""
        return self.deployment.services.warm.read_message(ConversationKey("acme", dead.conversation), dead.answer)


@asynccontextmanager
async def serving(address: Address, key: SigningKey, limits: Limits | None = None) -> AsyncIterator[Service]:
    """The service, and two clients of it."""
    with hot_tier(address, limits) as hot:
        async with (
            deployed(hot, key, faults=LATE) as deployment,
            deployment.client() as asker,
            deployment.client("produce", "worker") as worker,
        ):
            yield Service(deployment=deployment, hot=hot, asker=asker, worker=worker)


async def test_a_successor_goes_on_from_all_that_was_acknowledged(valkey_single: Address, key: SigningKey) -> None:
    async with serving(valkey_single, key) as service:

        async def one(point: int) -> None:
            dead = await service.killed(point)
            epoch, kept = await take_over(service.worker, dead)
            assert epoch > dead.epoch
            assert kept in dead.possible
            # Late appends of the dead have come by now: the gateway lets go of none that it has read.
            await service.deployment.gateway.settle()
            stored = service.stored(dead)
            assert stored is not None
            assert (stored.epoch, stored.message.status) == (epoch, "complete")
            assert json.loads(encode(stored.message.parts)) == [{"type": "text", "text": kept + "".join(SUCCESSOR)}]

        assert await each_of(TAKEN_OVER, one) == 25
        assert service.hot.verdicts["Fenced"] > 0, "no append of a dead run came late: the test was blind"


async def test_the_sweeper_keeps_all_that_was_acknowledged(valkey_single: Address, key: SigningKey) -> None:
    async with serving(valkey_single, key, LEASE) as service:
        killed: list[Dead] = []

        async def one(point: int) -> None:
            killed.append(await service.killed(point))

        assert await each_of(SWEPT, one) == 25
        async with asyncio.timeout(20):
            while not all(service.stored(dead) for dead in killed):
                await asyncio.to_thread(sweep, service.deployment.services)
                await asyncio.sleep(0.05)
        for dead in killed:
            stored = service.stored(dead)
            assert stored is not None
            assert (stored.epoch, stored.message.status) == (dead.epoch, "interrupted")
            assert text_of(json.loads(encode(stored.message.parts))) in dead.possible


def test_the_points_are_50() -> None:
    assert len({*TAKEN_OVER, *SWEPT}) == 50


async def each_of(points: range, one: Callable[[int], Awaitable[None]]) -> int:
    """Do it for each point, two at a time; how many were done."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def in_turn(point: int) -> None:
        async with slots:
            await one(point)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(in_turn(point)) for point in points]
    return len(tasks)


async def take_over(worker: Client, dead: Dead) -> tuple[int, str]:
    """Open as another run, read the log that was kept, go on and close; the epoch, and what was kept."""
    request = worker.connection.request
    opened = await request(
        "stream.open",
        conversation=dead.conversation,
        message=dead.answer,
        parent=dead.question,
        role="assistant",
        producer=str(uuid.uuid4()),
        takeover=True,
    )
    place = {"conversation": dead.conversation, "stream": dead.answer, "epoch": opened["epoch"]}
    kept = await read_log(worker, dead, opened["epoch"], opened["offset"])
    offset = opened["offset"]
    for piece in SUCCESSOR:
        reply = await request("stream.append", **place, offset=offset, ops=[["text", 0, piece]])
        offset = reply["offset"]
    await request("stream.close", **place, offset=offset, status="complete")
    return opened["epoch"], kept


async def read_log(worker: Client, dead: Dead, epoch: int, offset: int) -> str:
    """What stands before a place of a stream."""
    assembly, at = Assembly(), 0
    while at < offset:
        page = await read_page(worker.connection, dead.conversation, dead.answer, epoch=epoch, offset=at)
        assert (page.epoch, page.at) == (epoch, at)
        assembly.apply(page.ops)
        at = page.following
    assert at == offset
    return text_of(assembly.parts)
