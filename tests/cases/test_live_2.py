"""Faults that people met in live answers: providers, tools, slow and absent viewers, the cache (table: README.md)."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import wait
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar, TypeVar, cast

import pytest
from valkey import Valkey

from local.state import Address
from local.valkey import running_valkey
from tests.integration.test_valkey_client import POOL, SLOW
from tests.support.hot import Talk, client_of, hot_valkey, new_id
from tests.support.house import (
    LAPTOP,
    PHONE,
    WORKER,
    Answer,
    Device,
    Frame,
    House,
    serving,
    text_part,
)
from tests.support.relay import Relay
from tests.unit.client.fake_server import FakeServer
from tests.unit.client.fake_service import Json
from tests.unit.client.virtual_time import VirtualTimeLoop
from tests.unit.threadkeep.responder.scene import Said, Scene
from threadkeep.domain.bounds import FAN_OUT_WAIT_MS, LEASE_MS, SUBSCRIPTION_MS
from threadkeep.domain.streams import Accepted, Opened, Resumed, Unknown
from threadkeep.responder.answers import (
    Cut,
    Ended,
    Failed,
    TextPiece,
    ToolCallBegun,
    ToolCallEnded,
    ToolCallPiece,
)
from threadkeep.responder.prompt import AssistantTurn, ToolUse, UserTurn
from threadkeep.stores import push_gateway
from threadkeep.stores.hot_keys import HotKeys
from threadkeep.stores.push_gateway import GatewayPush
from threadkeep.usecases.sweeping import sweep
from threadkeep_client import Client, Viewer, text_of


@pytest.fixture
def scene(house: House) -> Scene:
    return Scene(house)


@pytest.fixture
def answer(house: House) -> Answer:
    return Answer(house)


# --- how answers end -------------------------------------------------------------------------------------------------


def test_a17_drop_stop_provider_error_and_timeout_are_four_ends_told_apart_by_status_and_code(house: House) -> None:
    """A partial answer that was cancelled stood as a completed one."""

    def stop(scene: Scene) -> None:
        house.ok(LAPTOP, "stream.cancel", conversation=scene.conversation, stream=scene.reply)

    scenes = {name: Scene(house) for name in ("drop", "stop", "error", "timeout")}
    ends: dict[str, Said] = {
        "drop": (2.0, Cut()),
        "stop": (2.0, lambda: stop(scenes["stop"])),
        "error": (2.0, Failed("model_overloaded", retryable=True)),
        "timeout": (10_000.0, Ended("stop")),
    }
    for name, scene in scenes.items():
        scene.respond((1.0, TextPiece("half an answ")), ends[name])
    told = {
        name: (scene.stored.status, None if name == "stop" else scene.error["code"]) for name, scene in scenes.items()
    }
    assert told == {
        "drop": ("interrupted", "connection_lost"),
        "stop": ("stopped", None),
        "error": ("failed", "model_overloaded"),
        "timeout": ("failed", "silent"),
    }
    assert {scene.text for scene in scenes.values()} == {"half an answ"}


def test_a25_a_provider_that_dies_before_any_text_leaves_an_error_no_empty_message_and_no_tool_run_again(
    scene: Scene,
) -> None:
    """An empty stub was stored as a turn, and the agent repeated its step."""
    scene.respond(
        (0.1, ToolCallBegun(0, "call_a", "weather")),
        (0.2, ToolCallPiece(0, '{"town":"Oslo"}')),
        (0.3, ToolCallEnded(0)),
        (0.4, Ended("tool_calls")),
    )
    result = [{"type": "tool_result", "call_id": "call_a", "output": "rain"}]
    scene.question = scene.house.message(scene.conversation, scene.reply, role="tool", parts=result, by=WORKER)
    scene.reply = scene.house.new_id()
    assert scene.respond((0.5, Failed("overloaded", retryable=True))) == "failed"
    assert (scene.stored.status, scene.error["code"], scene.parts) == ("failed", "overloaded", [])
    assert len(scene.model.prompts) == 2, "the model is not asked again unless somebody asks"
    scene.ask_again()
    assert scene.respond((0.1, TextPiece("It rains.")), (0.2, Ended("stop"))) == "complete"
    assert scene.model.prompts[-1].turns == (
        UserTurn("What is a stream?"),
        AssistantTurn("", (ToolUse("call00000", "weather", '{"town":"Oslo"}', "rain"),)),
        UserTurn("And then?"),
    )


# --- a tool between two writes ---------------------------------------------------------------------------------------


class Crash(BaseException):
    """The process ends here."""


class Points:
    """Counts what has an effect outside the process, and crashes before one of them."""

    def __init__(self, crash_before: int) -> None:
        self.left = crash_before
        self.crashed = False

    def passed(self) -> None:
        self.left -= 1
        if self.left == -1:
            self.crashed = True
            raise Crash


class Crashing:
    """A store each of whose calls is a point."""

    def __init__(self, store: Any, points: Points) -> None:
        self._store, self._points = store, points

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._store, name)

        def passing(*args: Any, **kwargs: Any) -> Any:
            self._points.passed()
            return call(*args, **kwargs)

        return passing


class Agent:
    """Calls one tool: writes the call, runs it once that is durable, writes its result. Every run has the same ids.

    A run that finds the call settled by another cannot know whether that one ran the tool, and says so.
    """

    UNKNOWN: ClassVar = {"type": "tool_result", "call_id": "call_a", "output": "", "error": {"code": "interrupted"}}

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.result = answer.house.new_id()
        self.effects = 0

    def run(self, producer: str, points: Points) -> None:
        result = self._result(points) if self._call_is_mine(producer) else self.UNKNOWN
        reply = self.answer.house.say(
            WORKER,
            "message.create",
            conversation=self.answer.conversation,
            message=self.result,
            parent=self.answer.stream,
            role="tool",
            parts=[result],
        )
        assert reply["type"] == "message.create.ok" or reply["reason"] == "id_taken", reply

    def _call_is_mine(self, producer: str) -> bool:
        house, conversation = self.answer.house, self.answer.conversation
        opened = self.answer.open(producer=producer, takeover=True)
        if opened.get("code") == "closed":
            return False
        assert opened["type"] == "stream.open.ok", opened
        if opened["offset"] == 0:
            part = {"type": "tool_call", "call_id": "call_a", "name": "pay", "arguments": "{}", "state": "done"}
            place = self.answer.place(opened, 0)
            house.ok(WORKER, "stream.append", conversation=conversation, ops=[["part", 0, part]], **place)
        closed = self.answer.close(opened, 1)
        assert closed["type"] == "stream.close.ok", closed
        return True

    def _result(self, points: Points) -> Frame:
        points.passed()
        self.effects += 1
        return {"type": "tool_result", "call_id": "call_a", "output": "paid"}


@pytest.mark.filterwarnings("ignore:No application metrics")  # a handler that dies has counted nothing
def test_a30_a_crash_between_any_two_writes_runs_a_tool_once_or_says_that_it_is_unknown() -> None:
    """A crash during the save ran a step twice, or not, as the scheduling fell."""
    outcomes: list[tuple[int, str]] = []
    for crash_before in range(100):
        with serving(House()) as house:
            points = Points(crash_before)
            agent = Agent(Answer(house))
            house.replace(hot=Crashing(house.hot, points), warm=Crashing(house.warm, points))
            try:
                agent.run("run-1", points)
            except Crash:
                house.replace(hot=house.hot, warm=house.warm)
                house.clock.ms += LEASE_MS
                agent.run("run-2", points)
            house.replace(hot=house.hot, warm=house.warm)
            listed = house.ok(PHONE, "message.list", conversation=agent.answer.conversation, leaf="all")["messages"]
            assert [message["id"] for message in listed] == [agent.result, agent.answer.stream, agent.answer.question]
            assert [part["call_id"] for message in listed[:2] for part in message["parts"]] == ["call_a"] * 2
            (result,) = listed[0]["parts"]
            outcomes.append((agent.effects, result["output"] or result["error"]["code"]))
            house.message(agent.answer.conversation, agent.result, "and then?")
        if not points.crashed:
            break
    assert not points.crashed, "every point was gone through"
    assert set(outcomes) == {(1, "paid"), (0, "interrupted"), (1, "interrupted")}


def renewed(answer: Answer, opened: Frame, lasts_ms: int) -> int:
    """The tool runs so long, its producer beats; the next place."""
    offset = 1
    for _ in range(lasts_ms // 10_000):
        answer.house.clock.ms += 10_000
        beat = answer.house.ok(
            WORKER, "stream.append", conversation=answer.conversation, ops=[], **answer.place(opened, offset)
        )
        offset = beat["offset"]
        assert sweep(answer.house.services).ended == 0
    return offset


def test_a71_a_tool_that_takes_three_leases_keeps_its_own_by_beats(answer: Answer) -> None:
    """A long tool call was run again while the first still ran: the lease was shorter than the work."""
    opened = answer.written("calling ")
    offset = renewed(answer, opened, 3 * LEASE_MS)
    assert answer.open(producer="run-2")["reason"] == "held", "nobody else may run it meanwhile"
    assert answer.append(opened, offset, "done")["offset"] == offset + 1
    assert answer.close(opened, offset + 1)["message"]["parts"] == [text_part("calling done")]


@pytest.mark.parametrize("successor", ["sweeper", "another run"])
def test_a71_whoever_lost_its_lease_is_refused_and_the_result_is_not_doubled(answer: Answer, successor: str) -> None:
    """A long tool call was run again, and both runs committed: nothing fenced the late one."""
    house = answer.house
    late = answer.written("calling ")
    house.clock.ms += 3 * LEASE_MS
    if successor == "sweeper":
        assert sweep(house.services).ended == 1
        kept, refusal = "calling ", "closed"
    else:
        other = answer.open(producer="run-2", takeover=True)
        assert other["epoch"] > late["epoch"]
        answer.append(other, other["offset"], "done")
        answer.close(other, other["offset"] + 1)
        kept, refusal = "calling done", "fenced"
    refused = [answer.append(late, 1, "done too"), answer.close(late, 1)]
    assert [reply["code"] for reply in refused] == [refusal] * 2
    listed = house.ok(PHONE, "message.list", conversation=answer.conversation, leaf="all")["messages"]
    assert [message["id"] for message in listed] == [answer.stream, answer.question]
    assert listed[0]["parts"] == [text_part(kept)]


# --- what viewers see ------------------------------------------------------------------------------------------------


T = TypeVar("T")


def virtually(happening: Coroutine[Any, Any, T]) -> T:
    """Run it on a clock that jumps ahead when nothing is left to do."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(happening)


