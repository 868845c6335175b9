from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from typing import Self

import pytest

from tests.unit.client.fake_server import FakeServer, What
from tests.unit.client.fake_service import Json
from tests.unit.client.said import PIECES, TEXT
from tests.unit.client.virtual_time import now
from tests.unit.client.watching import Told
from threadkeep_client import Client, Producer, Viewer, ViewerSettings, new_id, text_of
from threadkeep_client.errors import ConnectionEndedError, NotFoundError, ThreadkeepError


class Watch(Told):
    """Watches over a connection of its own, and keeps what it is told."""

    def __init__(
        self, server: FakeServer, conversation: str, *, stream: str | None = None, since: str | None = None
    ) -> None:
        super().__init__()
        self.client = Client(server.url, "t")
        self._viewer = self.client.watch(conversation, stream=stream, since=since)
        self.texts: list[str] = []
        self.error: ThreadkeepError | None = None
        self._moved = asyncio.Condition()

    async def __aenter__(self) -> Self:
        await self.client.__aenter__()
        await self._viewer.__aenter__()
        self.task = asyncio.create_task(self._run())
        return self

    async def _run(self) -> None:
        try:
            async for update in self._viewer:
                async with self._moved:
                    self.updates.append(update)
                    if update.answer is not None and update.kind != "lost":
                        self.texts.append(update.answer.text)
                    self._moved.notify_all()
        except ThreadkeepError as error:
            self.error = error

    async def __aexit__(self, *_: object) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])
        await self._viewer.__aexit__()
        await self.client.__aexit__()
        if not self.task.cancelled():
            self.task.result()

    async def until(self, reached: Callable[[], bool], patience_s: float = 600) -> None:
        async with asyncio.timeout(patience_s), self._moved:
            await self._moved.wait_for(reached)


async def say(answer: Producer, pieces: list[str] = PIECES) -> None:
    for piece in pieces:
        await answer.text(piece)
        await answer.flush()


def is_settled(watch: Watch) -> Callable[[], bool]:
    return lambda: bool(watch.updates) and watch.updates[-1].kind == "settled"


# --- the ordinary way ------------------------------------------------------------------------------------------------


async def test_text_grows_exactly_as_it_is_written(server: FakeServer, client: Client, conversation: str) -> None:
    async with Watch(server, conversation) as watch, client.produce(conversation, parent=None) as answer:
        await say(answer)
        await answer.close()
        await watch.until(is_settled(watch))
    assert watch.kinds == ["opened", "delta", "settled"]
    assert watch.streamed() == watch.settled() == TEXT
    assert all(TEXT.startswith(text) for text in watch.texts)
    assert watch.texts == sorted(watch.texts, key=len)
    assert watch.updates[0].answer is not None
    assert (watch.updates[0].answer.role, watch.updates[0].answer.parent) == ("assistant", None)
    assert server.sent("stream.resume") == []


async def test_who_comes_late_is_told_the_state_and_then_what_is_live(
    server: FakeServer, client: Client, conversation: str
) -> None:
    async with client.produce(conversation, parent=None) as answer:
        await say(answer, PIECES[:4])
        async with Watch(server, conversation) as watch:
            await watch.until(lambda: watch.streamed() == "".join(PIECES[:4]))
            await say(answer, PIECES[4:])
            await answer.close()
            await watch.until(is_settled(watch))
    assert watch.kinds == ["opened", "delta", "settled"]
    assert watch.streamed() == watch.settled() == TEXT
    assert len(server.sent("stream.resume")) == 1


async def test_who_comes_before_the_first_piece_asks_for_nothing(
    server: FakeServer, client: Client, conversation: str
) -> None:
    async with client.produce(conversation, parent=None) as answer, Watch(server, conversation) as watch:
        await say(answer)
        await answer.close()
        await watch.until(is_settled(watch))
    assert watch.streamed() == TEXT
    assert server.sent("stream.resume") == []


async def test_messages_that_are_not_streamed_are_told_too(
    server: FakeServer, client: Client, conversation: str
) -> None:
    async with Watch(server, conversation) as watch:
        message = await client.create_message(conversation, "?", parent=None)
        await client.update_conversation(conversation, title="new")
        await server.tell(conversation, {"type": "conversation.deleted"})
        await watch.until(lambda: len(watch.updates) == 3)
    assert [update.kind for update in watch.updates] == ["created", "updated", "deleted"]
    assert watch.updates[0].message == message


