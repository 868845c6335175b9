"""Cases A1 to A16: streams resumed, stopped, cut and left behind. Each is a fault that others have had."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Self

import pytest
from valkey import Valkey

from local.state import Address
from tests.support.another_process import invoke_elsewhere
from tests.support.hot import client_of, hot_valkey
from tests.support.house import (
    LAPTOP,
    PHONE,
    WORKER,
    Answer,
    Device,
    Frame,
    House,
    disconnect_event,
    message_event,
    text_part,
)
from tests.support.killing.server import killable_valkey
from tests.support.served_house import HouseServer, in_virtual_time, now
from tests.unit.threadkeep.responder.scene import Scene
from threadkeep.domain.bounds import LEASE_MS
from threadkeep.responder.answers import TextPiece
from threadkeep.usecases.sweeping import sweep
from threadkeep_client import Client, Outcome, Producer, StreamEndedError, Update, text_of

CHUNKS: Final = [f"[{number}]" for number in range(40)]
TEXT: Final = "".join(CHUNKS)
EVERY_S: Final = 0.1
"""The model says a chunk so often."""
BEAT_S: Final = 1.0
"""With nothing to say for so long a producer in the service's own process says that it lives."""
SCREEN: Final = Device(connection="screen=")
"""Another device of the owner's, whose sockets are cut apart from the phone's."""


