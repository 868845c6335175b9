from __future__ import annotations

import asyncio
import itertools
import logging
import socket

import pytest

from tests.unit.client.fake_server import FakeServer, What
from tests.unit.client.virtual_time import now
from threadkeep_client import Client
from threadkeep_client.backoff import Backoff
from threadkeep_client.connection import Connection
from threadkeep_client.errors import (
    ConnectionEndedError,
    ConnectionFailedError,
    RateLimitedError,
    TokenExpiredError,
    TokenRefusedError,
    TooLargeError,
    UnavailableError,
)
from threadkeep_client.patience import ConnectionSettings
from threadkeep_client.wire import Frame


class Listener:
    def __init__(self) -> None:
        self.frames: list[Frame] = []

    def receive(self, frame: Frame) -> None:
        self.frames.append(frame)


# --- handshakes ------------------------------------------------------------------------------------------------------


async def test_a_server_that_echoes_no_subprotocol_is_borne() -> None:
    async with FakeServer(subprotocol=False) as server, Connection(server.url, "t") as connection:
        assert (await connection.request("ping"))["type"] == "ping.ok"
        assert server.tokens == ["t"]


async def test_nobody_at_the_address() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"ws://127.0.0.1:{taken.getsockname()[1]}/local?token=secret"
    with pytest.raises(ConnectionFailedError, match=r"nobody answers at ws://127\.0\.0\.1:\d+/local \(") as failed:
        await Connection(url, "t").open()
    assert "secret" not in str(failed.value)


@pytest.mark.parametrize("url", ["http://127.0.0.1/x", "nonsense", "ws://", "wss://127.0.0.1:99999999/", "ws://[", ""])
async def test_what_is_no_address(url: str) -> None:
    with pytest.raises(ConnectionFailedError):
        await Connection(url, "t").open()


async def test_a_server_that_does_not_answer_the_handshake() -> None:
    writers: list[asyncio.StreamWriter] = []
    async with await asyncio.start_server(lambda _, writer: writers.append(writer), "127.0.0.1", 0) as silent:
        port = silent.sockets[0].getsockname()[1]
        begin = now()
        with pytest.raises(ConnectionFailedError, match="no answer from"):
            await Connection(f"ws://127.0.0.1:{port}/", "t").open()
        assert 10 <= now() - begin < 13
        writers[0].close()
        await writers[0].wait_closed()


async def test_a_fixed_token_that_is_refused_is_not_tried_again(server: FakeServer) -> None:
    server.refused_tokens = {"t"}
    with pytest.raises(TokenRefusedError, match=r"the token was refused at .* \(HTTP 401\)"):
        await Connection(server.url, "t").open()
    assert server.tokens == ["t"]


async def test_a_source_is_asked_anew_after_a_refusal(server: FakeServer) -> None:
    server.refused_tokens = {"old"}
    given = iter(["old", "new"])
    async with Connection(server.url, lambda: next(given)) as connection:
        await connection.request("ping")
    assert server.tokens == ["old", "new"]


