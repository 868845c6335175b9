from __future__ import annotations

import asyncio
import uuid

import pytest

from tests.unit.client.fake_server import FakeServer, What
from tests.unit.client.said import PIECES, TEXT
from tests.unit.client.virtual_time import now
from threadkeep_client import Client, Outcome, Producer, ProducerSettings, StreamEndedError, Window, text_of
from threadkeep_client.errors import (
    BadRequestError,
    ConflictError,
    ConnectionEndedError,
    FencedError,
    NotFoundError,
    TooLargeError,
    UnauthorizedError,
    UnavailableError,
)
from threadkeep_client.frames import OPS_BYTES_MAX, json_bytes
from threadkeep_client.wire import Part


def stored(server: FakeServer, answer: Producer) -> str:
    return text_of(server.service.messages[answer.id].message["parts"])


def outcome(answer: Producer) -> Outcome:
    assert answer.outcome is not None
    return answer.outcome


async def say(answer: Producer, pieces: list[str] = PIECES) -> None:
    for piece in pieces:
        await answer.text(piece)
        await answer.flush()


# --- the ordinary way ------------------------------------------------------------------------------------------------


async def test_an_answer_is_durable_when_the_block_ends(server: FakeServer, client: Client, conversation: str) -> None:
    async with client.produce(conversation, parent=None, model="m", metadata={"n": 1.0}) as answer:
        await say(answer)
        assert answer.outcome is None
        await answer.close(usage={"output_tokens": 7})
    message = server.service.messages[answer.id].message
    assert outcome(answer) == Outcome(kind="settled", message=message)  # type: ignore[arg-type]
    assert message["usage"] == {"output_tokens": 7}
    assert message["status"] == "complete"
    assert message["parts"] == [{"type": "text", "text": TEXT}]
    opened = server.sent("stream.open")[0]
    facts = {"parent": None, "role": "assistant", "model": "m", "metadata": {"n": 1.0}}
    assert {name: opened[name] for name in facts} == facts
    assert "fork" not in opened


async def test_every_run_has_a_producer_id_of_its_own(server: FakeServer, client: Client, conversation: str) -> None:
    async with client.produce(conversation, parent=None) as first:
        pass
    async with client.produce(conversation, parent=first.id, fork=True):
        pass
    ids = [uuid.UUID(opened["producer"]) for opened in server.sent("stream.open")]
    assert len(set(ids)) == 2
    assert server.sent("stream.open")[1]["fork"] is True


async def test_one_append_is_in_flight_and_what_is_said_meanwhile_waits(
    server: FakeServer, client: Client, conversation: str
) -> None:
    async with client.produce(conversation, parent=None) as answer:
        server.fail("stream.append", "lose_reply")
        for piece in PIECES:
            await answer.text(piece)
            await asyncio.sleep(1)
        assert len(server.sent("stream.append")) == 1
    appends = server.sent("stream.append")
    assert [append["offset"] for append in appends] == [0, 0, 1]
    assert appends[0] == appends[1]
    assert stored(server, answer) == TEXT


async def test_a_thousand_tokens_in_twenty_seconds_take_at_most_105_frames(
    server: FakeServer, client: Client, conversation: str
) -> None:
    arrivals: list[float] = []
    server.on_request = lambda request: arrivals.append(now()) if request["action"] == "stream.append" else None
    async with client.produce(conversation, parent=None) as answer:
        begin = now()
        for number in range(1_000):
            await answer.text(f"token {number} ")
            await asyncio.sleep(0.02)
    assert arrivals[0] - begin < 0.01
    assert 90 <= len(arrivals) <= 105
    early = [at for at in arrivals if at - begin < 1.0]
    assert 20 <= len(early) <= 27


async def test_the_window_is_settable(server: FakeServer, client: Client, conversation: str) -> None:
    settings = ProducerSettings(window=Window(early_s=2.0, early_for_s=0.0, late_s=2.0))
    async with client.produce(conversation, parent=None, settings=settings) as answer:
        for _ in range(100):
            await answer.text("x")
            await asyncio.sleep(0.1)
    assert 5 <= len(server.sent("stream.append")) <= 7


async def test_silence_is_broken_by_beats(server: FakeServer, client: Client, conversation: str) -> None:
    async with client.produce(conversation, parent=None) as answer:
        await asyncio.sleep(25)
        await answer.text("late")
        await asyncio.sleep(15)
    assert [append["ops"] for append in server.sent("stream.append")] == [
        [],
        [],
        [["part", 0, {"type": "text", "text": ""}], ["text", 0, "late"]],
        [],
    ]
    assert stored(server, answer) == "late"