async def test_parts_and_values_come_as_they_were_written(
    server: FakeServer, client: Client, conversation: str
) -> None:
    async with Watch(server, conversation) as watch, client.produce(conversation, parent=None) as answer:
        await answer.begin({"type": "chart", "points": [1, 1.0, 10**20, None, {"": "\0"}]})
        await answer.text("x")
        await answer.close()
        await watch.until(is_settled(watch))
    message = watch.updates[-1].message
    assert message is not None
    assert repr(message["parts"][0]) == repr({"type": "chart", "points": [1, 1.0, 10**20, None, {"": "\0"}]})


async def test_beats_keep_an_answer_from_seeming_silent(server: FakeServer, client: Client, conversation: str) -> None:
    async with Watch(server, conversation) as watch, client.produce(conversation, parent=None) as answer:
        await say(answer, PIECES[:1])
        await asyncio.sleep(120)
        assert watch.kinds == ["opened", "delta"]
    assert server.sent("stream.resume") == []


async def test_one_stream_is_watched_until_it_settles(server: FakeServer, client: Client, conversation: str) -> None:
    async with client.produce(conversation, parent=None) as first:
        await say(first)
        async with (
            Watch(server, conversation, stream=first.id) as watch,
            client.produce(conversation, parent=None, fork=True) as second,
        ):
            await say(second, ["another"])
            await first.close()
            await watch.task
    assert watch.kinds == ["opened", "delta", "settled"]
    assert {update.id for update in watch.updates} == {first.id}
    assert watch.settled() == TEXT


async def test_one_stream_that_has_settled_is_told_at_once(
    server: FakeServer, client: Client, conversation: str
) -> None:
    async with client.produce(conversation, parent=None) as answer:
        await say(answer)
    async with Watch(server, conversation, stream=answer.id) as watch:
        await watch.task
    assert watch.kinds == ["opened", "settled"]
    assert watch.settled() == TEXT


async def test_one_stream_may_be_watched_before_it_opens(server: FakeServer, client: Client, conversation: str) -> None:
    answer = client.produce(conversation, parent=None)
    async with Watch(server, conversation, stream=answer.id) as watch:
        await asyncio.sleep(30)
        async with answer:
            await say(answer)
        await watch.task
    assert watch.kinds == ["opened", "delta", "settled"]
    assert watch.streamed() == watch.settled() == TEXT


# --- frames doubled, lost, out of order ------------------------------------------------------------------------------


async def produce_watched(server: FakeServer, client: Client, conversation: str) -> Watch:
    async with Watch(server, conversation) as watch, client.produce(conversation, parent=None) as answer:
        await say(answer)
        await answer.close()
        await watch.until(is_settled(watch))
        await asyncio.sleep(60)
    return watch


async def test_doubled_frames_change_nothing(server: FakeServer, client: Client, conversation: str) -> None:
    server.mangle = lambda event: [event, event]
    watch = await produce_watched(server, client, conversation)
    assert watch.kinds == ["opened", "delta", "settled"]
    assert watch.streamed() == watch.settled() == TEXT


def swap_neighbours() -> Callable[[Json], Iterator[Json]]:
    held: list[Json] = []

    def mangle(event: Json) -> Iterator[Json]:
        held.append(event)
        if len(held) == 2:
            yield from reversed(held)
            held.clear()

    return mangle


async def test_frames_out_of_order_are_put_in_order(server: FakeServer, client: Client, conversation: str) -> None:
    server.mangle = swap_neighbours()
    async with Watch(server, conversation) as watch, client.produce(conversation, parent=None) as answer:
        await say(answer)
        await watch.until(lambda: watch.streamed() == TEXT)
    assert all(TEXT.startswith(text) for text in watch.texts)
    assert "restarted" not in watch.kinds


@pytest.mark.parametrize("lost", range(len(PIECES)))
async def test_a_lost_delta_is_read_again(server: FakeServer, client: Client, conversation: str, lost: int) -> None:
    server.mangle = lambda event: [] if event.get("at") == lost else [event]
    async with Watch(server, conversation) as watch, client.produce(conversation, parent=None) as answer:
        await say(answer)
        await watch.until(lambda: watch.streamed() == TEXT, patience_s=20)
    assert len(server.sent("stream.resume")) == 1