class Screen:
    """A device that watches a conversation with the real client, and keeps what it comes to show."""

    def __init__(self, server: HouseServer, device: Device, conversation: str) -> None:
        self.client = server.client(device)
        self.updates: list[Update] = []
        self.shown: list[tuple[float, str]] = []
        self.ops = ""
        self._conversation = conversation
        self._moved = asyncio.Condition()

    async def __aenter__(self) -> Self:
        await self.client.__aenter__()
        self._viewer = self.client.watch(self._conversation)
        await self._viewer.__aenter__()
        self._task = asyncio.create_task(self._watch())
        return self

    async def _watch(self) -> None:
        async for update in self._viewer:
            async with self._moved:
                self.updates.append(update)
                self.ops += "".join(op[2] for op in update.ops if op[0] == "text")
                if update.answer is not None:
                    self.shown.append((now(), update.answer.text))
                self._moved.notify_all()

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])
        await self._viewer.__aexit__()
        await self.client.__aexit__()

    @property
    def text(self) -> str:
        """What it shows of the answer."""
        return self.shown[-1][1] if self.shown else ""

    def ends(self) -> list[Frame]:
        """The messages by which answers ended."""
        return [dict(update.message) for update in self.updates if update.kind == "settled" and update.message]

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait for it, at most ten virtual minutes."""
        async with asyncio.timeout(600), self._moved:
            await self._moved.wait_for(reached)


async def ask(client: Client) -> tuple[str, str]:
    """A new conversation with one question."""
    conversation = (await client.create_conversation())["id"]
    return conversation, (await client.create_message(conversation, "Why?", parent=None))["id"]


async def say(answer: Producer, chunks: list[str], every_s: float = EVERY_S) -> None:
    """Each chunk an append of its own."""
    for chunk in chunks:
        await answer.text(chunk)
        await answer.flush()
        await asyncio.sleep(every_s)


def is_subscribe(request: Frame) -> bool:
    """Whether this is how a device attaches."""
    return bool(request["action"] == "conversation.subscribe")


async def stop_after(delay_s: float, client: Client, conversation: str, stream: str) -> None:
    """Stop that answer after a while."""
    await asyncio.sleep(delay_s)
    await stop(client, conversation, stream)


async def stop(client: Client, conversation: str, stream: str) -> list[Frame]:
    """Stop that answer; the messages told."""
    reply = await client.connection.request("stream.cancel", conversation=conversation, stream=stream)
    return list(reply["messages"])


def stored(house: House, conversation: str, stream: str) -> Frame:
    """The message as the owner reads it back."""
    [message] = [
        message
        for message in house.ok(PHONE, "message.list", conversation=conversation, leaf="all")["messages"]
        if message["id"] == stream
    ]
    return dict(message)


@in_virtual_time
async def test_a01_three_reconnects_show_each_chunk_once_and_without_a_wait(house: House) -> None:
    """The state that orders chunks went with the last listener; later reconnects skipped text and stalled."""
    async with HouseServer(house) as server, server.client(PHONE) as asker, server.client(WORKER) as worker:
        conversation, question = await ask(asker)
        async with Screen(server, SCREEN, conversation) as screen:
            async with worker.produce(conversation, parent=question) as answer:
                said = 0
                for cut_after in (5, 12, 30):
                    await say(answer, CHUNKS[said:cut_after])
                    server.cut(SCREEN)
                    said = cut_after + 2
                    await say(answer, CHUNKS[cut_after:said], every_s=0)
                    await asyncio.sleep(3)  # nothing live comes to help: resuming alone shows what was missed
                await say(answer, CHUNKS[said:])
            await screen.until(lambda: bool(screen.ends()))
        assert screen.ops == TEXT, "every chunk came once, in order"
        assert all(TEXT.startswith(text) for _, text in screen.shown)
        assert text_of(screen.ends()[0]["parts"]) == TEXT
        attached = [at for at, by, asked in server.requests if is_subscribe(asked) and by.startswith("screen")]
        assert len(attached) == 4
        for at in attached[1:]:
            had = max(len(text) for shown_at, text in screen.shown if shown_at < at)
            assert min(shown_at for shown_at, text in screen.shown if len(text) > had) - at <= 0.2
        places = [(page["epoch"] > 0, page["offset"]) for page in server.asked("stream.resume")]
        assert places == sorted(places), "it went on from its place each time, never from the start"
        assert [known for known, _ in places] == [True] * 3


@in_virtual_time
async def test_a02_a_resume_asked_three_times_shows_the_text_once(house: House) -> None:
    """A resume offer handled twice: each replay was appended to the same text, and two copies stood stacked."""
    async with HouseServer(house) as server, server.client(PHONE) as asker, server.client(WORKER) as worker:
        conversation, question = await ask(asker)
        async with worker.produce(conversation, parent=question) as answer:
            await say(answer, CHUNKS[:10])
            server.repeats["stream.resume"] = (0.01, 1.0)
            async with Screen(server, SCREEN, conversation) as screen:
                await say(answer, CHUNKS[10:])
                await answer.close()
                await screen.until(lambda: bool(screen.ends()))
        assert len(server.asked("stream.resume")) == 3
        assert len(server.told("stream.resume.ok")) == 3
        assert screen.ops == TEXT
        assert all(TEXT.startswith(text) for _, text in screen.shown)
        deltas = Counter((delta["epoch"], delta["at"]) for delta in server.told("stream.delta"))
        assert set(deltas.values()) == {1}, "resuming again makes nobody a second viewer"


@in_virtual_time
async def test_a03_an_answer_has_one_id_live_replayed_and_stored(house: House) -> None:
    """A replay minted the message's id anew, so that a partial and a whole copy stood beside each other."""
    async with HouseServer(house) as server, server.client(PHONE) as asker, server.client(WORKER) as worker:
        conversation, question = await ask(asker)
        async with Screen(server, SCREEN, conversation) as screen:
            async with worker.produce(conversation, parent=question) as answer:
                await say(answer, CHUNKS[:9])
                server.cut(SCREEN)
                await say(answer, CHUNKS[9:10])
                await screen.until(lambda: screen.text == "".join(CHUNKS[:10]))
            await screen.until(lambda: bool(screen.ends()))
            history = await screen.client.history(conversation)
        live = {frame["stream"] for frame in server.told("stream.delta") + server.told("stream.opened")}
        replayed = {request["stream"] for request in server.asked("stream.resume")}
        assert live == replayed == {answer.id}
        assert {update.id for update in screen.updates} == {answer.id}
        assert [message["id"] for message in history] == [question, answer.id]
        assert [end["id"] for end in screen.ends()] == [answer.id]