async def test_neither_token_nor_text_is_logged(server: FakeServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with Connection(server.url, "c4n4ry") as connection:
        await connection.request("conversation.create", conversation="c", title="c4n4ry")
        server.cut()
        await connection.request("ping")
    ours = [record for record in caplog.records if not record.name.startswith("websockets.server")]
    assert not [record for record in ours if "c4n4ry" in record.getMessage()]


# --- requests --------------------------------------------------------------------------------------------------------


async def test_replies_find_their_requests_in_any_order(server: FakeServer) -> None:
    async with Connection(server.url, "t") as connection:
        names = [f"c{number}" for number in range(100)]
        replies = await asyncio.gather(
            *(connection.request("conversation.create", conversation=name) for name in names)
        )
        assert [reply["conversation"]["id"] for reply in replies] == names


async def test_no_more_than_the_bound_are_in_flight(server: FakeServer) -> None:
    async with Connection(server.url, "t", settings=ConnectionSettings(requests_max=3)) as connection:
        server.fail("ping", "lose_request", times=3)
        waiting = [asyncio.create_task(connection.request("ping")) for _ in range(10)]
        await asyncio.sleep(5)
        assert len(server.sent("ping")) == 3
        await asyncio.gather(*waiting)


@pytest.mark.parametrize(
    "what", ["lose_request", "lose_reply", "gateway", "gateway_after", "noise", "cut", "cut_after"]
)
async def test_an_unanswered_request_is_repeated_as_it_was(server: FakeServer, what: What) -> None:
    async with Connection(server.url, "t") as connection:
        server.fail("conversation.create", what, times=2)
        begin = now()
        reply = await connection.request("conversation.create", conversation="c", title="t")
        assert now() - begin < (22 if what.startswith("lose") else 5)
    assert reply["conversation"]["id"] == "c"
    sent = server.sent("conversation.create")
    assert len(sent) == 3
    assert sent[0] == sent[1] == sent[2]


async def test_a_reply_is_waited_for_ten_seconds(server: FakeServer) -> None:
    async with Connection(server.url, "t") as connection:
        server.fail("ping", "lose_reply")
        begin = now()
        await connection.request("ping")
        assert 10 <= now() - begin < 11


async def test_a_frame_of_the_gateway_may_mean_any_request(server: FakeServer) -> None:
    async with Connection(server.url, "t") as connection:
        server.fail("ping", "lose_request", times=3)
        server.fail("conversation.list", "gateway")
        pings = [asyncio.create_task(connection.request("ping")) for _ in range(3)]
        begin = now()
        await connection.request("conversation.list", limit=1)
        await asyncio.gather(*pings)
        assert now() - begin < 2
    assert len(server.sent("ping")) == 6


async def test_an_error_without_ref_may_mean_any_request(server: FakeServer) -> None:
    async with Connection(server.url, "t") as connection:
        server.fail("ping", "nameless")
        begin = now()
        await connection.request("ping")
        assert now() - begin < 1
    assert len(server.sent("ping")) == 2


@pytest.mark.parametrize("code", ["unavailable", "internal", "rate_limited"])
async def test_a_retryable_error_is_repeated(server: FakeServer, code: str) -> None:
    async with Connection(server.url, "t") as connection:
        server.refuse("ping", code, retryable=True, times=3)
        await connection.request("ping")
    assert len(server.sent("ping")) == 4


@pytest.mark.parametrize("reason", ["parent_open", "parent_missing"])
async def test_a_conflict_that_passes_is_repeated(server: FakeServer, reason: str) -> None:
    async with Connection(server.url, "t") as connection:
        server.refuse("ping", "conflict", reason=reason, retryable=True)
        await connection.request("ping")
    assert len(server.sent("ping")) == 2


@pytest.mark.parametrize("code", ["not_found", "gap", "fenced", "closed", "bad_request", "unauthorized"])
async def test_a_verdict_is_never_repeated(server: FakeServer, code: str) -> None:
    async with Connection(server.url, "t") as connection:
        server.refuse("ping", code, retryable=code not in {"bad_request", "unauthorized"})
        with pytest.raises(Exception, match=code):
            await connection.request("ping")
    assert len(server.sent("ping")) == 1


async def test_the_service_says_how_long_to_wait(server: FakeServer) -> None:
    async with Connection(server.url, "t") as connection:
        server.refuse("ping", "rate_limited", retryable=True, retry_after_ms=7_000)
        begin = now()
        await connection.request("ping")
        assert 7 <= now() - begin < 8


async def test_a_wait_beyond_the_deadline_is_not_begun(server: FakeServer) -> None:
    async with Connection(server.url, "t") as connection:
        server.refuse("ping", "rate_limited", retryable=True, retry_after_ms=70_000)
        begin = now()
        with pytest.raises(RateLimitedError):
            await connection.request("ping")
        assert now() - begin < 1


async def test_repeating_ends_at_the_deadline(server: FakeServer) -> None:
    async with Connection(server.url, "t") as connection:
        server.refuse("ping", "unavailable", retryable=True, times=10_000)
        begin = now()
        with pytest.raises(UnavailableError):
            await connection.request("ping", deadline_s=30)
        assert 20 < now() - begin <= 30
    assert 8 < len(server.sent("ping")) < 60


async def test_pauses_between_repeats_are_bounded(server: FakeServer) -> None:
    async with Connection(server.url, "t") as connection:
        server.refuse("ping", "unavailable", retryable=True, times=8)
        begin = now()
        await connection.request("ping")
        took = now() - begin
    assert 8 * connection.settings.repeat.floor_s < took < 0.2 + 0.4 + 0.8 + 1.6 + 3.2 + 3 * 5.0 + 1


async def test_what_fits_no_frame_is_not_sent(server: FakeServer) -> None:
    async with Connection(server.url, "t") as connection:
        with pytest.raises(TooLargeError, match=r"message\.create takes"):
            await connection.request("message.create", parts=["あ" * 9_000])
    assert server.requests == []


async def test_how_long_requests_took_is_told(server: FakeServer) -> None:
    observed: list[tuple[str, float]] = []
    async with Connection(server.url, "t", observe=lambda *told: observed.append(told)) as connection:
        server.fail("ping", "lose_reply")
        await connection.request("ping")
    assert [action for action, _ in observed] == ["ping"]
    assert observed[0][1] >= 10


# --- reconnecting ----------------------------------------------------------------------------------------------------


async def test_it_reconnects_and_tells(server: FakeServer) -> None:
    reopened: list[float] = []
    async with Connection(server.url, "t") as connection:
        with connection.on_reopen(lambda: reopened.append(now())):
            for _ in range(3):
                server.cut()
                await connection.request("ping")
            assert len(reopened) == 3
        server.cut()
        await connection.request("ping")
        assert len(reopened) == 3


async def test_a_request_waits_for_a_server_that_comes_back(server: FakeServer) -> None:
    async with Connection(server.url, "t") as connection:
        await server.stop()
        waiting = asyncio.create_task(connection.request("ping"))
        await asyncio.sleep(20)
        assert not waiting.done()
        await server.start(server.port)
        assert (await waiting)["type"] == "ping.ok"


async def test_a_request_gives_up_on_a_server_that_stays_away() -> None:
    async with FakeServer() as server:
        connection = await Connection(server.url, "t").open()
    begin = now()
    with pytest.raises(UnavailableError, match=r"unavailable/away: nobody answers at ws://"):
        await connection.request("ping", deadline_s=15)
    assert 14 < now() - begin < 16
    await connection.close()


async def test_attempts_to_reconnect_are_spread_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    async with FakeServer() as server:
        connection = await Connection(server.url, "t").open()
    attempts: list[float] = []

    async def refuse(*_: object, **__: object) -> None:
        attempts.append(now())
        raise ConnectionFailedError("away")

    monkeypatch.setattr("threadkeep_client.connection.dial", refuse)
    await asyncio.sleep(300)
    await connection.close()
    pauses = [later - earlier for earlier, later in itertools.pairwise(attempts)]
    assert 12 < len(attempts) < 80
    assert max(pauses) <= ConnectionSettings().reconnect.ceiling_s + 0.1
    assert len({round(pause, 3) for pause in pauses[6:]}) > 3


async def test_a_new_token_is_asked_for_where_the_old_one_expired(server: FakeServer) -> None:
    given = iter(["a", "b"])
    async with Connection(server.url, lambda: next(given)) as connection:
        server.refuse("ping", "token_expired")
        await connection.request("ping")
    assert server.tokens == ["a", "b"]


async def test_a_fixed_token_that_expired_is_told(server: FakeServer) -> None:
    async with Connection(server.url, "t") as connection:
        server.refuse("ping", "token_expired")
        with pytest.raises(TokenExpiredError):
            await connection.request("ping")


async def test_a_token_refused_on_reconnecting_ends_the_connection(server: FakeServer) -> None:
    async with Connection(server.url, "t") as connection:
        server.refused_tokens = {"t"}
        server.cut()
        with pytest.raises(TokenRefusedError):
            await connection.request("ping")
        assert server.tokens == ["t", "t"]


async def test_a_source_whose_tokens_are_refused_is_not_asked_for_ever(server: FakeServer) -> None:
    async with Connection(server.url, lambda: "t", settings=ConnectionSettings(refusals_max=3)) as connection:
        server.refused_tokens = {"t"}
        server.cut()
        with pytest.raises(TokenRefusedError):
            await connection.request("ping")
    assert server.tokens == ["t"] * 4


async def test_closing_ends_what_is_in_flight(server: FakeServer) -> None:
    connection = await Connection(server.url, "t").open()
    server.fail("ping", "lose_request")
    waiting = asyncio.create_task(connection.request("ping"))
    await asyncio.sleep(1)
    await connection.close()
    with pytest.raises(ConnectionEndedError):
        await waiting
    with pytest.raises(ConnectionEndedError):
        await connection.request("ping")
    await connection.close()


async def test_settings_take_other_pauses(server: FakeServer) -> None:
    settings = ConnectionSettings(repeat=Backoff(base_s=3.0, ceiling_s=3.0, floor_s=3.0))
    async with Connection(server.url, "t", settings=settings) as connection:
        server.refuse("ping", "internal", retryable=True)
        begin = now()
        await connection.request("ping")
        assert 3 <= now() - begin < 3.5


# --- events ----------------------------------------------------------------------------------------------------------


async def test_a_reply_without_a_ref_is_nobodys_and_no_event(server: FakeServer) -> None:
    async with Client(server.url, "t") as client:
        await client.create_conversation("c")
        async with client.watch("c"):
            # A viewer that has not subscribed yet: whatever looks like the reply to that would begin it.
            with client.connection.listening("c", client.watch("c")):
                await server.tell("c", {"type": "conversation.subscribe.ok", "conversation": "c", "live": [{}]})
                await client.connection.request("ping", deadline_s=5)


async def test_events_go_to_the_listeners_of_their_conversation(server: FakeServer) -> None:
    one, other = Listener(), Listener()
    async with Connection(server.url, "t") as connection:
        await connection.request("conversation.create", conversation="c")
        with connection.listening("c", one), connection.listening("d", other):
            await connection.request("conversation.subscribe", conversation="c")
            await server.tell("c", {"type": "conversation.updated", "conversation": {"id": "c"}})
            await server.tell("c", {"type": "from.a.later.version", "conversation": "c"})
            await connection.request("ping")
            assert connection.is_listened("c")
        assert not connection.is_listened("c")
    assert [frame["type"] for frame in one.frames] == ["conversation.updated", "from.a.later.version"]
    assert other.frames == []
