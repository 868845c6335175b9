"""Two producers, a network that loses, delays and doubles frames, a cache that forgets: every hot tier and a model.

Each frame is judged by the memory reference, by real Valkey and by the model, which have to agree. The producers
follow docs/protocol.md, section 3.1; whatever happened before, an answer that is sealed is exactly its producer's.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from valkey import Valkey

from local.state import Address
from tests.support.hot import REGION, ROOT, SystemClock, Talk, client_of, hot_valkey
from tests.support.stream_model import Model, Verdict
from threadkeep.domain.streams import (
    Accepted,
    Closed,
    Diverged,
    Duplicate,
    Fenced,
    Gap,
    Held,
    Opened,
    Resumed,
    Sealed,
    Unknown,
    Writer,
)
from threadkeep.stores.hot_keys import HotKeys
from threadkeep.stores.hot_memory import HotMemory

FUTURE_MS: Final = 1_000_000
"""How far an epoch that was never given out lies ahead."""


class Open(msgspec.Struct, frozen=True):
    """A frame; ``held`` and ``epoch`` of frames are numbers of the model."""

    writer: Writer
    held: int | None
    takeover: bool


class Append(msgspec.Struct, frozen=True):
    principal: str
    epoch: int
    offset: int
    ops: bytes


class Close(msgspec.Struct, frozen=True):
    principal: str
    epoch: int
    offset: int


class Resume(msgspec.Struct, frozen=True):
    epoch: int
    offset: int


Frame = Open | Append | Close | Resume


class Tier:
    """A hot tier under test, with its own epochs put as the model numbers them."""

    def __init__(self, talk: Talk) -> None:
        self.talk = talk
        self.epochs = [0]

    def ask(self, frame: Frame) -> Verdict:
        """What it says, in the model's words."""
        talk = self.talk
        match frame:
            case Open(writer, held, takeover):
                known = None if held is None else self._real(held)
                verdict: Any = talk.open(writer=writer, facts=ROOT, held=known, takeover=takeover, fork=True)
            case Append(principal, epoch, offset, ops):
                verdict = talk.append(self._real(epoch), offset, ops, principal=principal)
            case Close(principal, epoch, offset):
                verdict = talk.seal(self._real(epoch), offset, principal=principal)
            case Resume(epoch, offset):
                verdict = talk.resume(self._real(epoch), offset)
        return self._in_words(verdict)

    def begin(self) -> None:
        """Turn to a new stream of a new conversation."""
        self.talk, self.epochs = Talk(self.talk.hot), [0]

    def lose(self) -> None:
        """Forget the conversation, as a cache that was lost."""
        raise NotImplementedError

    def _real(self, number: int) -> int:
        return self.epochs[number] if number < len(self.epochs) else self.epochs[-1] + FUTURE_MS

    def _number(self, epoch: int) -> int:
        if epoch not in self.epochs:
            assert epoch > self.epochs[-1], "an epoch fell"
            self.epochs.append(epoch)
        return self.epochs.index(epoch)

    def _in_words(self, verdict: Any) -> Verdict:
        match verdict:
            case Opened(epoch, offset, fresh):
                return ("opened", self._number(epoch), offset, fresh)
            case Accepted(after) | Duplicate(after):
                return (type(verdict).__name__.lower(), after)
            case Gap(expected):
                return ("gap", expected)
            case Sealed(log=log, settled=settled):
                return ("sealed", log, settled)
            case Resumed(epoch=epoch, at=at, log=log, sealed=sealed):
                return ("resumed", self._number(epoch), at, log, sealed)
            case Closed() | Diverged() | Fenced() | Held() | Unknown():
                return (type(verdict).__name__.lower(),)
        raise AssertionError(f"no such verdict here: {verdict}")


class Memory(Tier):
    def lose(self) -> None:
        hot = self.talk.hot
        assert isinstance(hot, HotMemory)
        hot._conversations.clear()


class Real(Tier):
    def __init__(self, talk: Talk, server: Any) -> None:
        super().__init__(talk)
        self._server = server

    def lose(self) -> None:
        keys, stream = HotKeys(self.talk.key), self.talk.stream
        self._server.delete(keys.register, keys.live, keys.viewers, keys.state(stream), keys.log(stream))