@pytest.mark.parametrize("flowing", [True, False], ids=["while text flows", "in silence"])
def test_a04_a_stop_from_another_device_reaches_the_model(house: House, *, flowing: bool) -> None:
    """A stop closed the client's own socket and told the producer nothing: the generation ran on, orphaned."""
    scene = Scene(house)
    scene.watch()
    stopped_s = 3.25
    words = [at_s / 10 for at_s in range(1, 100)]
    heard: list[int] = []

    def attach() -> None:
        house.invoke(disconnect_event(PHONE))
        house.push.gone.add(PHONE.connection)
        house.ok(LAPTOP, "conversation.subscribe", conversation=scene.conversation)

    def stop_it() -> None:
        house.ok(LAPTOP, "stream.cancel", conversation=scene.conversation, stream=scene.reply)
        heard.append(len(house.frames(LAPTOP)))

    script = [(at_s, TextPiece(f"[{at_s}]")) for at_s in words if flowing or at_s < 2]
    told: list[Any] = sorted([*script, (1.0, attach), (stopped_s, stop_it)], key=lambda said: said[0])
    assert scene.respond(*told) == "closed"
    [cancelled_s] = scene.model.stopped_s
    assert 0 <= cancelled_s - stopped_s <= (2.0 if flowing else BEAT_S)
    assert scene.stored.status == "stopped"
    frames = house.frames(LAPTOP)
    assert len(frames) == heard[0], "nothing came after the stop"
    assert frames[-1]["message"]["parts"] == scene.parts
    shown = "".join(f"[{at_s}]" for at_s in words)
    assert shown.startswith(scene.text)
    assert scene.text


@in_virtual_time
async def test_a05_a_stop_works_after_a_minute_of_quiet(house: House) -> None:
    """Whoever listened for stops timed out after some seconds of quiet and died without a word."""
    async with HouseServer(house) as server, server.client(PHONE) as asker, server.client(WORKER) as worker:
        conversation, question = await ask(asker)
        async with worker.produce(conversation, parent=question) as answer:
            await say(answer, CHUNKS[:3])
            before = len(server.requests)
            await asyncio.sleep(60)
            quiet = [request for _, _, request in server.requests[before:]]
            assert [request["ops"] for request in quiet] == [[]] * len(quiet), "only beats went by"
            assert len(quiet) >= 5
            [message] = await stop(asker, conversation, answer.id)
            assert (message["status"], text_of(message["parts"])) == ("stopped", "".join(CHUNKS[:3]))
            with pytest.raises(StreamEndedError):
                await say(answer, CHUNKS[3:5])
        assert answer.outcome is not None
        assert answer.outcome.kind == "closed"
        assert stored(house, conversation, answer.id) == message


@in_virtual_time
async def test_a06_a_stop_works_after_the_cache_was_restarted(house: House, tmp_path: Path) -> None:
    """A dropped link to the cache ended all stopping for good, since nobody subscribed again."""
    with killable_valkey(tmp_path) as valkey:
        hot = client_of(valkey.address, is_cluster=False)
        house.replace(hot=hot_valkey(hot))
        async with HouseServer(house) as server, server.client(PHONE) as asker, server.client(WORKER) as worker:
            conversation, question = await ask(asker)
            async with worker.produce(conversation, parent=question) as answer:
                await say(answer, CHUNKS[:10])
                held = answer.epoch
                valkey.kill()
                valkey.start()
                with pytest.raises(StreamEndedError) as ended:
                    await asyncio.gather(say(answer, CHUNKS[10:]), stop_after(2.0, asker, conversation, answer.id))
            assert answer.epoch > held, "the stream had to be opened anew"
            assert ended.value.outcome.kind == "closed"
            asked = next(at for at, _, request in server.requests if request["action"] == "stream.cancel")
            told = next(at for at, _, frame in server.sent if frame["type"] == "stream.cancel.ok")
            refused = next(at for at, _, frame in server.sent if frame.get("code") == "closed")
            assert max(told, refused) - asked <= 2.0
            message = stored(house, conversation, answer.id)
            assert message["status"] == "stopped"
            accepted = {frame["ref"] for frame in server.told("stream.append.ok")}
            anew = [one for one in server.asked("stream.append") if one["epoch"] == answer.epoch]
            said = "".join(op[2] for one in anew if one["ref"] in accepted for op in one["ops"] if op[0] == "text")
            assert text_of(message["parts"]) == said
            assert said.startswith("".join(CHUNKS[:20])), "what the cache had lost, and what came after"
        hot.close()


@in_virtual_time
async def test_a06_a_stop_in_silence_after_the_restart_keeps_what_the_cache_had_lost(
    house: House, tmp_path: Path
) -> None:
    """As above, with the stop coming before the producer could notice that the cache had forgotten its answer."""
    with killable_valkey(tmp_path) as valkey:
        hot = client_of(valkey.address, is_cluster=False)
        house.replace(hot=hot_valkey(hot))
        async with HouseServer(house) as server, server.client(PHONE) as asker, server.client(WORKER) as worker:
            conversation, question = await ask(asker)
            async with worker.produce(conversation, parent=question) as answer:
                await say(answer, CHUNKS[:10])
                valkey.kill()
                valkey.start()
                await stop_after(2.0, asker, conversation, answer.id)
                await asyncio.sleep(10)  # its next beat
                with pytest.raises(StreamEndedError) as ended:
                    await answer.text("more")
            message = stored(house, conversation, answer.id)
            assert (message["status"], text_of(message["parts"])) == ("stopped", "".join(CHUNKS[:10]))
            assert ended.value.outcome == Outcome(kind="closed", message=message)  # type: ignore[arg-type] # as JSON
        hot.close()