@pytest.mark.parametrize("character", ["a", "ä", "あ", "😀", "\n", "\0", '"'])
async def test_appends_are_bounded_in_bytes(
    server: FakeServer, client: Client, conversation: str, character: str
) -> None:
    text = character * 30_000
    async with client.produce(conversation, parent=None) as answer:
        await answer.text(text)
    sizes = [json_bytes(append["ops"]) for append in server.sent("stream.append")]
    assert max(sizes) <= OPS_BYTES_MAX
    assert stored(server, answer) == text


async def test_half_surrogates_wait_for_their_other_half(server: FakeServer, client: Client, conversation: str) -> None:
    async with client.produce(conversation, parent=None) as answer:
        await say(answer, ["a\ud83d", "\ude00b", "\ud83d", "c\ud83d"])
    assert stored(server, answer) == "a😀b\ufffdc\ufffd"


async def test_parts_of_every_kind(server: FakeServer, client: Client, conversation: str) -> None:
    async with client.produce(conversation, parent=None) as answer:
        await answer.reasoning("hm, ")
        await answer.reasoning("numbers")
        call = await answer.begin({"type": "tool_call", "call_id": "c", "name": "add", "arguments": ""})
        await answer.append(call, '{"a": 1, ')
        await answer.append(call, '"b": 2.0}')
        await answer.set(call, state="done")
        result = await answer.begin({"type": "tool_result", "call_id": "c", "output": ""})
        await answer.append(result, "3")
        await answer.begin({"type": "chart", "points": [1, 1.0, 10**20, None]})
        await answer.text("It is ")
        await answer.text("3.")
        await answer.meta(tools=1)
        said = answer.parts
    parts = server.service.messages[answer.id].message["parts"]
    assert parts == said
    assert parts == [
        {"type": "reasoning", "text": "hm, numbers"},
        {"type": "tool_call", "call_id": "c", "name": "add", "arguments": '{"a": 1, "b": 2.0}', "state": "done"},
        {"type": "tool_result", "call_id": "c", "output": "3"},
        {"type": "chart", "points": [1, 1.0, 10**20, None]},
        {"type": "text", "text": "It is 3."},
    ]
    with pytest.raises(IndexError, match="part 9"):
        await answer.append(9, "x")


async def test_an_answer_without_content_has_no_part(server: FakeServer, client: Client, conversation: str) -> None:
    async with client.produce(conversation, parent=None) as answer:
        await answer.text("")
    assert server.service.messages[answer.id].message["parts"] == []
    assert server.sent("stream.append") == []


async def test_writing_waits_while_too_much_waits(server: FakeServer, client: Client, conversation: str) -> None:
    settings = ProducerSettings(unsent_bytes_max=40_000)
    async with client.produce(conversation, parent=None, settings=settings) as answer:
        await answer.text("begin")
        await answer.flush()
        server.fail("stream.append", "lose_request")
        begin = now()
        await answer.text("x" * 100_000)
        assert now() - begin >= 10
    assert stored(server, answer) == "begin" + "x" * 100_000


async def test_closing_again_gives_the_same_outcome(server: FakeServer, client: Client, conversation: str) -> None:
    answer = await client.produce(conversation, parent=None).open()
    await say(answer)
    first = await answer.close("stopped")
    assert await answer.close("failed") is first
    assert len(server.sent("stream.close")) == 1
    with pytest.raises(StreamEndedError):
        await answer.text("more")
    with pytest.raises(StreamEndedError):
        await answer.flush()


async def test_a_close_that_nobody_waits_for_any_more_goes_on(
    server: FakeServer, client: Client, conversation: str
) -> None:
    answer = await client.produce(conversation, parent=None).open()
    await say(answer)
    server.fail("stream.close", "lose_request")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(answer.close(), 1)
    assert (await answer.close()).kind == "settled"
    assert stored(server, answer) == TEXT


async def test_writing_before_it_is_open_is_a_mistake(client: Client, conversation: str) -> None:
    answer = client.produce(conversation, parent=None)
    with pytest.raises(RuntimeError, match="between open and close"):
        await answer.text("x")
    with pytest.raises(RuntimeError, match="opened before"):
        await answer.close()


# --- lost replies, cut sockets, the gateway --------------------------------------------------------------------------

FAULTS: list[What] = ["lose_request", "lose_reply", "gateway", "gateway_after", "noise", "cut", "cut_after"]