class Shown:
    """What a viewer showed of one answer, and when (s); its text when settled."""

    def __init__(self) -> None:
        self.texts: list[tuple[float, str]] = []
        self.settled: str | None = None

    async def follow(self, viewer: Viewer) -> None:
        async for update in viewer:
            if update.message is not None:
                self.settled = text_of(update.message["parts"])
                return
            if update.answer is not None:
                self.texts.append((asyncio.get_running_loop().time(), update.answer.text))


CONVERSATION = "01900000-0000-7000-8000-000000000001"


def shuffled_in_windows(seed: int, size: int = 10) -> Callable[[Json], list[Json]]:
    """Deltas are held until there are so many, then let go in any order."""
    held: list[Json] = []
    draw = random.Random(seed)  # noqa: S311 -- a case that can be repeated

    def mangle(event: Json) -> list[Json]:
        if event["type"] != "stream.delta":
            return [event]
        held.append(event)
        if len(held) < size:
            return []
        draw.shuffle(held)
        released = held[:]
        held.clear()
        return released

    return mangle


@pytest.mark.parametrize("seed", range(5))
def test_a19_frames_in_random_order_within_a_window_of_10_are_shown_as_a_growing_beginning(seed: int) -> None:
    """Tokens came as single records in any order: words were scrambled, then jumped into order."""
    pieces = [f"{number} " for number in range(100)]
    said, shown = "".join(pieces), Shown()

    async def happening() -> None:
        async with FakeServer() as server, Client(server.url, "t") as client:
            server.mangle = shuffled_in_windows(seed)
            await client.create_conversation(CONVERSATION)
            answer = client.produce(CONVERSATION, parent=None)
            async with client.watch(CONVERSATION, stream=answer.id) as viewer:
                following = asyncio.create_task(shown.follow(viewer))
                async with answer:
                    for piece in pieces:
                        await answer.text(piece)
                        await answer.flush()
                await following

    virtually(happening())
    texts = [text for _, text in shown.texts]
    assert len(set(texts)) >= 10, "it was seen to grow"
    assert all(after.startswith(before) for before, after in pairwise(texts))
    assert said.startswith(texts[-1])
    assert shown.settled == said


