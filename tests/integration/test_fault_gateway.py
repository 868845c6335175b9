"""The service behind the fault gateway: real sockets, real handlers, a real Valkey, clients that bear what happens."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from local.keys import SigningKey
from local.state import Address
from tests.support.gateway import Faults, Manners
from tests.support.gateway.bulkheads import REGION
from tests.support.gateway.deployment import CONNECTION, Deployment, deployed
from tests.support.hot import client_of
from threadkeep.domain.bounds import FRAME_BYTES_MAX
from threadkeep.domain.model import ConversationKey
from threadkeep.stores.hot_valkey import HotValkey
from threadkeep_client import subscription
from threadkeep_client.cli.chats import read_chats
from threadkeep_client.client import Client
from threadkeep_client.errors import TokenRefusedError
from threadkeep_client.viewer import Viewer
from threadkeep_client.wire import text_of

CHATS = Path(__file__).parents[1] / "data" / "chats-demo.jsonl"


@pytest.fixture(scope="module")
def key() -> SigningKey:
    return SigningKey.generate()


@pytest.fixture
def hot(valkey_cluster: Address) -> Iterator[HotValkey]:
    client = client_of(valkey_cluster, is_cluster=True)
    yield HotValkey(client, region=REGION)
    client.close()


@pytest.fixture
async def deployment(hot: HotValkey, key: SigningKey) -> AsyncIterator[Deployment]:
    async with deployed(hot, key) as running:
        yield running


# --- nothing that goes wrong on the way may show -------------------------------------------------------------------


async def test_a_replay_without_faults_has_no_differences(deployment: Deployment) -> None:
    report = await deployment.replay(read_chats(CHATS, 4))
    assert report.differences == []
    assert report.messages + report.branches >= 14
    assert deployment.gateway.counts["integrations_failed"] == 0


FAULTS = {
    "requests": Faults(lose_request=0.03, double_request=0.1, delay_request=0.3),
    "replies": Faults(lose_reply=0.05, delay_reply=0.3),
    "integrations": Faults(fail_integration=0.05),
    "pushes": Faults(lose_push=0.1, double_push=0.1, delay_push=0.3),
    "posts": Faults(fail_post=0.1),
    "sockets": Faults(cut=0.05, lose_disconnect=0.5, vanish=0.5),
    "ends": Faults(drop_pushes=("message.created",)),
    "all": Faults(
        lose_request=0.01,
        double_request=0.05,
        delay_request=0.2,
        fail_integration=0.02,
        lose_reply=0.02,
        delay_reply=0.2,
        lose_push=0.03,
        double_push=0.05,
        delay_push=0.2,
        fail_post=0.03,
        cut=0.01,
        lose_disconnect=0.5,
        vanish=0.5,
    ),
}
COUNTS = {
    "requests": ("requests_lost", "requests_doubled", "requests_delayed"),
    "replies": ("replies_lost", "replies_delayed"),
    "integrations": ("integrations_failed",),
    "pushes": ("pushes_lost", "pushes_doubled", "pushes_delayed"),
    "posts": ("posts_failed",),
    "sockets": ("cut", "posts_gone"),
    "ends": ("pushes_lost",),
    "all": ("requests_doubled", "requests_delayed", "replies_delayed", "pushes_doubled", "pushes_delayed", "cut"),
}
"""What has to have happened, or the test was blind."""


@pytest.fixture(autouse=True)
def quick_renewal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lease is renewed after half a second, not after four minutes: what a viewer missed comes with it."""
    monkeypatch.setattr(subscription, "RENEW_S", 0.5)


@pytest.mark.parametrize(("kind", "seed"), [*((kind, 1) for kind in FAULTS), ("all", 2)])
async def test_a_replay_with_faults_has_no_differences(deployment: Deployment, kind: str, seed: int) -> None:
    deployment.gateway.faults = dataclasses.replace(FAULTS[kind], seed=seed)
    report = await deployment.replay(read_chats(CHATS, 2))
    assert report.differences == []
    assert all(deployment.gateway.counts[name] for name in COUNTS[kind]), deployment.gateway.counts