@pytest.mark.parametrize("what", FAULTS)
@pytest.mark.parametrize("action", ["stream.open", "stream.append", "stream.close"])
async def test_no_fault_loses_or_doubles_a_character(
    server: FakeServer, client: Client, conversation: str, action: str, what: What
) -> None:
    server.fail(action, what, times=3)
    async with client.produce(conversation, parent=None) as answer:
        await say(answer)
    assert outcome(answer).kind == "settled"
    assert stored(server, answer) == TEXT
    assert len(server.service.messages) == 1


async def test_a_socket_cut_in_the_middle(server: FakeServer, client: Client, conversation: str) -> None:
    async with client.produce(conversation, parent=None) as answer:
        for number, piece in enumerate(PIECES):
            if number % 2:
                server.cut()
            await answer.text(piece)
            await answer.flush()
    assert stored(server, answer) == TEXT


async def test_a_gap_is_filled_from_where_it_begins(server: FakeServer, client: Client, conversation: str) -> None:
    async with client.produce(conversation, parent=None) as answer:
        await say(answer, PIECES[:4])
        del server.service.streams[answer.id].log[1:]
        await say(answer, PIECES[4:])
    assert [append["offset"] for append in server.sent("stream.append")][:9] == [0, 1, 2, 3, 4, 1, 2, 3, 4]
    assert len(server.sent("stream.open")) == 1
    assert stored(server, answer) == TEXT


async def test_a_gap_at_the_close_is_filled_too(server: FakeServer, client: Client, conversation: str) -> None:
    async with client.produce(conversation, parent=None) as answer:
        await say(answer)
        del server.service.streams[answer.id].log[3:]
    assert stored(server, answer) == TEXT


@pytest.mark.parametrize("expected", [99, -1, None, "1"])
async def test_a_gap_that_makes_no_sense_means_to_say_everything_again(
    server: FakeServer, client: Client, conversation: str, expected: object
) -> None:
    async with client.produce(conversation, parent=None) as answer:
        await say(answer, PIECES[:3])
        server.refuse("stream.append", "gap", detail={"expected": expected})
        await say(answer, PIECES[3:])
    assert len(server.sent("stream.open")) == 2
    assert stored(server, answer) == TEXT


@pytest.mark.parametrize("at_close", [False, True])
async def test_a_lost_cache_is_told_everything_again(
    server: FakeServer, client: Client, conversation: str, *, at_close: bool
) -> None:
    async with client.produce(conversation, parent=None) as answer:
        await say(answer, PIECES[:4])
        epoch = answer.epoch
        if not at_close:
            server.service.streams.clear()
        await say(answer, PIECES[4:])
        if at_close:
            server.service.streams.clear()
    assert stored(server, answer) == TEXT
    assert server.sent("stream.open")[1] == {
        **server.sent("stream.open")[0],
        "ref": server.sent("stream.open")[1]["ref"],
        "epoch": epoch,
    }
    assert answer.epoch > epoch
    anew = [append["offset"] for append in server.sent("stream.append") if append["epoch"] == answer.epoch]
    assert anew == list(range(len(anew)))


async def test_its_own_late_open_may_have_fenced_it(server: FakeServer, client: Client, conversation: str) -> None:
    async with client.produce(conversation, parent=None) as answer:
        await say(answer, PIECES[:4])
        stream = server.service.streams[answer.id]
        stream.epoch += 5
        stream.log = []
        await say(answer, PIECES[4:])
    assert answer.epoch > stream.epoch - 1
    assert stored(server, answer) == TEXT


async def test_a_log_that_differs_is_begun_anew(server: FakeServer, client: Client, conversation: str) -> None:
    async with client.produce(conversation, parent=None) as answer:
        await say(answer, PIECES[:3])
        log = server.service.streams[answer.id].log
        log[1:] = [b'[["text",0,"other"]]', b'[["text",0,"other"]]', b'[["text",0,"other"]]']
        await say(answer, PIECES[3:])
    assert len(server.sent("stream.open")) == 2
    assert stored(server, answer) == TEXT


async def test_a_log_that_is_longer_than_said_is_begun_anew(
    server: FakeServer, client: Client, conversation: str
) -> None:
    async with client.produce(conversation, parent=None) as answer:
        await say(answer)
        server.service.streams[answer.id].log.append(b'[["text",0,"other"]]')
    assert stored(server, answer) == TEXT


# --- ends ------------------------------------------------------------------------------------------------------------