def test_a20_frames_that_nobody_watches_for_leave_no_warning_and_take_no_memory(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A replica without viewers kept order for them: 16,119 warnings of skipped sequences while it was idle."""
    frames = 16_119
    delta = {"type": "stream.delta", "conversation": CONVERSATION, "stream": "s", "epoch": 1, "ops": []}
    created = {"type": "message.created", "conversation": CONVERSATION, "message": {"status": "stopped", "parts": []}}

    async def happening() -> int:
        async with FakeServer() as server, Client(server.url, "t") as client:
            await client.create_conversation(CONVERSATION)
            connection = client.connection
            gc.collect()
            before = sys.getallocatedblocks()
            for number in range(frames):
                frame = created if number % 2 else delta | {"at": 7 * number, "next": 7 * number + 1}
                connection._receive(json.dumps(frame))
            gc.collect()
            grown = sys.getallocatedblocks() - before
            await client.ping()
            return grown

    grown = virtually(happening())
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert grown < frames / 10, "objects: whatever is kept of a frame takes some"


@pytest.mark.parametrize("of", ["the conversation", "the answer"])
def test_a23_who_resumes_while_the_provider_is_silent_sees_the_text_within_300_ms(of: str) -> None:
    """After a resume the screen stayed blank until the next live chunk."""
    shown = Shown()

    async def happening() -> float:
        async with FakeServer() as server, Client(server.url, "t") as client, Client(server.url, "t") as late:
            await client.create_conversation(CONVERSATION)
            async with client.produce(CONVERSATION, parent=None) as answer:
                await answer.text("all that was said so far")
                await answer.flush()
                await asyncio.sleep(5.0)
                came_s = asyncio.get_running_loop().time()
                async with late.watch(CONVERSATION, stream=answer.id if of == "the answer" else None) as viewer:
                    following = asyncio.create_task(shown.follow(viewer))
                    await asyncio.sleep(15.0)
                    await answer.text(", and the rest")
                    await answer.close()
                    await following
            return came_s

    came_s = virtually(happening())
    first_s = next(at_s for at_s, text in shown.texts if text == "all that was said so far")
    assert first_s - came_s <= 0.3
    assert shown.settled == "all that was said so far, and the rest"


class SlowReader:
    """The gateway's posts, where one viewer reads a frame a second and a full buffer holds the post.

    Attributes:
        read: what each viewer was sent.
        held: the types of the frames whose posts hung.
    """

    def __init__(self, scene: Scene, slow: str, *, room: int = 3) -> None:
        self.read: dict[str, list[Frame]] = {}
        self.held: list[str] = []
        self.let_go = threading.Event()
        self._scene, self._slow, self._room = scene, slow, room
        self._since_s = scene.time.now_s()

    def post_to_connection(self, *, ConnectionId: str, Data: bytes) -> None:  # noqa: N803 -- AWS's names
        sent = self.read.setdefault(ConnectionId, [])
        if ConnectionId == self._slow and len(sent) >= self._room + self._scene.time.now_s() - self._since_s:
            self.held.append(json.loads(Data)["type"])
            self.let_go.wait(10)
            return
        sent.append(json.loads(Data))


def test_a21_a_viewer_of_one_frame_a_second_is_marked_lagging_and_holds_its_producer_250_ms_at_most(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks slowed down for all with one slow reader, until its socket died."""
    posts = SlowReader(scene, LAPTOP.connection)
    waits: list[float] = []

    def noting(futures: Any, timeout: float) -> Any:
        waits.append(timeout)
        return wait(futures, timeout=timeout)

    monkeypatch.setattr(push_gateway, "wait", noting)
    scene.house.replace(push=GatewayPush(cast("Any", posts)))
    scene.transport = scene.new_transport()
    lagging: list[bool] = []
    for device in (PHONE, LAPTOP):
        scene.house.ok(device, "conversation.subscribe", conversation=scene.conversation)
    tokens = [f"token{number} " for number in range(800)]
    try:
        scene.respond(
            *((number / 80, TextPiece(token)) for number, token in enumerate(tokens, 1)),
            (10.0, lambda: lagging.append(LAPTOP.connection not in scene.house.hot.viewers(scene.key))),
            (10.1, Ended("stop")),
        )
    finally:
        posts.let_go.set()
    assert lagging == [True]
    assert posts.held == ["stream.delta", "stream.lag"], "after that it is not tried until it resumes"
    assert set(waits) == {FAN_OUT_WAIT_MS / 1_000}, "and for the hint that it lags nobody waits"
    assert text_in(posts.read[PHONE.connection]) == "".join(tokens), "nobody else missed anything"
    shown = text_in(posts.read[LAPTOP.connection])
    assert 0 < len(shown) < len("".join(tokens))
    assert "".join(tokens).startswith(shown)
    page = scene.house.ok(
        LAPTOP, "stream.resume", conversation=scene.conversation, stream=scene.reply, epoch=0, offset=0
    )
    assert page["message"]["parts"] == [text_part("".join(tokens))]


def text_in(frames: Sequence[Frame]) -> str:
    """The text of the deltas, each of which goes on where the last one ended."""
    deltas = [frame for frame in frames if frame["type"] == "stream.delta"]
    assert [delta["at"] for delta in deltas] == list(range(len(deltas)))
    return "".join(op[2] for delta in deltas for op in delta["ops"] if op[0] == "text")


def test_a65_of_20_clients_that_vanished_nothing_is_left_after_one_idle_limit(house: House) -> None:
    """Users stayed online for ever when their network was lost: no disconnect ever came."""
    conversation = house.conversation()
    key = house.key(conversation)
    vanished = [Device(connection=f"vanished-{number}=") for number in range(20)]
    for device in vanished:
        house.ok(device, "conversation.subscribe", conversation=conversation)
    for _ in range(2):
        house.clock.ms += 240_000
        house.ok(PHONE, "conversation.subscribe", conversation=conversation)
    house.clock.ms += SUBSCRIPTION_MS - 480_000 - 1
    assert len(house.hot.viewers(key)) == 21
    house.clock.ms += 1
    assert house.hot.viewers(key) == (PHONE.connection,)
    house.message(conversation)
    assert {to for to, _ in house.push.frames} == {PHONE.connection}
    assert house.push.gone == set(), "no 410 told of it either"


def test_a65_in_valkey_a_lease_is_all_that_is_kept_of_a_viewer_and_ends_by_itself(valkey_single: Address) -> None:
    """The same of the real cache: the row itself has an end."""
    client = client_of(valkey_single, is_cluster=False)
    talk = Talk(hot_valkey(client))
    for number in range(20):
        talk.watch(f"vanished-{number}=", lease_ms=SUBSCRIPTION_MS)
    with Valkey(host=valkey_single.host, port=valkey_single.port) as any_server:
        server: Any = any_server
        assert server.zcard(HotKeys(talk.key).viewers) == 20
        assert 0 < server.pttl(HotKeys(talk.key).viewers) <= SUBSCRIPTION_MS
    client.close()


# --- the connection to the cache -------------------------------------------------------------------------------------


class Cancelled(BaseException):
    """Raised wherever the caller happens to be, as by a signal."""


def cancel(_signal: int, frame: FrameType | None) -> None:
    """Cancel what runs; a moment later where the library takes from its pool or gives back.

    There it would keep the lock, or a connection that nobody gets any more: faults of its own, of another kind.
    """
    under = set()
    while frame is not None:
        if "valkey" in frame.f_code.co_filename:
            under.add(frame.f_code.co_name)
        frame = frame.f_back
    if under & (POOL | {"disconnect"}) or ("execute_command" in under and "call_with_retry" not in under):
        signal.setitimer(signal.ITIMER_REAL, 0.0001)
        return
    raise Cancelled


@pytest.fixture
def cancelling() -> Iterator[None]:
    """A timer that runs out cancels what runs."""
    before = signal.signal(signal.SIGALRM, cancel)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("cancelling", "keys_of_no_tenant")
def test_a69_of_500_calls_cancelled_anywhere_none_leaves_its_reply_to_another_tenant(valkey_single: Address) -> None:
    """One user was shown another's data: a cancelled call had left its reply unread on a shared connection."""
    draw = random.Random(69)  # noqa: S311 -- a case that can be repeated
    with Relay(valkey_single) as relay, Valkey(host=valkey_single.host, port=valkey_single.port) as any_server:
        server: Any = any_server  # the library types it for async use too
        before = int(server.info("clients")["connected_clients"])
        client = client_of(relay.address, is_cluster=False)
        talk = Talk(hot_valkey(client))
        epoch = talk.written(b"[1]")
        mine = Resumed(epoch=epoch, at=0, log=(b"[1]",), offset=1, more=False, sealed=False)
        other, cancelled, foreign = f"{{{new_id()}}}", 0, 0
        while cancelled < 500:
            try:
                signal.setitimer(signal.ITIMER_REAL, draw.uniform(0.00001, 0.0015))
                client.command("EVAL", SLOW, 1, other)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except Cancelled:
                cancelled += 1
            foreign += talk.resume() != mine
        assert foreign == 0
        assert relay.accepted > 100, "those with a reply outstanding were closed"
        deadline_s = time.monotonic() + 5
        while int(server.info("clients")["connected_clients"]) > before + 1 and time.monotonic() < deadline_s:
            time.sleep(0.01)  # the relay closes the other side a moment later
        assert int(server.info("clients")["connected_clients"]) <= before + 1, "and none is left open"
        client.close()


def at_most_one_retry(relay: Relay, act: Callable[[], object]) -> object:
    """What a call gives, which needed at most one more connection."""
    accepted = relay.accepted
    verdict = act()
    assert relay.accepted - accepted <= 1
    return verdict


def test_a70_after_a_freeze_of_minutes_the_first_call_is_served(valkey_single: Address) -> None:
    """A frozen process kept a dead socket: the first calls after an idle spell failed."""
    with Relay(valkey_single) as relay:
        client = client_of(relay.address, is_cluster=False)
        talk = Talk(hot_valkey(client))
        epoch = talk.opened()
        relay.cut()  # what the other end does meanwhile; the frozen process notices nothing
        assert at_most_one_retry(relay, lambda: talk.append(epoch, 0)) == Accepted(1)
        client.close()


@pytest.mark.parametrize("old", ["demoted", "gone"])
def test_a70_another_node_behind_the_same_name_serves_the_next_call(tmp_path: Path, old: str) -> None:
    """Writes were refused as READONLY for ever after a failover; a swapped node was looked for where it had been."""
    with (
        running_valkey(tmp_path / "promoted", is_cluster=False) as promoted,
        running_valkey(tmp_path / "primary", is_cluster=False) as primary,
        Relay(primary) as relay,
        Valkey(host=primary.host, port=primary.port) as any_server,
    ):
        server: Any = any_server  # the library types it for async use too
        client = client_of(relay.address, is_cluster=False)
        talk = Talk(hot_valkey(client))
        epoch = talk.opened()
        relay._target = promoted
        if old == "demoted":
            server.replicaof(promoted.host, promoted.port)
        else:
            relay.cut()
        # What the promoted node does not know (replication lags) its producer says again, as after any loss.
        assert at_most_one_retry(relay, lambda: talk.append(epoch, 0)) == Unknown()
        reopened = at_most_one_retry(relay, lambda: talk.open(held=epoch))
        assert isinstance(reopened, Opened)
        assert talk.append(reopened.epoch, 0) == Accepted(1)
        client.close()