async def test_late_frames_of_a_settled_answer_are_ignored(
    server: FakeServer, client: Client, conversation: str
) -> None:
    events: list[Json] = []

    def remember(event: Json) -> list[Json]:
        events.append(event)
        return [event]

    server.mangle = remember
    async with Watch(server, conversation) as watch, client.produce(conversation, parent=None) as answer:
        await say(answer)
        await answer.close()
        await watch.until(is_settled(watch))
        told = len(watch.updates)
        for event in tuple(events):
            await server.tell(conversation, event)
        await asyncio.sleep(60)
        assert len(watch.updates) == told


async def test_a_lost_end_is_noticed_in_silence(server: FakeServer, client: Client, conversation: str) -> None:
    server.mangle = lambda event: [] if event["type"] == "message.created" else [event]
    async with Watch(server, conversation) as watch, client.produce(conversation, parent=None) as answer:
        await say(answer)
        await answer.close()
        begin = now()
        await watch.until(is_settled(watch))
        assert 14 < now() - begin < 17
    assert watch.settled() == TEXT
    assert len(server.sent("conversation.subscribe")) == 2


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_lost_message_shows_when_something_stands_under_it(
    server: FakeServer, client: Client, conversation: str, *, streamed: bool
) -> None:
    """It had no stream whose silence could tell, so its parent's absence must: not the renewal four minutes later."""
    async with Watch(server, conversation) as watch:
        first = await client.create_message(conversation, "first", parent=None)
        await watch.until(lambda: len(watch.updates) == 1)
        server.mangle = lambda event: [] if event["type"] == "message.created" else [event]
        lost = await client.create_message(conversation, "lost", parent=first["id"])
        server.mangle = lambda event: [event]
        begin = now()
        if streamed:
            async with client.produce(conversation, parent=lost["id"]) as answer:
                await say(answer)
        else:
            await client.create_message(conversation, "next", parent=lost["id"])
        await watch.until(lambda: lost["id"] in {update.id for update in watch.updates})
        assert now() - begin < 5
    assert len(server.sent("conversation.subscribe")) == 2


async def test_what_a_viewer_that_was_forgotten_missed_is_read_again(
    server: FakeServer, client: Client, conversation: str
) -> None:
    async with Watch(server, conversation) as watch, client.produce(conversation, parent=None) as answer:
        await say(answer, PIECES[:2])
        server.viewers[conversation].clear()
        await say(answer, PIECES[2:4])
        await asyncio.sleep(17)
        assert watch.streamed() == "".join(PIECES[:4])
        await say(answer, PIECES[4:])
        await answer.close()
        await watch.until(is_settled(watch))
    assert watch.settled() == TEXT


async def test_a_viewer_told_that_it_lags_resumes(server: FakeServer, client: Client, conversation: str) -> None:
    async with Watch(server, conversation) as watch, client.produce(conversation, parent=None) as answer:
        await say(answer, PIECES[:2])
        server.mangle = lambda event: [] if event["type"] == "stream.delta" else [event]
        await say(answer, PIECES[2:])
        await server.tell(conversation, {"type": "stream.lag", "stream": answer.id})
        await watch.until(lambda: watch.streamed() == TEXT, patience_s=2)


async def test_a_consumer_too_slow_for_its_inbox_loses_nothing(
    server: FakeServer, client: Client, conversation: str
) -> None:
    settings = ViewerSettings(frames_max=4)
    async with Client(server.url, "t") as slow, slow.watch(conversation, settings=settings) as viewer:
        question = await client.create_message(conversation, "?", parent=None)
        async with client.produce(conversation, parent=question["id"]) as answer:
            await say(answer)
        texts: dict[str, str] = {}
        async with asyncio.timeout(60):
            async for update in viewer:
                if update.message is not None:
                    texts[update.id] = text_of(update.message["parts"])
                if len(texts) == 2:
                    break
    assert texts == {question["id"]: "?", answer.id: TEXT}


# --- epochs ----------------------------------------------------------------------------------------------------------


async def test_another_epoch_drops_what_was_held(server: FakeServer, client: Client, conversation: str) -> None:
    async with Watch(server, conversation) as watch, client.produce(conversation, parent=None) as answer:
        await say(answer, PIECES[:4])
        server.service.streams.clear()
        await say(answer, PIECES[4:])
        await answer.close()
        await watch.until(is_settled(watch))
    assert watch.kinds[:3] == ["opened", "delta", "restarted"]
    assert watch.streamed() == watch.settled() == TEXT