class Producer:
    """A run of a program that writes the answer, by the rules of section 3.1.

    Attributes:
        batches: what it holds: all that it wrote or, after a takeover, found.
        epoch: the one it was given (0: none yet).
        at: where its next append goes; those below are acknowledged.
        must_open: it was told to open again, naming its epoch, and send everything.
        over: it was told that the stream is no longer its own.
    """

    def __init__(self, name: str, principal: str) -> None:
        self.name = name
        self.writer = Writer(principal, name)
        self.batches: list[bytes] = []
        self.epoch = 0
        self.at = 0
        self.must_open = True
        self.over = False

    def opening(self, *, takeover: bool = True) -> Open:
        return Open(self.writer, self.epoch or None, takeover=takeover and not self.epoch)

    def next_append(self) -> Append:
        if self.at == len(self.batches):
            self.batches.append(f"[{self.name} {self.at}]".encode())
        return Append(self.writer.principal, self.epoch, self.at, self.batches[self.at])

    def closing(self) -> Close:
        return Close(self.writer.principal, self.epoch, self.at)

    def hear(self, verdict: Verdict) -> None:
        """What it makes of a reply to a frame that was its latest."""
        match verdict:
            case ("opened", int(epoch), int(at), _):
                self.epoch, self.at, self.must_open = epoch, at, False
            case ("accepted" | "duplicate" | "gap", int(at)):
                self.at = at
            case ("unknown" | "diverged" | "fenced",):
                self.over = self.must_open
                self.must_open = True
            case ("closed" | "held",):
                self.over = True