async def test_a_reader_that_stops_the_answer_ends_the_block(
    server: FakeServer, client: Client, conversation: str
) -> None:
    generated = 0
    async with client.produce(conversation, parent=None) as answer:
        await say(answer, PIECES[:3])
        message = await server.service.settle(conversation, answer.id, "stopped")
        for _ in range(1_000):
            generated += 1
            await answer.text("never kept")
            await asyncio.sleep(0.1)
    assert generated < 10
    assert answer.outcome == Outcome(kind="closed", message=message)  # type: ignore[arg-type]
    assert stored(server, answer) == "".join(PIECES[:3])


async def test_a_stop_in_silence_is_heard_with_the_next_beat(
    server: FakeServer, client: Client, conversation: str
) -> None:
    async with client.produce(conversation, parent=None) as answer:
        await server.service.settle(conversation, answer.id, "stopped")
        await asyncio.sleep(11)
        assert outcome(answer).kind == "closed"


async def test_a_stop_before_the_close_is_the_outcome(server: FakeServer, client: Client, conversation: str) -> None:
    async with client.produce(conversation, parent=None) as answer:
        await say(answer)
        await server.service.settle(conversation, answer.id, "stopped")
    assert (outcome(answer).kind, server.service.messages[answer.id].message["status"]) == ("closed", "stopped")


async def test_an_answer_that_is_there_already_is_not_written(
    server: FakeServer, client: Client, conversation: str
) -> None:
    async with client.produce(conversation, parent=None) as first:
        await say(first)
    again = client.produce(conversation, parent=None, message=first.id)
    with pytest.raises(StreamEndedError) as ended:
        await again.open()
    assert ended.value.outcome.kind == "closed"
    assert ended.value.outcome.message == server.service.messages[first.id].message
    await again.abandon()


async def test_an_answer_that_another_run_writes_is_left_to_it(
    server: FakeServer, client: Client, conversation: str
) -> None:
    async with client.produce(conversation, parent=None) as first:
        with pytest.raises(StreamEndedError) as ended:
            await client.produce(conversation, parent=None, message=first.id).open()
        assert ended.value.outcome == Outcome(kind="held")
        await say(first)
    assert stored(server, first) == TEXT


async def test_an_answer_that_was_taken_over_ends(server: FakeServer, client: Client, conversation: str) -> None:
    async with client.produce(conversation, parent=None) as answer:
        await say(answer, PIECES[:3])
        await client.connection.request(
            "stream.open",
            conversation=conversation,
            message=answer.id,
            parent=None,
            role="assistant",
            producer="another",
            takeover=True,
        )
        await answer.text("never kept")
        await asyncio.sleep(30)
        with pytest.raises(StreamEndedError):
            await answer.text("never kept either")
    assert answer.outcome == Outcome(kind="fenced")
    assert len(server.service.streams[answer.id].log) == 3


async def test_reopening_is_bounded(server: FakeServer, client: Client, conversation: str) -> None:
    server.refuse("stream.append", "fenced", times=100)
    answer = await client.produce(conversation, parent=None).open()
    await answer.text("x")
    with pytest.raises(FencedError):
        await answer.close()
    assert len(server.sent("stream.append")) == ProducerSettings().reopenings_max + 1


async def test_a_parent_that_is_not_the_leaf_is_told(client: Client, conversation: str) -> None:
    question = await client.create_message(conversation, "?", parent=None)
    with pytest.raises(ConflictError) as refused:
        await client.produce(conversation, parent=None).open()
    assert refused.value.detail["leaf"] == question["id"]


async def raise_in_block(answer: Producer, error: Exception) -> None:
    async with answer:
        await answer.text("so far")
        await answer.flush()
        raise error


async def test_a_block_that_raises_leaves_a_failed_answer(
    server: FakeServer, client: Client, conversation: str
) -> None:
    answer = client.produce(conversation, parent=None)
    with pytest.raises(ZeroDivisionError):
        await raise_in_block(answer, ZeroDivisionError("with something private"))
    message = server.service.messages[answer.id].message
    assert (message["status"], message["error"]) == ("failed", {"code": "ZeroDivisionError"})
    assert text_of(message["parts"]) == "so far"