async def test_nothing_of_the_former_log_stays(client: Client, server: FakeServer, conversation: str) -> None:
    """Whoever begins anew need not say the same again, nor in as many parts."""
    stream = new_id()
    opening: Json = {"message": stream, "parent": None, "role": "assistant", "producer": "p1"}

    async def begin(*ops: list[object], **held: int) -> int:
        place = await client.connection.request("stream.open", conversation=conversation, **opening, **held)
        fields: Json = {"conversation": conversation, "stream": stream, "epoch": place["epoch"], "offset": 0}
        await client.connection.request("stream.append", **fields, ops=ops)
        epoch: int = place["epoch"]
        return epoch

    async with Watch(server, conversation) as watch:
        epoch = await begin(["text", 0, "old"], ["text", 1, "older"])
        await watch.until(lambda: watch.streamed() == "oldolder")
        await begin(["text", 0, "new"], epoch=epoch)
        await watch.until(lambda: watch.streamed() == "new")
    assert watch.texts[-1] == "new"


async def test_an_epoch_that_is_over_is_ignored(server: FakeServer, client: Client, conversation: str) -> None:
    async with Watch(server, conversation) as watch, client.produce(conversation, parent=None) as answer:
        await say(answer, PIECES[:4])
        delta = {"type": "stream.delta", "stream": answer.id, "epoch": answer.epoch - 1, "at": 4, "next": 5}
        await server.tell(conversation, delta | {"ops": [["text", 0, "ZOMBIE"]]})
        await say(answer, PIECES[4:])
        await watch.until(lambda: watch.streamed() == TEXT)
    assert "ZOMBIE" not in "".join(watch.texts)
    assert server.sent("stream.resume") == []


async def test_a_stream_taken_over_with_its_log_goes_on(server: FakeServer, client: Client, conversation: str) -> None:
    async with Watch(server, conversation) as watch:
        answer = await client.produce(conversation, parent=None).open()
        await say(answer, PIECES[:4])
        await answer.abandon()
        opening: Json = {"message": answer.id, "parent": None, "role": "assistant", "producer": "p2", "takeover": True}
        place = await client.connection.request("stream.open", conversation=conversation, **opening)
        for offset, piece in enumerate(PIECES[4:], start=place["offset"]):
            await client.connection.request(
                "stream.append",
                conversation=conversation,
                stream=answer.id,
                epoch=place["epoch"],
                offset=offset,
                ops=[["text", 0, piece]],
            )
        await watch.until(lambda: watch.streamed() == TEXT)


async def test_a_stream_that_the_service_does_not_know_is_kept_for_a_minute(
    server: FakeServer, client: Client, conversation: str
) -> None:
    async with Watch(server, conversation) as watch:
        answer = await client.produce(conversation, parent=None).open()
        await say(answer, PIECES[:4])
        await answer.abandon()
        server.service.streams.clear()
        begin = now()
        await watch.until(lambda: watch.kinds[-1] == "lost")
        assert 60 + 15 <= now() - begin < 60 + 15 + 10
    assert watch.updates[-1].answer is not None
    assert watch.updates[-1].answer.text == "".join(PIECES[:4])
    assert 20 <= len(server.sent("stream.resume")) <= 65


async def test_a_stream_that_comes_back_within_the_minute_goes_on(
    server: FakeServer, client: Client, conversation: str
) -> None:
    async with Watch(server, conversation) as watch, client.produce(conversation, parent=None) as answer:
        await say(answer, PIECES[:4])
        server.service.streams.clear()
        server.refuse("stream.append", "unavailable", retryable=True, times=12)
        await asyncio.sleep(45)
        await say(answer, PIECES[4:])
        await answer.close()
        await watch.until(is_settled(watch))
    assert "lost" not in watch.kinds
    assert watch.streamed() == watch.settled() == TEXT


# --- cut sockets and refused requests --------------------------------------------------------------------------------