def test_a06_so_does_a_stop_of_the_responder(house: House) -> None:
    """As above, of the producer in the service's own process."""
    scene = Scene(house)

    def stop_it() -> None:
        scene.lose_hot()
        house.ok(LAPTOP, "stream.cancel", conversation=scene.conversation, stream=scene.reply)

    assert scene.respond((0.1, TextPiece("so ")), (0.5, TextPiece("far")), (3.25, stop_it)) == "closed"
    [cancelled_s] = scene.model.stopped_s
    assert cancelled_s - 3.25 <= 2.0
    assert (scene.stored.status, scene.text) == ("stopped", "so far")


def test_a07_a_stop_works_from_another_process_than_the_producers(house: House, valkey_single: Address) -> None:
    """The table of running tasks was kept in a process's memory: on another replica a stop found none."""
    hot = client_of(valkey_single, is_cluster=False)
    house.replace(hot=hot_valkey(hot))
    answer = Answer(house)
    opened = answer.written("so ", "far")
    request = {"action": "stream.cancel", "ref": "r", "conversation": answer.conversation, "stream": answer.stream}
    process, reply = invoke_elsewhere(valkey_single, house.warm, message_event(LAPTOP, json.dumps(request)))
    assert process != os.getpid()
    [message] = json.loads(reply["body"])["messages"]
    assert (message["status"], message["parts"]) == ("stopped", [text_part("so far")])
    late = answer.append(opened, 2, " and on")
    assert (late["code"], late["detail"]) == ("closed", {"settled": message})
    hot.close()


def test_a08_one_stop_ends_all_answers_of_a_conversation(house: House) -> None:
    """The list of running answers was changed while it was walked: of three, one or two lived on."""
    first = Answer(house)
    opened = [first.written("a")]
    for number in (2, 3):
        other = house.stream(first.conversation, first.question, fork=True, producer=f"run-{number}")
        house.ok(WORKER, "stream.append", **other, ops=[["text", 0, "a"]])
        opened.append(other)
    stopped = house.ok(PHONE, "stream.cancel", conversation=first.conversation)["messages"]
    assert [message["id"] for message in stopped] == [stream["stream"] for stream in opened]
    assert {message["status"] for message in stopped} == {"stopped"}
    for stream in opened:
        late = first.append(stream, 1, "b")
        assert (late["code"], late["detail"]["settled"]["status"]) == ("closed", "stopped")
    assert house.ok(PHONE, "conversation.subscribe", conversation=first.conversation)["live"] == []


@in_virtual_time
async def test_a09_a_lost_terminal_frame_is_made_good_within_twenty_seconds(house: House) -> None:
    """The end was published once and kept nowhere: who missed that one message stayed "streaming" for ever."""
    async with HouseServer(house) as server, server.client(PHONE) as asker, server.client(WORKER) as worker:
        conversation, question = await ask(asker)
        dropped: list[Frame] = []

        def lose_the_end(event: Frame) -> list[Frame]:
            if event["type"] != "message.created":
                return [event]
            dropped.append(event)
            return []

        server.filter = lose_the_end
        async with Screen(server, SCREEN, conversation) as screen:
            async with worker.produce(conversation, parent=question) as answer:
                await say(answer, CHUNKS)
            ended = now()
            assert len(dropped) == 1
            await screen.until(lambda: bool(screen.ends()))
            assert now() - ended <= 20
            await asyncio.sleep(300)
            assert [text_of(end["parts"]) for end in screen.ends()] == [TEXT], "one end, and no other for long after"
        assert len(dropped) == 1