async def test_a_cancelled_block_leaves_an_interrupted_answer(
    server: FakeServer, client: Client, conversation: str
) -> None:
    async def work() -> None:
        async with client.produce(conversation, parent=None) as answer:
            await answer.text("so far")
            await asyncio.sleep(1_000)

    task = asyncio.create_task(work())
    await asyncio.sleep(5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (kept,) = server.service.messages.values()
    assert (kept.message["status"], text_of(kept.message["parts"])) == ("interrupted", "so far")


async def test_what_the_block_raised_is_not_hidden_by_a_close_that_fails(
    server: FakeServer, client: Client, conversation: str
) -> None:
    begin = now()
    server.refuse("stream.close", "unavailable", retryable=True, times=1_000)
    with pytest.raises(ZeroDivisionError) as raised:
        await raise_in_block(client.produce(conversation, parent=None), ZeroDivisionError())
    assert now() - begin < 10
    assert "could not be closed" in raised.value.__notes__[0]


# --- outages ---------------------------------------------------------------------------------------------------------


async def test_an_answer_outlasts_an_outage(server: FakeServer, client: Client, conversation: str) -> None:
    async with client.produce(conversation, parent=None) as answer:
        await say(answer, PIECES[:3])
        server.refuse("stream.append", "unavailable", retryable=True, times=30)
        begin = now()
        await say(answer, PIECES[3:])
        assert now() - begin > 25
    assert stored(server, answer) == TEXT


async def test_without_the_hot_tier_a_complete_answer_is_closed_whole(
    server: FakeServer, client: Client, conversation: str
) -> None:
    async with client.produce(conversation, parent=None, model="m", metadata={"a": 1}) as answer:
        await say(answer, PIECES[:3])
        server.service.hot_away = True
        for piece in PIECES[3:]:
            await answer.text(piece)
        await answer.meta(b=2)
        begin = now()
    assert 10 < now() - begin < 25
    message = server.service.messages[answer.id].message
    assert (text_of(message["parts"]), message["model"], message["metadata"]) == (TEXT, "m", {"a": 1, "b": 2})
    assert answer.outcome == Outcome(kind="settled", message=message)  # type: ignore[arg-type]


async def test_a_hot_tier_that_comes_back_before_the_close_gets_the_rest(
    server: FakeServer, client: Client, conversation: str
) -> None:
    server.on_request = lambda request: server.heal() if request["action"] == "stream.close" else None
    async with client.produce(conversation, parent=None) as answer:
        await say(answer, PIECES[:3])
        server.refuse("stream.append", "unavailable", retryable=True, times=1_000)
        for piece in PIECES[3:]:
            await answer.text(piece)
    first, last = server.sent("stream.close")
    assert ("body" in first, "body" in last) == (True, False)
    assert first["offset"] == last["offset"] == 4
    assert stored(server, answer) == TEXT


async def test_an_outage_without_end_is_told(server: FakeServer, client: Client, conversation: str) -> None:
    answer = await client.produce(conversation, parent=None, settings=ProducerSettings(outage_s=60)).open()
    server.refuse("stream.append", "unavailable", retryable=True, times=1_000)
    await answer.text("x" * 50_000)
    begin = now()
    with pytest.raises(UnavailableError):
        await answer.flush()
    assert 60 <= now() - begin < 105
    with pytest.raises(UnavailableError):
        await answer.text("more")
    with pytest.raises(UnavailableError):
        await answer.close()


async def test_what_no_repeat_can_mend_is_told_at_once(server: FakeServer, client: Client, conversation: str) -> None:
    server.refuse("stream.append", "bad_request")
    answer = await client.produce(conversation, parent=None).open()
    await answer.text("x")
    with pytest.raises(BadRequestError):
        await answer.close()
    server.refuse("stream.open", "unauthorized")
    with pytest.raises(UnauthorizedError):
        await client.produce(conversation, parent=None, fork=True).open()


async def test_a_conversation_that_is_gone(server: FakeServer, client: Client, conversation: str) -> None:
    answer = await client.produce(conversation, parent=None).open()
    await answer.text("x")
    server.service.conversations.clear()
    with pytest.raises(NotFoundError):
        await answer.close()


async def test_an_abandoned_answer_says_so(client: Client, conversation: str) -> None:
    answer = await client.produce(conversation, parent=None).open()
    await answer.abandon()
    with pytest.raises(ConnectionEndedError, match="abandoned"):
        await answer.text("x")


async def test_a_part_that_no_append_can_carry(client: Client, conversation: str) -> None:
    part: Part = {"type": "data", "blob": "x" * 20_000}
    async with client.produce(conversation, parent=None) as answer:
        with pytest.raises(TooLargeError):
            await answer.begin(part)
        assert await answer.begin({"type": "data"}) == 0