async def test_sockets_cut_at_200_points_show_nothing(deployment: Deployment) -> None:
    gateway, chats = deployment.gateway, read_chats(CHATS)
    for seed in range(5):
        gateway.faults = Faults(seed=seed, cut=0.2, lose_disconnect=0.5, vanish=0.1)
        reports = await asyncio.gather(*(deployment.replay([chat]) for chat in chats))
        assert [report.differences for report in reports] == [[]] * len(chats)
        if gateway.counts["cut"] >= 200:
            return
    pytest.fail(f"only {gateway.counts['cut']} sockets were cut")


# --- single cases --------------------------------------------------------------------------------------------------


async def ask(client: Client) -> tuple[str, str]:
    """A new conversation with one question; the ids of both."""
    conversation = await client.create_conversation()
    question = await client.create_message(conversation["id"], "Why?", parent=None)
    return conversation["id"], question["id"]


async def follow(viewer: Viewer, stream: str) -> str:
    """What a viewer shows of an answer when it has settled."""
    async with asyncio.timeout(10):
        async for update in viewer:
            if update.message is not None and update.id == stream:
                return text_of(update.message["parts"])
    raise AssertionError("a viewer ends when it is left, not before")


async def test_dead_viewers_are_removed_at_the_first_410_and_the_others_see_all(deployment: Deployment) -> None:
    gateway = deployment.gateway
    gateway.faults = Faults(lose_disconnect=1.0)
    async with contextlib.AsyncExitStack() as stack:
        asker, worker = [await stack.enter_async_context(deployment.client(scope)) for scope in ("chat", "produce")]
        conversation, question = await ask(asker)
        key = ConversationKey("acme", conversation)
        viewers = []
        for _ in range(3):
            client = await stack.enter_async_context(deployment.client())
            viewers.append(await stack.enter_async_context(client.watch(conversation)))
        for _ in range(2):
            async with deployment.client() as leaving:
                await leaving.connection.request("conversation.subscribe", conversation=conversation)
        await gateway.until(lambda: gateway.counts["disconnects_lost"] == 2)
        assert len(deployment.services.hot.viewers(key)) == 5
        async with worker.produce(conversation, parent=question) as answer:
            shown = [asyncio.create_task(follow(viewer, answer.id)) for viewer in viewers]
            for number in range(20):
                await answer.text(f"{number} ")
                await answer.flush()
        assert await asyncio.gather(*shown) == ["".join(f"{number} " for number in range(20))] * 3
        assert gateway.counts["posts_gone"] == 2
        assert len(deployment.services.hot.viewers(key)) == 3


async def test_nothing_is_posted_during_connect(deployment: Deployment) -> None:
    async with deployment.client() as client:
        await client.ping()
    assert deployment.gateway.counts["posts"] == 0