@in_virtual_time
async def test_a10_five_reconnects_leave_one_send_a_chunk(house: House) -> None:
    """Listeners of connections that were gone stayed: every reconnect multiplied what was published."""
    async with HouseServer(house) as server, server.client(PHONE) as asker, server.client(WORKER) as worker:
        conversation, question = await ask(asker)
        async with Screen(server, SCREEN, conversation) as screen:
            async with worker.produce(conversation, parent=question) as answer:
                for number in range(5):
                    await say(answer, CHUNKS[number * 5 : number * 5 + 5])
                    server.cut(SCREEN)
                    await screen.client.ping()  # answered when it is connected again
                await say(answer, CHUNKS[25:30])
                await asyncio.sleep(5)
                [live] = server.connections(SCREEN)
                assert live == "screen-8=", "the sixth of its connections"
                before = len(server.posts)
                await say(answer, CHUNKS[30:])
                assert [to for to, _ in server.posts[before:]] == [live] * 10
            await screen.until(lambda: bool(screen.ends()))
        gone = Counter(to for to, _ in server.posts)
        reached = Counter(to for _, to, frame in server.sent if "ref" not in frame)
        assert all(posted - reached[to] <= 1 for to, posted in gone.items()), "a dead connection is tried once"
        assert screen.ops == TEXT


def test_a11_five_hundred_streams_leave_no_connections(house: House, valkey_single: Address) -> None:
    """Clients of the cache were never closed: connections and memory grew with every stream."""
    hot = client_of(valkey_single, is_cluster=False)
    watching: Any = Valkey(host=valkey_single.host, port=valkey_single.port)  # the library types it for async use too
    house.replace(hot=hot_valkey(hot))
    before = watching.info("clients")["connected_clients"]
    parent: str | None = None
    conversation = house.conversation()
    for _ in range(500):
        place = house.stream(conversation, parent)
        house.ok(WORKER, "stream.append", **place, ops=[["text", 0, "a"]])
        end = place | {"offset": 1}
        parent = house.ok(WORKER, "stream.close", **end, status="complete")["message"]["id"]
    assert watching.info("clients")["connected_clients"] - before <= 2
    hot.close()
    watching.close()


def test_a12_a_producer_that_died_before_its_first_chunk_costs_one_lease(house: House) -> None:
    """The pointer to the active stream stayed when its producer had died early: every reload waited for it."""
    answer = Answer(house)
    answer.open()

    def reload() -> tuple[list[str], list[str]]:
        """The streams shown as live, and what becomes of each when it is resumed."""
        live = house.ok(PHONE, "conversation.subscribe", conversation=answer.conversation)["live"]
        pages = [
            house.ok(PHONE, "stream.resume", conversation=answer.conversation, stream=one["stream"], epoch=0, offset=0)
            for one in live
        ]
        return [one["stream"] for one in live], [page["state"] for page in pages]

    house.clock.ms += LEASE_MS - 1
    assert reload() == ([answer.stream], ["live"])
    house.clock.ms += 1
    first, second, third = reload(), reload(), reload()
    assert first in (([], []), ([answer.stream], ["settled"])), "it is finished by whoever comes first"
    assert second == third == ([], [])
    message = stored(house, answer.conversation, answer.stream)
    assert (message["status"], message["parts"]) == ("interrupted", [])
    again = house.stream(answer.conversation, answer.question, fork=True, producer="run-2")
    assert house.ok(WORKER, "stream.append", **again, ops=[["text", 0, "a"]])["offset"] == 1


@pytest.mark.parametrize(("by_hand", "status"), [(True, "stopped"), (False, "interrupted")], ids=["stop", "sweeper"])
def test_a13_a_conversation_goes_on_after_its_worker_was_killed(house: House, *, by_hand: bool, status: str) -> None:
    """The status "running" was cleared by the dead task alone: a stop gave a conflict, and no send was taken."""
    answer = Answer(house)
    answer.written("so ", "far")  # and never a word more
    told = {"conversation": answer.conversation, "parent": answer.stream, "role": "user", "parts": [text_part("And?")]}
    assert house.say(PHONE, "message.create", message=house.new_id(), **told)["reason"] == "parent_open"
    if by_hand:
        [message] = house.ok(PHONE, "stream.cancel", conversation=answer.conversation)["messages"]
    else:
        house.clock.ms += LEASE_MS
        assert sweep(house.services).ended == 1
        message = stored(house, answer.conversation, answer.stream)
    assert (message["status"], message["parts"]) == (status, [text_part("so far")])
    assert house.ok(PHONE, "conversation.subscribe", conversation=answer.conversation)["live"] == []
    assert house.ok(PHONE, "message.create", message=house.new_id(), **told)["message"]["parent"] == answer.stream