class Streams(RuleBasedStateMachine):
    """What can happen to a stream."""

    tiers: list[Tier]

    def __init__(self, tiers: list[Tier]) -> None:
        super().__init__()
        self.tiers = tiers
        self._begin()

    def _begin(self) -> None:
        self.model = Model()
        self.sent: list[Frame] = []
        self.runs = 0
        self.producers = [self._new_producer("ann"), self._new_producer("ann")]
        for tier in self.tiers:
            tier.begin()

    # --- the producers ---

    @rule(who=st.integers(0, 1), is_heard=st.booleans())
    def step(self, who: int, *, is_heard: bool) -> None:
        """A producer sends what is next; its reply may be lost, and then it sends the same again."""
        producer = self.producers[who]
        if producer.over:
            return
        if producer.must_open:
            self._open(producer, is_heard=is_heard)
            return
        verdict = self._deliver(producer.next_append())
        if is_heard:
            producer.hear(verdict)

    @rule(who=st.integers(0, 1))
    def write_much(self, who: int) -> None:
        for _ in range(3):
            self.step(who, is_heard=True)

    @rule(who=st.integers(0, 1))
    def open_without_taking_over(self, who: int) -> None:
        producer = self.producers[who]
        if not producer.over and producer.must_open:
            self._open(producer, is_heard=True, takeover=False)

    @rule(who=st.integers(0, 1))
    def lose_a_frame_on_the_way(self, who: int) -> None:
        """It may come yet, late."""
        producer = self.producers[who]
        if not producer.over:
            self.sent.append(producer.opening() if producer.must_open else producer.next_append())

    @rule(who=st.integers(0, 1), principal=st.sampled_from(["ann", "bob"]))
    def restart(self, who: int, principal: str) -> None:
        """A run dies; another one takes the stream over."""
        self.producers[who] = self._new_producer(principal)

    @rule(who=st.integers(0, 1), is_heard=st.booleans(), chance=st.integers(0, 2))
    def close(self, who: int, chance: int, *, is_heard: bool) -> None:
        """Once all is acknowledged, for which it repeats what it has to."""
        producer = self.producers[who]
        if chance:
            return
        while not producer.over and (producer.must_open or producer.at < len(producer.batches)):
            self.step(who, is_heard=True)
        if producer.over:
            return
        verdict = self._deliver(producer.closing())
        if verdict[0] == "sealed" and not verdict[2]:
            # the acknowledged appends of the final epoch, in order, once
            assert verdict[1] == tuple(producer.batches)
        if is_heard:
            producer.hear(verdict)

    # --- the network, strangers, the cache ---

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def deliver_a_frame_of_before(self, data: st.DataObject) -> None:
        """Late, or once more; nobody hears the reply."""
        self._deliver(data.draw(st.sampled_from(self.sent)))

    @rule(
        principal=st.sampled_from(["", "", "ann", "bob"]),
        behind=st.sampled_from([0, 0, 0, 1, 2, -1]),
        shift=st.sampled_from([-1, -2, 0, 1]),
        is_close=st.booleans(),
    )
    def send_nonsense(self, principal: str, behind: int, shift: int, *, is_close: bool) -> None:
        """Any epoch, any offset, other ops: refused everywhere alike (where it would be accepted it is not sent)."""
        principal = principal or self.model.principal
        epoch, offset = max(self.model.given - behind, 0), max(len(self.model.log) + shift, 0)
        is_right = principal == self.model.principal and epoch == self.model.epoch
        if is_right and self.model.end is None and offset == len(self.model.log):
            return
        verdict = self._judge(Close(principal, epoch, offset) if is_close else Append(principal, epoch, offset, b"!"))
        assert verdict[0] != "accepted"

    @rule(behind=st.integers(-1, 2), offset=st.integers(0, 12))
    def look(self, behind: int, offset: int) -> None:
        self._judge(Resume(max(self.model.given - behind, 0), offset))

    @precondition(lambda self: self.model.end is not None)
    @rule()
    def settle(self) -> None:
        self.model.settle()
        for tier in self.tiers:
            tier.talk.settle()

    @precondition(lambda self: self.model.settled)
    @rule(chance=st.integers(0, 2))
    def turn_to_another_stream(self, chance: int) -> None:
        if not chance:
            self._begin()

    @precondition(lambda self: self.model.end is None)  # after that the table knows, and is asked first
    @rule(chance=st.integers(0, 3))
    def lose_the_cache(self, chance: int) -> None:
        if chance:
            return
        self.model.lose()
        for tier in self.tiers:
            tier.lose()

    @invariant()
    def the_log_is_what_was_acknowledged(self) -> None:
        self._judge(Resume(0, 0))

    # --- how ---

    def _new_producer(self, principal: str) -> Producer:
        self.runs += 1
        return Producer(f"run-{self.runs}", principal)

    def _open(self, producer: Producer, *, is_heard: bool, takeover: bool = True) -> None:
        is_new = not producer.epoch
        verdict = self._deliver(producer.opening(takeover=takeover))
        if not is_heard:
            return
        producer.hear(verdict)
        if verdict[0] == "opened" and is_new:  # what it took over it reads, and holds from now on
            found = self._judge(Resume(producer.epoch, 0))
            assert isinstance(found[3], tuple)
            producer.batches = list(found[3])

    def _deliver(self, frame: Frame) -> Verdict:
        self.sent.append(frame)
        return self._judge(frame)

    def _judge(self, frame: Frame) -> Verdict:
        match frame:
            case Open(writer, held, takeover):
                expected = self.model.open(writer.principal, writer.producer, held, takeover=takeover)
                time.sleep(0.002)  # opens are a round trip apart, longer than the clock's tick
            case Append(principal, epoch, offset, ops):
                expected = self.model.append(principal, epoch, offset, ops)
            case Close(principal, epoch, offset):
                expected = self.model.close(principal, epoch, offset)
            case Resume(epoch, offset):
                expected = self.model.resume(epoch, offset)
        for tier in self.tiers:
            assert tier.ask(frame) == expected, f"{type(tier).__name__} differs from the model on {frame}"
        return expected


@pytest.fixture
def server(valkey_single: Address) -> Iterator[Any]:
    with Valkey(host=valkey_single.host, port=valkey_single.port) as server:
        yield server


def test_all_tiers_judge_alike_and_no_acknowledged_append_is_lost(server: Any, valkey_single: Address) -> None:
    client = client_of(valkey_single, is_cluster=False)
    hot = hot_valkey(client)

    class Machine(Streams):
        def __init__(self) -> None:
            super().__init__([Memory(Talk(HotMemory(SystemClock(), region=REGION))), Real(Talk(hot), server)])

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=120, stateful_step_count=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
        ),
    )
    client.close()