@pytest.mark.parametrize("cut_at", range(len(PIECES)))
async def test_a_socket_cut_in_the_middle(server: FakeServer, client: Client, conversation: str, cut_at: int) -> None:
    async with Watch(server, conversation) as watch, client.produce(conversation, parent=None) as answer:
        for place, piece in enumerate(PIECES):
            if place == cut_at:
                server.cut()
            await say(answer, [piece])
        await answer.close()
        await watch.until(is_settled(watch))
    assert watch.settled() == TEXT
    assert all(TEXT.startswith(text) for text in watch.texts)


@pytest.mark.parametrize("what", ["lose_request", "lose_reply", "gateway", "noise", "cut", "cut_after"])
async def test_resuming_survives_faults(server: FakeServer, client: Client, conversation: str, what: What) -> None:
    async with client.produce(conversation, parent=None) as answer:
        await say(answer, PIECES[:4])
        server.fail("stream.resume", what, times=3)
        async with Watch(server, conversation) as watch:
            await say(answer, PIECES[4:])
            await watch.until(lambda: watch.streamed() == TEXT, patience_s=120)


async def test_what_happened_while_away_is_caught_up_along_the_path(
    server: FakeServer, client: Client, conversation: str
) -> None:
    question = await client.create_message(conversation, "first", parent=None)
    async with Watch(server, conversation) as watch:
        server.mangle = lambda event: []  # noqa: ARG005 -- nobody hears anything
        leaf = question["id"]
        for number in range(3):
            leaf = (await client.create_message(conversation, f"missed {number}", parent=leaf))["id"]
        async with client.produce(conversation, parent=leaf) as answer:
            await say(answer)
        server.mangle = lambda event: [event]
        server.cut()
        await watch.until(lambda: len(watch.updates) == 4, patience_s=60)
        await asyncio.sleep(600)
        assert len(watch.updates) == 4
        assert len(server.sent("message.list")) == 1
    texts = [text_of(update.message["parts"]) for update in watch.updates if update.message]
    assert texts == ["missed 0", "missed 1", "missed 2", TEXT]


async def test_watching_since_a_message_tells_what_came_after_it(
    server: FakeServer, client: Client, conversation: str
) -> None:
    question = await client.create_message(conversation, "known", parent=None)
    newer = await client.create_message(conversation, "newer", parent=question["id"])
    async with client.produce(conversation, parent=newer["id"]) as answer:
        await say(answer, PIECES[:3])
        async with Watch(server, conversation, since=question["id"]) as watch:
            await watch.until(lambda: watch.streamed() == "".join(PIECES[:3]))
    assert sorted(update.kind for update in watch.updates) == ["created", "delta", "opened"]


async def test_catching_up_is_tried_again(server: FakeServer, client: Client, conversation: str) -> None:
    question = await client.create_message(conversation, "known", parent=None)
    await client.create_message(conversation, "newer", parent=question["id"])
    server.refuse("message.list", "unavailable", retryable=True, times=30)
    async with Watch(server, conversation, since=question["id"]) as watch:
        await watch.until(lambda: len(watch.updates) == 1)
    assert watch.updates[0].message is not None
    assert text_of(watch.updates[0].message["parts"]) == "newer"


async def test_a_conversation_that_is_gone_ends_the_watching(
    server: FakeServer, client: Client, conversation: str
) -> None:
    async with Watch(server, conversation) as watch:
        await client.create_message(conversation, "last", parent=None)
        await watch.until(lambda: len(watch.updates) == 1)
        server.service.conversations.clear()
        await watch.task
        assert isinstance(watch.error, NotFoundError)


async def test_closing_the_connection_ends_the_watching(server: FakeServer, client: Client, conversation: str) -> None:
    await client.ping()
    async with Watch(server, conversation) as watch:
        await watch.client.connection.close()
        async with asyncio.timeout(300):
            await watch.task
        assert isinstance(watch.error, ConnectionEndedError)


async def _exhaust(viewer: Viewer) -> None:
    async for _ in viewer:
        pass


async def test_a_cancelled_step_loses_nothing(server: FakeServer, client: Client, conversation: str) -> None:
    async with client.produce(conversation, parent=None) as answer:
        await say(answer, PIECES[:4])
        async with Client(server.url, "t") as other, other.watch(conversation) as viewer:
            server.fail("stream.resume", "lose_reply")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(_exhaust(viewer), 5)
            begin = now()
            async for update in viewer:
                assert update.answer is not None
                if update.answer.text == "".join(PIECES[:4]):
                    break
            assert now() - begin < 2


