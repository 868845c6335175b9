"""The client of a deployment with several regions: it goes where an answer is streamed, and nowhere else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from tests.support.house import LAPTOP, PHONE, WORKER, Device
from tests.support.regions import EU, US, RegionHouse, Regions, regions
from tests.support.served_house import in_virtual_time, now
from tests.support.served_regions import LAG_S, RegionServer, ServedRegions, served
from tests.unit.client.said import PIECES, TEXT
from tests.unit.client.watching import Told
from threadkeep_client import Client, NotFoundError, Producer, UnavailableError, Viewer, new_id, text_of
from threadkeep_client.connection import Connection
from threadkeep_client.errors import ConnectionFailedError
from threadkeep_client.regions import Regions as Connections

__all__ = ["regions"]


class Watch(Told):
    """Keeps what a viewer tells, in a task of its own."""

    def __init__(self, viewer: Viewer) -> None:
        super().__init__()
        self.viewer = viewer
        self.at: list[float] = []
        self._moved = asyncio.Condition()

    async def run(self) -> None:
        async for update in self.viewer:
            async with self._moved:
                self.updates.append(update)
                self.at.append(now())
                self._moved.notify_all()

    async def until(self, reached: Callable[[], bool], patience_s: float = 300) -> None:
        async with asyncio.timeout(patience_s), self._moved:
            await self._moved.wait_for(reached)

    async def until_text(self, text: str) -> None:
        await self.until(lambda: self.streamed() == text)

    async def until_settled(self) -> None:
        await self.until(lambda: self.kinds[-1:] == ["settled"])


class Scene:
    """A conversation of the phone in EU, with a question that both regions have."""

    def __init__(self, world: ServedRegions, clients: AsyncExitStack) -> None:
        self.world = world
        self._clients = clients

    async def begin(self) -> None:
        self.phone = await self.connect(self.world.eu, PHONE)
        self.conversation = (await self.phone.create_conversation())["id"]
        self.question = (await self.phone.create_message(self.conversation, "Which?", parent=None))["id"]
        await asyncio.sleep(2 * LAG_S)

    async def connect(self, server: RegionServer, device: Device) -> Client:
        return await self._clients.enter_async_context(server.client(device))

    def answer(self, worker: Client, **more: object) -> Producer:
        return worker.produce(self.conversation, parent=self.question, **more)  # type: ignore[arg-type]

    @asynccontextmanager
    async def watching(self, client: Client, **more: str) -> AsyncIterator[Watch]:
        async with client.watch(self.conversation, **more) as viewer, asyncio.TaskGroup() as tasks:  # type: ignore[arg-type]
            watch = Watch(viewer)
            watching = tasks.create_task(watch.run())
            yield watch
            watching.cancel()


def in_two_regions(test: Callable[[Scene], Awaitable[None]]) -> Callable[[Regions], None]:
    """The test plays in two served regions, in virtual time."""

    @in_virtual_time
    async def play(regions: Regions) -> None:
        async with served(regions) as world, AsyncExitStack() as clients:
            scene = Scene(world, clients)
            await scene.begin()
            await test(scene)

    def run(regions: Regions) -> None:
        play(regions)

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


async def say(answer: Producer, pieces: list[str]) -> None:
    for piece in pieces:
        await answer.text(piece)
        await answer.flush()
        await asyncio.sleep(0.3)


def has_message(server: RegionServer, conversation: str, message: str) -> bool:
    house = server.house
    return house.warm.read_message(house.key(conversation), message) is not None


# --- a viewer ------------------------------------------------------------------------------------------------------


@in_two_regions
async def test_an_answer_of_another_region_grows_here_as_it_is_written_there(scene: Scene) -> None:
    eu, us = scene.world.eu, scene.world.us
    worker = await scene.connect(us, WORKER)
    async with scene.watching(scene.phone) as watch, scene.answer(worker) as answer:
        await asyncio.sleep(2 * LAG_S)
        await say(answer, PIECES)
        assert watch.streamed() == TEXT
        assert len(us.connections(PHONE)) == 1
        await answer.close()
        await watch.until_settled()
        assert has_message(eu, scene.conversation, answer.id)
        await asyncio.sleep(1)
        assert us.connections(PHONE) == []
    assert watch.kinds == ["opened", "delta", "settled"]
    assert watch.settled() == TEXT
    assert us.most == 1


@in_two_regions
async def test_what_has_settled_is_told_when_it_can_be_read_here(scene: Scene) -> None:
    """The region that streams it tells its end at once; here nobody could read it yet."""
    eu, us = scene.world.eu, scene.world.us
    worker = await scene.connect(us, WORKER)
    async with scene.watching(scene.phone) as watch, scene.answer(worker) as answer:
        await asyncio.sleep(2 * LAG_S)
        await say(answer, PIECES[:1])
        await answer.close()
        assert not has_message(eu, scene.conversation, answer.id)
        assert watch.kinds == ["opened", "delta"]
        await watch.until_settled()
        assert has_message(eu, scene.conversation, answer.id)


@in_two_regions
async def test_who_comes_late_reads_there_from_the_start(scene: Scene) -> None:
    us = scene.world.us
    worker = await scene.connect(us, WORKER)
    async with scene.answer(worker) as answer:
        await say(answer, PIECES[:4])
        async with scene.watching(scene.phone) as watch:
            await watch.until_text("".join(PIECES[:4]))
            await say(answer, PIECES[4:])
            await answer.close()
            await watch.until_settled()
    assert watch.kinds == ["opened", "delta", "settled"]
    assert watch.streamed() == watch.settled() == TEXT


@in_two_regions
async def test_one_answer_alone_is_watched_where_it_is_streamed(scene: Scene) -> None:
    us = scene.world.us
    worker = await scene.connect(us, WORKER)
    answer = scene.answer(worker)
    async with answer:
        await say(answer, PIECES[:2])
        async with scene.phone.watch(scene.conversation, stream=answer.id) as viewer:
            watch = Watch(viewer)
            watching = asyncio.create_task(watch.run())
            await watch.until_text("".join(PIECES[:2]))
            await say(answer, PIECES[2:])
            await answer.close()
            await watching
    await asyncio.sleep(1)
    assert watch.streamed() == watch.settled() == TEXT
    assert us.connections(PHONE) == []


@in_two_regions
async def test_viewers_of_one_client_share_the_connection(scene: Scene) -> None:
    us = scene.world.us
    worker = await scene.connect(us, WORKER)
    async with scene.answer(worker) as answer, scene.watching(scene.phone) as one, scene.watching(scene.phone) as two:
        await asyncio.sleep(2 * LAG_S)
        await say(answer, PIECES)
        assert len(us.connections(PHONE)) == 1
        await answer.close()
        await one.until_settled()
        await two.until_settled()
    assert one.streamed() == two.streamed() == TEXT
    assert us.most == 1


@in_two_regions
async def test_answers_of_both_regions_at_once(scene: Scene) -> None:
    eu, us = scene.world.eu, scene.world.us
    here, there = await scene.connect(eu, WORKER), await scene.connect(us, WORKER)
    async with scene.watching(scene.phone) as watch:
        async with scene.answer(here) as one, scene.answer(there) as two:
            await asyncio.sleep(2 * LAG_S)
            await asyncio.gather(say(one, PIECES), say(two, PIECES))
            texts = {update.id: update.answer.text for update in watch.updates if update.answer}
            assert texts == {one.id: TEXT, two.id: TEXT}
        await watch.until(lambda: [update.kind for update in watch.updates].count("settled") == 2)


@in_two_regions
async def test_a_region_that_is_away_costs_the_growing_and_not_the_message(scene: Scene) -> None:
    us = scene.world.us
    worker = await scene.connect(us, WORKER)
    async with scene.watching(scene.phone) as watch:
        answer = await scene.answer(worker).open()
        await asyncio.sleep(2 * LAG_S)
        await say(answer, PIECES[:3])
        us.go_away()
        knocks = len(us.knocks)
        await asyncio.sleep(60)
        assert watch.kinds == ["opened", "delta"]
        assert watch.streamed() == "".join(PIECES[:3])
        assert 3 <= len(us.knocks) - knocks <= 40
        await answer.abandon()
        us.house.clock.ms += 60_000
        assert isinstance(us.house, RegionHouse)
        us.house.sweep()  # as of a region that its clients alone cannot reach
        scene.world.spread(us)
        await watch.until_settled()
        assert us.connections(PHONE) == []
    assert watch.settled() == "".join(PIECES[:3])


@in_two_regions
async def test_a_region_that_was_never_reached_costs_no_more(scene: Scene) -> None:
    us = scene.world.us
    house = us.house
    us.go_away()
    async with scene.watching(scene.phone) as watch:
        opened = house.stream(scene.conversation, scene.question)
        scene.world.spread(us)
        await watch.until(lambda: watch.kinds == ["opened"])
        await asyncio.sleep(50)
        assert 3 <= len(us.knocks) <= 40
        place = {name: opened[name] for name in ("conversation", "stream", "epoch")}
        house.ok(WORKER, "stream.append", ops=[["text", 0, TEXT]], offset=0, **place)
        house.ok(WORKER, "stream.close", status="complete", offset=1, **place)
        scene.world.spread(us)
        await watch.until_settled()
    assert watch.kinds == ["opened", "settled"]
    assert watch.settled() == TEXT


@in_two_regions
async def test_when_the_region_is_back_nothing_is_missing(scene: Scene) -> None:
    us = scene.world.us
    worker = await scene.connect(us, WORKER)
    async with scene.watching(scene.phone) as watch, scene.answer(worker) as answer:
        await asyncio.sleep(2 * LAG_S)
        await say(answer, PIECES[:2])
        us.go_away()
        for piece in PIECES[2:]:
            await answer.text(piece)
        await asyncio.sleep(5)  # less than the stream's lease
        us.come_back()
        await watch.until_text(TEXT)
        await answer.close()
        await watch.until_settled()
    assert watch.kinds == ["opened", "delta", "settled"]
    assert us.most == 1


# --- a producer ----------------------------------------------------------------------------------------------------


def lead_to(client: Client, server: RegionServer) -> None:
    """The name that the client connects to leads to another region from now on."""
    client.connection.url = server.url
    client.connection.cut()


@in_two_regions
async def test_a_producer_that_comes_to_another_region_goes_back_and_goes_on(scene: Scene) -> None:
    eu, us = scene.world.eu, scene.world.us
    worker = await scene.connect(us, WORKER)
    async with scene.answer(worker) as answer:
        await say(answer, PIECES[:3])
        await asyncio.sleep(2 * LAG_S)
        epoch = answer.epoch
        lead_to(worker, eu)
        await say(answer, PIECES[3:])
        assert (answer.epoch, len(us.asked("stream.open"))) == (epoch, 1)
        assert len(us.connections(WORKER)) == 1
    assert answer.outcome is not None
    assert answer.outcome.message is not None
    assert text_of(answer.outcome.message["parts"]) == TEXT
    assert us.connections(WORKER) == []


@in_two_regions
async def test_an_opening_is_sent_where_the_stream_lives(scene: Scene) -> None:
    """A run that the platform started again, with the name leading elsewhere by then."""
    eu, us = scene.world.eu, scene.world.us
    there, here = await scene.connect(us, WORKER), await scene.connect(eu, WORKER)
    first = await scene.answer(there).open()
    await say(first, PIECES[:2])
    await first.abandon()
    await asyncio.sleep(2 * LAG_S)
    again = scene.answer(here, message=first.id)
    again._writer._opening["producer"] = first._writer._opening["producer"]
    await again.open()
    assert again.epoch == first.epoch
    assert eu.told("stream.opened") == []
    await again.abandon()


@in_two_regions
async def test_a_producer_waits_for_the_region_that_has_its_stream(scene: Scene) -> None:
    eu, us = scene.world.eu, scene.world.us
    worker = await scene.connect(us, WORKER)
    async with scene.answer(worker) as answer:
        await say(answer, PIECES[:3])
        await asyncio.sleep(2 * LAG_S)
        lead_to(worker, eu)
        us.go_away()
        knocks = len(us.knocks)
        for piece in PIECES[3:]:
            await answer.text(piece)
        await asyncio.sleep(30)
        assert 3 <= len(us.knocks) - knocks <= 60
        us.come_back()
    assert answer.outcome is not None
    assert answer.outcome.kind == "settled"
    assert answer.outcome.message is not None
    assert text_of(answer.outcome.message["parts"]) == TEXT


@in_two_regions
async def test_an_evacuated_region_loses_its_streams_to_another_and_no_text(scene: Scene) -> None:
    eu, us = scene.world.eu, scene.world.us
    worker = await scene.connect(us, WORKER)
    async with scene.watching(scene.phone) as watch:
        async with scene.answer(worker) as answer:
            await asyncio.sleep(2 * LAG_S)
            await say(answer, PIECES[:3])
            lead_to(worker, eu)
            us.go_away()
            assert isinstance(eu.house, RegionHouse)
            eu.house.evacuate(US)
            await say(answer, PIECES[3:])
        assert answer.outcome is not None
        assert answer.outcome.message is not None
        assert text_of(answer.outcome.message["parts"]) == TEXT
        await watch.until_settled()
    assert watch.settled() == TEXT
    assert watch.streamed() in {TEXT, ""}


# --- stopping ------------------------------------------------------------------------------------------------------


@in_two_regions
async def test_a_stop_goes_where_the_answer_is_streamed(scene: Scene) -> None:
    us = scene.world.us
    worker = await scene.connect(us, WORKER)
    async with scene.answer(worker) as answer:
        await say(answer, PIECES[:2])
        await asyncio.sleep(2 * LAG_S)
        [stopped] = await scene.phone.cancel(scene.conversation, stream=answer.id)
        assert (stopped["id"], stopped["status"]) == (answer.id, "stopped")
        await asyncio.sleep(1)
        assert us.connections(PHONE) == []


@in_two_regions
async def test_a_stop_of_all_stops_those_of_every_region(scene: Scene) -> None:
    eu, us = scene.world.eu, scene.world.us
    here, there = await scene.connect(eu, WORKER), await scene.connect(us, WORKER)
    async with scene.answer(here) as one, scene.answer(there) as two:
        await say(one, PIECES[:1])
        await say(two, PIECES[:1])
        await asyncio.sleep(2 * LAG_S)
        stopped = await scene.phone.cancel(scene.conversation)
        assert {message["id"]: message["status"] for message in stopped} == {one.id: "stopped", two.id: "stopped"}
    await asyncio.sleep(1)
    assert us.connections(PHONE) == []


@in_two_regions
async def test_a_stop_that_cannot_reach_one_region_stops_the_others_and_says_so(scene: Scene) -> None:
    eu, us = scene.world.eu, scene.world.us
    here = await scene.connect(eu, WORKER)
    us.house.stream(scene.conversation, scene.question)
    scene.world.spread(us)
    us.go_away()
    async with scene.answer(here) as one:
        await asyncio.sleep(2 * LAG_S)
        with pytest.raises(UnavailableError, match="away"):
            await scene.phone.cancel(scene.conversation)
        assert has_message(eu, scene.conversation, one.id)


@in_two_regions
async def test_a_stop_of_what_is_nowhere_is_not_found_anywhere(scene: Scene) -> None:
    with pytest.raises(NotFoundError):
        await scene.phone.cancel(new_id(), stream=new_id())
    assert len(scene.world.us.knocks) == 0


# --- connections ---------------------------------------------------------------------------------------------------


@in_two_regions
async def test_the_last_to_leave_closes_the_connection(scene: Scene) -> None:
    us = scene.world.us
    connections = scene.phone.regions
    async with connections.connected(us.url) as one:
        async with connections.connected(us.url) as two:
            assert one is two
        assert one.is_up
    assert not one.is_up
    async with connections.connected(us.url) as three:
        assert await three.request("ping")
    assert us.most == 1


@in_two_regions
async def test_many_who_need_a_region_at_once_dial_it_once(scene: Scene) -> None:
    us = scene.world.us

    async def need() -> None:
        async with scene.phone.regions.connected(us.url) as connection:
            await connection.request("ping")
            await asyncio.sleep(1)

    await asyncio.gather(*(need() for _ in range(5)))
    assert len(us.knocks) == 1


@in_two_regions
async def test_the_own_endpoint_is_the_own_connection(scene: Scene) -> None:
    async with scene.phone.regions.connected(scene.world.eu.url) as connection:
        assert connection is scene.phone.connection
    assert connection.is_up


@in_two_regions
async def test_a_region_that_could_not_be_reached_is_dialled_again(scene: Scene) -> None:
    us = scene.world.us
    us.go_away()
    with pytest.raises(ConnectionFailedError):
        async with scene.phone.regions.connected(us.url):
            pass
    us.come_back()
    async with scene.phone.regions.connected(us.url) as connection:
        assert await connection.request("ping")


async def test_no_token_goes_to_an_endpoint_without_tls() -> None:
    asked: list[str] = []

    def token() -> str:
        asked.append("once")
        return "secret"

    connections = Connections(Connection("wss://eu.chat.example.com/prod", token))
    with pytest.raises(ConnectionFailedError, match="no TLS"):
        async with connections.connected("ws://us.chat.example.com/prod"):
            pass
    assert asked == []


@in_two_regions
async def test_a_region_alone_has_no_second_connection(scene: Scene) -> None:
    worker = await scene.connect(scene.world.eu, WORKER)
    laptop = await scene.connect(scene.world.eu, LAPTOP)
    async with scene.watching(laptop) as watch, scene.answer(worker) as answer:
        await say(answer, PIECES)
        await answer.close()
        await watch.until_settled()
    assert watch.streamed() == TEXT
    assert scene.world.us.knocks == []
    assert (EU, US) == ("eu-central-1", "us-east-1")
