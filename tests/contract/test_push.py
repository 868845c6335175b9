"""What every `threadkeep.ports.Push` does alike: in memory, and by HTTP."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import msgspec
import pytest

from tests.support.connections_server import connections_server, push_client
from threadkeep.domain.bounds import FRAME_BYTES_MAX
from threadkeep.ports import Delivery, Push
from threadkeep.stores.push_gateway import GatewayPush
from threadkeep.stores.push_memory import PushMemory


class Pushing(msgspec.Struct, frozen=True):
    """A way to push, and what has arrived by it."""

    push: Push
    arrived: Callable[[], list[tuple[str, bytes]]]


@pytest.fixture(params=["memory", "gateway"])
def pushing(request: pytest.FixtureRequest) -> Iterator[Pushing]:
    if request.param == "memory":
        memory = PushMemory()
        memory.gone = {"gone-1", "gone-2"}
        memory.unserved = {"throttled", "broken", "cut"}
        yield Pushing(memory, lambda: memory.frames)
        return
    with connections_server() as server:
        # A busy machine must not make a viewer late here; what is late has a test of its own.
        yield Pushing(GatewayPush(push_client(server.url), wait_ms=20_000), lambda: server.frames)


def test_a_frame_reaches_every_connection_as_it_is(pushing: Pushing) -> None:
    frame = ('{"type":"stream.delta","ops":"' + "é🙂\\u0000" * 2_000).encode()[:FRAME_BYTES_MAX]
    connections = ["L0SM9cOFvHcCIhw=", "b", "c/d e"]
    assert pushing.push.send(connections, frame) == Delivery()
    assert sorted(pushing.arrived()) == sorted((connection, frame) for connection in connections)


def test_frames_sent_one_after_another_arrive_in_that_order(pushing: Pushing) -> None:
    frames = [str(number).encode() for number in range(10)]
    for frame in frames:
        pushing.push.send(["a"], frame)
    assert pushing.arrived() == [("a", frame) for frame in frames]


def test_those_that_are_gone_are_named_and_the_others_get_every_frame(pushing: Pushing) -> None:
    connections = ["a", "gone-2", "b", "gone-1", "c"]
    for frame in (b"1", b"2"):
        assert pushing.push.send(connections, frame) == Delivery(gone=("gone-2", "gone-1"))
    assert sorted(pushing.arrived()) == [(name, frame) for name in "abc" for frame in (b"1", b"2")]


def test_those_that_cannot_be_served_now_are_not_gone_and_keep_nobody_from_theirs(pushing: Pushing) -> None:
    delivery = pushing.push.send(["throttled", "a", "broken", "gone-1", "cut", "b"], b"1")
    assert delivery == Delivery(gone=("gone-1",), late=("throttled", "broken", "cut"))
    assert sorted(pushing.arrived()) == [("a", b"1"), ("b", b"1")]


def test_nobody_watching_is_nothing_to_do(pushing: Pushing) -> None:
    assert pushing.push.send([], b"1") == Delivery()
    assert pushing.arrived() == []


def test_a_hint_reaches_those_that_are_there_and_nobody_waits_for_it(pushing: Pushing) -> None:
    pushing.push.hint(["a", "gone-1"], b"1")
    deadline = time.monotonic() + 20
    while not pushing.arrived() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert pushing.arrived() == [("a", b"1")]
