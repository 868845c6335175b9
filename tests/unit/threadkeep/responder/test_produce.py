"""The producer's window and what it makes of each verdict."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from msgspec import UNSET, Raw

from tests.unit.threadkeep.responder.scene import Scene, hot_is_away, nothing
from threadkeep.domain.commands import AppendStream, CloseStream, OpenStream
from threadkeep.domain.errors import HotUnavailable, Refused, TierUnavailable
from threadkeep.domain.json_values import encode
from threadkeep.domain.model import StoredMessage
from threadkeep.domain.ops import BeginPart
from threadkeep.domain.streams import Facts, Seal, Writer
from threadkeep.responder.outbox import AnswerTooLarge
from threadkeep.responder.produce import Pace, Producer
from threadkeep.responder.transport import ProduceCommand

COMPLETE = Seal(status="complete")
TEXT = BeginPart(0, {"type": Raw(b'"text"'), "text": Raw(b'""')})


def opened(scene: Scene, **pace: float) -> Producer:
    producer = scene.producer(Pace(**pace))
    assert producer.open() is None
    producer.outbox.add(TEXT)
    return producer


def write(scene: Scene, producer: Producer, text: str) -> None:
    """Say something and wait until it is sent."""
    producer.outbox.grow(0, text)
    scene.time.sleep(producer.due_in_s())
    assert producer.send() is None


def raising(error: Exception, kind: type[ProduceCommand], *, times: int = 1) -> Any:
    """Fails that often, with commands of that kind."""
    left = [times]

    def fail(command: ProduceCommand) -> None:
        if isinstance(command, kind) and left[0] > 0:
            left[0] -= 1
            raise error

    return fail


# --- the window -----------------------------------------------------------------------------------------------------


def test_the_first_piece_goes_at_once_then_every_40_ms_for_a_second_then_every_250_ms(scene: Scene) -> None:
    producer = opened(scene)
    start_s = scene.time.now_s()
    for n in range(30):
        write(scene, producer, f"{n} ")
    at_s = [at_s - start_s for at_s, command in scene.transport.sent if isinstance(command, AppendStream)]
    assert at_s[0] == 0.0
    gaps = [later - earlier for earlier, later in itertools.pairwise(at_s)]
    assert gaps == pytest.approx([0.04] * 25 + [0.25] * 4, abs=1e-4)


def test_a_thousand_tokens_in_twenty_seconds_take_at_most_105_frames(scene: Scene) -> None:
    scene.watch()
    producer = opened(scene)
    for n in range(1_000):
        producer.outbox.grow(0, f" token{n}")
        until_s = scene.time.now_s() + 0.02
        while producer.due_in_s() <= until_s - scene.time.now_s():
            scene.time.sleep(producer.due_in_s())
            assert producer.send() is None
        scene.time.sleep(until_s - scene.time.now_s())
    assert producer.close(COMPLETE) == "settled"
    frames = scene.house.push.frames_of("phone=")
    assert 50 < len(frames) <= 105
    assert scene.text == "".join(f" token{n}" for n in range(1_000))


def test_what_fills_an_append_waits_for_no_window(scene: Scene) -> None:
    producer = opened(scene)
    write(scene, producer, "a")
    producer.outbox.grow(0, "x" * 20_000)
    assert producer.due_in_s() == 0
    assert producer.send() is None
    assert producer.due_in_s() == 0, "and the rest of it neither"


def test_with_nothing_to_say_it_beats_a_second_after_its_last_word(scene: Scene) -> None:
    producer = opened(scene)
    assert producer.due_in_s() == 0.0, "a part has begun"
    write(scene, producer, "a")
    assert producer.due_in_s() == pytest.approx(1.0)
    scene.time.sleep(1.0)
    assert producer.send() is None
    assert bytes(scene.transport.of(AppendStream)[-1].ops) == b"[]"
    assert producer.due_in_s() == pytest.approx(1.0)


# --- verdicts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_done", [False, True])
def test_an_append_whose_outcome_is_unknown_is_repeated_as_it_was(scene: Scene, *, is_done: bool) -> None:
    producer = opened(scene)
    write(scene, producer, "a")
    fail = raising(HotUnavailable("lost"), AppendStream, times=3)
    scene.transport.before, scene.transport.after = (nothing, fail) if is_done else (fail, nothing)
    for text in ("b", "c", "d", "e"):
        write(scene, producer, text)
    assert producer.close(COMPLETE) == "settled"
    assert scene.text == "abcde"
    repeated = [bytes(command.ops) for command in scene.transport.of(AppendStream)][1:5]
    assert repeated == [b'[["text",0,"b"]]'] * 4
    assert scene.transport.of(CloseStream)[-1].body is UNSET


def test_repeats_are_put_off_longer_each_time(scene: Scene) -> None:
    producer = opened(scene)
    write(scene, producer, "a")
    scene.transport.before = hot_is_away
    producer.outbox.grow(0, "b")
    pauses = []
    for _ in range(8):
        pauses.append(round(producer.due_in_s(), 3))
        scene.time.sleep(producer.due_in_s())
        producer.send()
    assert pauses[1:] == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]


def test_a_refusal_that_says_when_to_ask_again_is_heeded(scene: Scene) -> None:
    producer = scene.producer(Pace())
    full = Refused("rate_limited", "Too many live streams.", retry_after_ms=5_000)
    scene.transport.before = raising(full, OpenStream)
    assert producer.open() is None
    seconds = [at_s for at_s, command in scene.transport.sent if isinstance(command, OpenStream)]
    assert round(seconds[1] - seconds[0], 3) == 5.0


def test_once_it_is_through_it_is_patient_no_longer_and_needs_no_body(scene: Scene) -> None:
    producer = opened(scene)
    write(scene, producer, "a")
    for _ in range(2):
        scene.transport.before = raising(HotUnavailable("lost"), AppendStream, times=3)
        pauses = []
        for text in ("b", "c", "d", "e"):
            producer.outbox.grow(0, text)
            pauses.append(round(producer.due_in_s(), 3))
            scene.time.sleep(producer.due_in_s())
            assert producer.send() is None
        assert pauses[1:] == [0.1, 0.2, 0.4]
        write(scene, producer, ".")
    assert producer.close(COMPLETE) == "settled"
    assert scene.text == "abcde.bcde."
    assert [command.body for command in scene.transport.of(CloseStream)] == [UNSET]


def test_after_a_failover_to_an_older_state_it_goes_on_from_there(scene: Scene) -> None:
    producer = opened(scene)
    for text in ("a", "b", "c"):
        write(scene, producer, text)
    del scene.house.hot._conversations[scene.key].streams[scene.reply].log[1:]
    for text in ("d", "e"):
        write(scene, producer, text)
    assert producer.close(COMPLETE) == "settled"
    assert scene.text == "abcde"
    assert len(scene.transport.of(OpenStream)) == 1


def test_when_the_cache_was_lost_it_opens_with_its_epoch_and_says_everything_again(scene: Scene) -> None:
    scene.watch()
    producer = opened(scene)
    for text in ("a", "b"):
        write(scene, producer, text)
    held = scene.transport.of(AppendStream)[-1].epoch
    scene.lose_hot()
    scene.watch()
    write(scene, producer, "c")  # hears not_found
    write(scene, producer, "d")  # opens
    write(scene, producer, "e")
    assert producer.close(COMPLETE) == "settled"
    assert scene.text == "abcde"
    again = scene.transport.of(OpenStream)[-1]
    assert again.epoch == held
    anew = [command for command in scene.transport.of(AppendStream) if command.epoch > held]
    assert [command.offset for command in anew] == [0]
    assert b'["text",0,"abcde"]' in bytes(anew[0].ops), "in as few appends as it fits"
    assert again.producer == scene.transport.of(OpenStream)[0].producer
    assert scene.transport.of(AppendStream)[-1].epoch > held
    assert len(scene.frames("stream.opened")) == 2
    assert scene.stored.model == "scripted"


def test_what_diverged_is_written_anew(scene: Scene) -> None:
    producer = opened(scene)
    write(scene, producer, "a")
    log = scene.house.hot._conversations[scene.key].streams[scene.reply].log
    log.append(encode([["text", 0, "another's"]]))
    for text in ("b", "c", "d"):
        write(scene, producer, text)
    assert producer.close(COMPLETE) == "settled"
    assert scene.text == "abcd"


def test_fenced_by_its_own_late_open_it_opens_again(scene: Scene) -> None:
    producer = opened(scene)
    write(scene, producer, "a")
    opening = scene.transport.of(OpenStream)[0]
    held = scene.transport.of(AppendStream)[0].epoch
    scene.house.hot.open(
        scene.key,
        scene.reply,
        writer=Writer("ann", opening.producer),
        facts=Facts(parent=scene.question, role="assistant"),
        held=held,
    )
    for text in ("b", "c", "d"):
        write(scene, producer, text)
    assert producer.close(COMPLETE) == "settled"
    assert scene.text == "abcd"


def test_taken_over_by_another_run_it_ends(scene: Scene) -> None:
    producer = opened(scene)
    write(scene, producer, "a")
    scene.house.hot.open(
        scene.key,
        scene.reply,
        writer=Writer("ann", "another"),
        facts=Facts(parent=scene.question, role="assistant"),
        takeover=True,
    )
    write(scene, producer, "b")
    scene.time.sleep(producer.due_in_s())
    assert producer.send() == "fenced"
    assert scene.house.warm.read_message(scene.key, scene.reply) is None


def test_held_by_another_run_it_does_not_open(scene: Scene) -> None:
    opened(scene)
    assert scene.producer().open() == "held"


def test_an_opening_whose_reply_was_lost_is_repeated_by_the_same_run(scene: Scene) -> None:
    scene.transport.after = raising(HotUnavailable("lost"), OpenStream)
    producer = opened(scene)
    write(scene, producer, "a")
    assert producer.close(COMPLETE) == "settled"
    first, second = scene.transport.of(OpenStream)
    assert first.producer == second.producer
    assert scene.text == "a"


def test_closed_by_somebody_else_it_ends(scene: Scene) -> None:
    producer = opened(scene)
    write(scene, producer, "a")
    epoch = scene.transport.of(AppendStream)[-1].epoch
    scene.house.hot.seal(scene.key, scene.reply, principal="ann", epoch=epoch, offset=1, seal=Seal(status="stopped"))
    producer.outbox.grow(0, "b")
    scene.time.sleep(producer.due_in_s())
    assert producer.send() == "closed"
    assert producer.close(COMPLETE) == "closed"


@pytest.mark.parametrize("kind", [OpenStream, AppendStream, CloseStream])
def test_a_refusal_that_no_producer_can_heed_is_raised(scene: Scene, kind: type[ProduceCommand]) -> None:
    scene.transport.before = raising(Refused("unauthorized", "told to be"), kind)

    def produce() -> None:
        write(scene, opened(scene), "a")

    def close() -> None:
        producer = opened(scene)
        write(scene, producer, "a")
        producer.close(COMPLETE)

    with pytest.raises(Refused, match="told to be"):
        (close if kind is CloseStream else produce)()


def test_the_service_may_call_an_answer_too_large_and_it_ends_with_what_was_taken(scene: Scene) -> None:
    producer = opened(scene)
    write(scene, producer, "a")
    scene.transport.before = raising(Refused("too_large", "told to be"), AppendStream)
    producer.outbox.grow(0, "b" * 40_000)
    with pytest.raises(AnswerTooLarge):
        producer.send()
    assert producer.close(Seal(status="failed")) == "settled"
    assert scene.text == "a"


# --- closing --------------------------------------------------------------------------------------------------------


def test_a_close_whose_reply_was_lost_is_repeated_and_settles_once(scene: Scene) -> None:
    producer = opened(scene)
    write(scene, producer, "a")
    scene.transport.after = raising(TierUnavailable("lost"), CloseStream, times=3)
    assert producer.close(COMPLETE) == "settled"
    assert scene.text == "a"
    assert len(scene.transport.of(CloseStream)) == 4


def test_with_the_hot_tier_away_the_close_brings_the_whole_answer(scene: Scene) -> None:
    producer = opened(scene)
    for text in ("a", "b"):
        write(scene, producer, text)

    class Away:
        def __getattr__(self, _name: str) -> Any:
            raise HotUnavailable("away")

    scene.house.replace(hot=Away())
    scene.transport._transport = scene.new_transport()._transport
    for text in ("c", "d", "e"):
        write(scene, producer, text)
    assert producer.close(COMPLETE) == "settled"
    assert scene.text == "abcde"
    assert scene.stored.model == "scripted"
    stored = scene.house.warm.read_message(scene.key, scene.reply)
    assert isinstance(stored, StoredMessage)
    assert stored.epoch == scene.transport.of(AppendStream)[-1].epoch


def test_back_while_it_closes_the_hot_tier_is_told_the_rest(scene: Scene) -> None:
    producer = opened(scene)
    write(scene, producer, "a")
    scene.transport.before = raising(HotUnavailable("away"), AppendStream, times=1)
    write(scene, producer, "b")
    producer.outbox.grow(0, "c" * 40_000)
    assert producer.close(COMPLETE) == "settled"
    assert scene.text == "ab" + "c" * 40_000
    assert scene.transport.of(CloseStream)[0].body is not UNSET
    assert scene.transport.of(CloseStream)[-1].body is UNSET


def test_a_body_that_the_transport_cannot_carry_waits_for_the_hot_tier(scene: Scene) -> None:
    scene.transport.body_bytes_max = 100
    producer = opened(scene)
    write(scene, producer, "a" * 200)
    scene.transport.before = raising(HotUnavailable("away"), AppendStream, times=4)
    write(scene, producer, "b")
    assert producer.close(COMPLETE) == "settled"
    assert scene.text == "a" * 200 + "b"
    assert all(command.body is UNSET for command in scene.transport.of(CloseStream))


def test_an_answer_that_cannot_be_made_durable_is_given_up_within_its_patience(scene: Scene) -> None:
    producer = opened(scene)
    write(scene, producer, "a")
    scene.transport.before = hot_is_away
    start_s = scene.time.now_s()
    with pytest.raises(TierUnavailable):
        producer.close(COMPLETE)
    assert 40 < scene.time.now_s() - start_s <= 45
    assert len(scene.transport.of(CloseStream)) < 40