def test_a14_a_dead_workers_hold_ends_and_it_writes_nothing_when_it_wakes(house: House) -> None:
    """A lock without an owner or an end: "already in progress" for ever, and whoever woke late wrote on."""
    answer = Answer(house)
    old = answer.written("a", "b")
    assert answer.open(producer="run-2")["reason"] == "held"
    house.clock.ms += LEASE_MS
    new = answer.open(producer="run-2", takeover=True)
    assert (new["type"], new["offset"]) == ("stream.open.ok", 2)
    assert new["epoch"] > old["epoch"]
    for late in (answer.append(old, 2, "OLD"), answer.append(old, 1, "b"), answer.close(old, 2)):
        assert late["code"] == "fenced"
    assert answer.append(new, 2, "c")["offset"] == 3
    assert answer.close(old, 3)["code"] == "fenced"
    message = answer.close(new, 3)["message"]
    assert (message["status"], message["parts"]) == ("complete", [text_part("abc")])
    assert answer.append(old, 3, "OLD")["code"] == "fenced"
    assert stored(house, answer.conversation, answer.stream) == message


POINTS: Final = random.Random(15).sample(range(1, len(CHUNKS)), 10)  # noqa: S311 -- the same points every time


@pytest.mark.parametrize("point", POINTS)
@in_virtual_time
async def test_a15_a_reader_who_leaves_loses_nothing(house: House, point: int) -> None:
    """The answer was saved by a callback of the normal end alone: a refresh or a closed tab lost the partial."""
    async with HouseServer(house) as server, server.client(PHONE) as asker, server.client(WORKER) as worker:
        conversation, question = await ask(asker)
        async with worker.produce(conversation, parent=question) as answer:
            async with Screen(server, SCREEN, conversation):
                await say(answer, CHUNKS[:point])
                server.cut(SCREEN)
            async with Screen(server, LAPTOP, conversation) as refreshed:
                await refreshed.until(lambda: refreshed.text == "".join(CHUNKS[:point]))
            await say(answer, CHUNKS[point:])
        message = stored(house, conversation, answer.id)
        assert (message["status"], text_of(message["parts"])) == ("complete", TEXT)


@pytest.mark.parametrize("point", POINTS)
@in_virtual_time
async def test_a15_a_worker_who_leaves_loses_nothing(house: House, point: int) -> None:
    """As above, of the other side's socket: what had been acknowledged went with the process that held it."""
    async with HouseServer(house) as server, server.client(PHONE) as asker:
        conversation, question = await ask(asker)
        async with server.client(WORKER) as worker:
            answer = await worker.produce(conversation, parent=question).open()
            await say(answer, CHUNKS[:point])
            await answer.text(CHUNKS[point])
            server.cut(WORKER)
            await answer.abandon()
        live = house.ok(PHONE, "conversation.subscribe", conversation=conversation)["live"]
        assert [one["stream"] for one in live] == [answer.id], "still running, for as long as its lease"
        await asyncio.sleep(LEASE_MS / 1_000)
        server.set_clock()
        assert sweep(house.services).ended == 1
        message = stored(house, conversation, answer.id)
        assert message["status"] == "interrupted"
        assert text_of(message["parts"]) in {"".join(CHUNKS[:point]), "".join(CHUNKS[: point + 1])}


@in_virtual_time
async def test_a16_a_second_device_shows_the_partial_and_then_the_live_tail(house: House) -> None:
    """Nothing was stored before the end: whoever came or refreshed in the middle saw an empty chat until then."""
    async with HouseServer(house) as server, server.client(PHONE) as asker, server.client(WORKER) as worker:
        conversation, question = await ask(asker)
        async with worker.produce(conversation, parent=question) as answer:
            await say(answer, CHUNKS[:20])
            async with Screen(server, LAPTOP, conversation) as second:
                came = now()
                writing = asyncio.create_task(say(answer, CHUNKS[20:]))
                await second.until(lambda: len(second.text) > 0)
                assert second.text.startswith("".join(CHUNKS[:20]))
                assert now() - came <= 0.2
                await writing
                await second.until(lambda: second.text == TEXT)
                assert not second.ends(), "it showed all of it live"
                await answer.close()
                await second.until(lambda: bool(second.ends()))
        assert len(server.asked("stream.resume")) == 1
        assert second.ops == TEXT
        assert all(TEXT.startswith(text) for _, text in second.shown)
        assert text_of(second.ends()[0]["parts"]) == TEXT