# --- larger than a frame ---------------------------------------------------------------------------------------------

LARGE = "".join(chr(0x4E00 + number % 20_000) for number in range(30_000))


async def test_a_large_answer_is_settled_by_reading_it(server: FakeServer, client: Client, conversation: str) -> None:
    async with Watch(server, conversation) as watch, client.produce(conversation, parent=None) as answer:
        await answer.text(LARGE)
        await answer.close()
        await watch.until(is_settled(watch))
    assert watch.settled() == watch.streamed() == LARGE
    assert watch.updates[-1].message is not None
    assert "bytes" not in watch.updates[-1].message
    assert watch.kinds == ["opened", "delta", "settled"]


async def test_a_large_answer_is_read_live_by_who_comes_late(
    server: FakeServer, client: Client, conversation: str
) -> None:
    async with client.produce(conversation, parent=None) as answer:
        await answer.text(LARGE)
        await answer.flush()
        async with Watch(server, conversation) as watch:
            await watch.until(lambda: watch.streamed() == LARGE)
            await answer.text("end")
            await answer.close()
            await watch.until(is_settled(watch))
    assert watch.settled() == LARGE + "end"


async def test_a_large_answer_whose_end_was_lost_is_read_as_it_settled(
    server: FakeServer, client: Client, conversation: str
) -> None:
    server.mangle = lambda event: [] if event["type"] == "message.created" else [event]
    async with Watch(server, conversation) as watch, client.produce(conversation, parent=None) as answer:
        await answer.text(LARGE)
        await answer.close()
        await watch.until(is_settled(watch))
    assert watch.settled() == LARGE


async def test_a_large_message_that_was_not_streamed(server: FakeServer, client: Client, conversation: str) -> None:
    await client.ping()
    async with Watch(server, conversation) as watch:
        message = server.service.put(
            "01900000-0000-7000-8000-00000000000a",
            conversation=conversation,
            parent=None,
            role="user",
            parts=[{"type": "text", "text": LARGE}],
        )
        short = {name: value for name, value in message.items() if name != "parts"} | {"bytes": 90_000}
        server.refuse("stream.resume", "not_found", times=3)
        await server.tell(conversation, {"type": "message.created", "message": short})
        await watch.until(lambda: bool(watch.updates))
    assert [update.kind for update in watch.updates] == ["created"]
    assert watch.settled() == LARGE


# --- all at once -----------------------------------------------------------------------------------------------------


def chaos(seed: int, held: list[Json]) -> Callable[[Json], Iterator[Json]]:
    dice = random.Random(seed)  # noqa: S311 -- which frames suffer

    def mangle(event: Json) -> Iterator[Json]:
        fate = dice.random()
        if fate < 0.1:
            held.append(event)
        elif fate > 0.15:
            yield event
            if fate > 0.9:
                yield event
        if held and dice.random() < 0.3:
            yield held.pop(dice.randrange(len(held)))

    return mangle


@pytest.mark.parametrize("seed", range(25))
async def test_no_mixture_of_faults_loses_doubles_or_swaps_a_character(
    server: FakeServer, client: Client, conversation: str, seed: int
) -> None:
    dice = random.Random(seed)  # noqa: S311 -- which faults strike
    server.mangle = chaos(seed, [])
    whats: list[What] = ["lose_request", "lose_reply", "gateway", "gateway_after", "noise", "cut", "cut_after"]
    strikes: list[Callable[[], Awaitable[None] | None]] = [
        server.cut,
        server.service.streams.clear,
        lambda: server.fail(dice.choice(["stream.append", "stream.resume", "stream.open"]), dice.choice(whats)),
        lambda: server.fail("stream.close", dice.choice(whats)),
    ]
    async with Watch(server, conversation) as watch, client.produce(conversation, parent=None) as answer:
        for number in range(30):
            if dice.random() < 0.25:
                dice.choice(strikes)()
            await answer.text(f"{number}:あ😀 ")
            await asyncio.sleep(dice.random())
        await answer.close()
        await watch.until(is_settled(watch))
    expected = "".join(f"{number}:あ😀 " for number in range(30))
    assert text_of(server.service.messages[answer.id].message["parts"]) == expected
    assert watch.settled() == expected
    assert expected.startswith(watch.streamed())
    assert all(expected.startswith(text) for text in watch.texts)
