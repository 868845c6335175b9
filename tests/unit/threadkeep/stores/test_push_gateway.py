"""What a push does that takes time, or cannot be made, or is one of many."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.support.connections_server import ConnectionsServer, connections_server, push_client
from threadkeep.domain.bounds import FAN_OUT_WAIT_MS, VIEWERS_MAX
from threadkeep.ports import Delivery
from threadkeep.stores.aws_config import PUSH_THREADS_MAX
from threadkeep.stores.push_gateway import GatewayPush

PATIENT_MS = 20_000
PATIENT_S = 20
"""A slow viewer's post must outlast the wait even where this machine is busy."""


@pytest.fixture
def server() -> Iterator[ConnectionsServer]:
    with connections_server() as started:
        yield started


def test_a_slow_viewer_is_not_waited_for_beyond_the_bound(
    server: ConnectionsServer, caplog: pytest.LogCaptureFixture
) -> None:
    push = GatewayPush(push_client(server.url, read_timeout=PATIENT_S), wait_ms=PATIENT_MS)
    push.send(["a"], b"warm up")
    push._wait_s = FAN_OUT_WAIT_MS / 1_000
    assert push.send(["slow"], b"1") == Delivery(late=("slow",))
    assert not server.released.is_set()  # it has not answered yet, and we are here already
    assert server.asked["slow"] == 1
    assert "{'late': 1} of 1" in caplog.text


def test_what_had_no_turn_within_the_bound_is_not_sent_later(server: ConnectionsServer) -> None:
    push = GatewayPush(push_client(server.url, read_timeout=PATIENT_S), wait_ms=FAN_OUT_WAIT_MS)
    slow = [f"slow-{number}" for number in range(PUSH_THREADS_MAX)]
    assert push.send([*slow, "a"], b"1") == Delivery(late=(*slow, "a"))
    server.released.set()
    push._pool.shutdown(wait=True)
    assert server.asked["a"] == 0


def test_nobody_is_asked_twice(server: ConnectionsServer) -> None:
    push = GatewayPush(push_client(server.url), wait_ms=PATIENT_MS)
    push.send(["gone", "throttled", "broken", "a"], b"1")
    assert server.asked == {"gone": 1, "throttled": 1, "broken": 1, "a": 1}


def test_viewers_are_served_side_by_side_and_only_so_many_at_once(server: ConnectionsServer) -> None:
    push = GatewayPush(
        push_client(server.url, read_timeout=PATIENT_S, max_pool_connections=100), wait_ms=FAN_OUT_WAIT_MS
    )
    push.send([f"slow-{number}" for number in range(PUSH_THREADS_MAX + 10)], b"1")
    server.released.set()
    push._pool.shutdown(wait=True)
    assert 1 < server.busiest <= PUSH_THREADS_MAX


def test_more_viewers_than_a_conversation_may_have_are_left_out(
    server: ConnectionsServer, caplog: pytest.LogCaptureFixture
) -> None:
    push = GatewayPush(push_client(server.url), wait_ms=PATIENT_MS)
    viewers = [f"viewer-{number}" for number in range(VIEWERS_MAX + 2)]
    assert push.send(viewers, b"1") == Delivery(late=tuple(viewers[VIEWERS_MAX:]))
    assert len(server.frames) == VIEWERS_MAX
    assert f"{{'beyond_bound': 2}} of {VIEWERS_MAX + 2}" in caplog.text


def test_a_gateway_that_cannot_be_reached_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    with connections_server() as server:
        url = server.url
    push = GatewayPush(push_client(url), wait_ms=PATIENT_MS)
    assert push.send(["a", "b"], b"1") == Delivery(late=("a", "b"))
    assert "{'EndpointConnectionError': 2} of 2" in caplog.text


def test_the_log_tells_reasons_and_counts_and_nothing_of_whom_or_what(
    server: ConnectionsServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "threadkeep")
    push = GatewayPush(push_client(server.url), wait_ms=PATIENT_MS)
    push.send(["throttled-canary", "gone-canary", "canary"], b"frame canary")
    own = [record.getMessage() for record in caplog.records if record.name.startswith("threadkeep")]
    assert own == ["viewers not served: {'LimitExceededException': 1} of 3"]