@pytest.mark.parametrize("size", [31_900, 32_100, 127_900, 128_100])
async def test_answers_of_three_byte_letters_stay_under_every_limit(deployment: Deployment, size: int) -> None:
    text = "\u20ac" * (size // 3) + "." * (size % 3)
    async with deployment.client() as asker, deployment.client("produce") as worker:
        conversation, question = await ask(asker)
        async with asker.watch(conversation) as viewer, worker.produce(conversation, parent=question) as answer:
            shown = asyncio.create_task(follow(viewer, answer.id))
            await answer.text(text)
        assert await shown == text
        history = await asker.history(conversation)
    assert text_of(history[-1]["parts"]) == text
    assert deployment.gateway.counts["ended_1009"] == 0
    assert 0 < deployment.gateway.largest_sent_bytes <= FRAME_BYTES_MAX


@pytest.mark.parametrize("full_buffer", ["refuse", "wait", "drop"])
async def test_a_viewer_that_does_not_read_holds_nobody_up(hot: HotValkey, key: SigningKey, full_buffer: Any) -> None:
    async with (
        deployed(hot, key, manners=Manners(full_buffer=full_buffer)) as deployment,
        deployment.client() as asker,
        deployment.client("produce") as worker,
        unread(deployment) as slow,
    ):
        connection = deployment.gateway.connections[-1]
        conversation, question = await ask(asker)
        await slow.send(json.dumps({"action": "conversation.subscribe", "conversation": conversation}))
        await slow.recv()
        viewers = ConversationKey("acme", conversation)
        assert connection in hot.viewers(viewers)
        async with asker.watch(conversation) as viewer, worker.produce(conversation, parent=question) as answer:
            shown = asyncio.create_task(follow(viewer, answer.id))
            for number in range(20):
                await answer.text(f"{number:02}" + "x" * 15_000)
                await answer.flush()
            assert connection not in hot.viewers(viewers)
        assert [int(piece[:2]) for piece in (await shown).split("x") if piece] == list(range(20))
        assert await deltas(slow) < 20
        assert deployment.gateway.counts["integrations_failed"] == 0


async def deltas(slow: ClientConnection) -> int:
    """Read what came to a slow viewer; how many deltas, each of which begins where the last one ended."""
    place = 0
    with contextlib.suppress(ConnectionClosed, TimeoutError):
        while True:
            async with asyncio.timeout(0.2):
                frame = json.loads(await slow.recv())
            if frame["type"] == "stream.delta":
                assert frame["at"] == place
                place = frame["next"]
    return place


def unread(deployment: Deployment) -> connect:
    """A viewer's socket that takes little and is not read unless asked."""
    address = urlsplit(deployment.gateway.url)
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    plain.connect((address.hostname, address.port))
    token = deployment.key.mint_token(sub="ann", tenant="acme", scope=["chat"])
    return connect(
        deployment.gateway.url,
        sock=plain,
        max_queue=1,
        ping_interval=None,
        close_timeout=0.1,
        additional_headers={"Authorization": f"Bearer {token}"},
    )


@pytest.mark.parametrize("place", ["header", "subprotocol", "query"])
async def test_a_token_is_in_no_log_and_no_event(
    deployment: Deployment, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, place: str
) -> None:
    caplog.set_level(logging.DEBUG)
    logging.getLogger("websockets.client").setLevel(logging.INFO)  # this test's own client
    good = deployment.key.mint_token(sub="ann", tenant="acme", scope=["chat"])
    for token, is_let_in in ((good, True), (good[:-4] + "AAAA", False)):
        offered = [Subprotocol("threadkeep.v1")]
        if place == "subprotocol":
            offered.append(Subprotocol(f"bearer.{token}"))
        url = deployment.gateway.url + (f"?token={token}" if place == "query" else "")
        headers = {"Authorization": f"Bearer {token}"} if place == "header" else {}
        opening = connect(url, subprotocols=offered, additional_headers=headers)
        if is_let_in:
            async with opening as client:
                assert client.subprotocol == "threadkeep.v1"
                await client.send('{"action": "nothing of ours"}')
                assert "bad_request" in str(await client.recv())
        else:
            with pytest.raises(InvalidStatus) as refused:
                await opening
            assert refused.value.response.status_code == 403
    said = capfd.readouterr()
    told = said.out + said.err + caplog.text
    assert "Handshake refused" in told
    assert "Handshakes" in told
    for part in good.split("."):
        assert part not in told


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"Authorization": "Bearer nonsense"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "https://app.example.evil"}, 403),
    ],
)
async def test_who_has_no_right_is_not_let_in(deployment: Deployment, headers: dict[str, str], status: int) -> None:
    token = deployment.key.mint_token(sub="ann", tenant="acme", scope=["chat"])
    headers = ({"Authorization": f"Bearer {token}"} if "Origin" in headers else {}) | headers
    with pytest.raises(InvalidStatus) as refused:
        await connect(deployment.gateway.url, additional_headers=headers)
    assert refused.value.response.status_code == status
    assert deployment.gateway.connections == ()


async def test_an_expired_token_and_a_stranger_s_are_not_let_in(deployment: Deployment) -> None:
    mine, theirs = deployment.key, SigningKey.generate()
    claims: dict[str, Any] = {"sub": "ann", "tenant": "acme", "scope": ["chat"]}
    for token in (mine.mint_token(**claims, lifetime_s=-60), theirs.mint_token(**claims)):
        with pytest.raises(TokenRefusedError):
            await Client(deployment.gateway.url, token, settings=CONNECTION).connection.open()
