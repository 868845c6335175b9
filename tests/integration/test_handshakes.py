"""Who gets in, and for how long, through a gateway and the real authorizer."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from local.keys import SigningKey
from tests.support.gateway.deployment import Deployment, deployed
from tests.support.hot import REGION, SystemClock
from threadkeep.stores.hot_memory import HotMemory


def dial(deployment: Deployment, *, origin: str | None = None, **claims: Any) -> connect:
    """A client's connection with a good token."""
    token = deployment.key.mint_token(**{"sub": "ann", "tenant": "acme", "scope": ["chat"]} | claims)
    return connect(
        deployment.gateway.url,
        origin=None if origin is None else Origin(origin),
        additional_headers={"Authorization": f"Bearer {token}"},
        open_timeout=10,
    )


async def ask(socket: Any, action: str, **fields: Any) -> dict[str, Any]:
    await socket.send(json.dumps({"action": action, "ref": "r", **fields}))
    reply: dict[str, Any] = json.loads(await asyncio.wait_for(socket.recv(), 10))
    return reply


@pytest.mark.parametrize(
    ("origin", "is_let_in"),
    [
        (None, True),
        ("https://app.example", True),
        ("https://app.example:8443", False),
        ("http://app.example", False),
        ("https://APP.example", False),
        ("https://app.example/", False),
        ("https://app.example.evil", False),
        ("https://evil-app.example", False),
        ("https://evil.app.example", False),
        ("null", False),
        ("", False),
    ],
)
async def test_a_page_connects_only_from_an_origin_that_is_allowed_as_a_whole(
    origin: str | None,
    is_let_in: bool,  # noqa: FBT001 -- a case
) -> None:
    async with deployed(HotMemory(SystemClock(), region=REGION), SigningKey.generate()) as deployment:
        if is_let_in:
            async with dial(deployment, origin=origin) as socket:
                assert (await ask(socket, "ping"))["type"] == "ping.ok"
        else:
            with pytest.raises(InvalidStatus) as refused:
                async with dial(deployment, origin=origin):
                    pass
            assert refused.value.response.status_code == 403


async def test_an_open_socket_does_nothing_more_once_its_token_has_expired(monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        deployed(HotMemory(SystemClock(), region=REGION), SigningKey.generate()) as deployment,
        dial(deployment, lifetime_s=120) as socket,
        dial(deployment, lifetime_s=7_200) as fresh,
    ):
        conversation = (await ask(socket, "conversation.create"))["conversation"]["id"]
        watched = await ask(socket, "conversation.subscribe", conversation=conversation)
        assert 0 < watched["lease_ms"] <= 120_000, "what it watches ends with it"
        now_ms = SystemClock.now_ms
        monkeypatch.setattr(SystemClock, "now_ms", lambda clock: now_ms(clock) + 121_000)
        said = {"conversation": conversation, "parent": None, "role": "user", "parts": []}
        for action, fields in (
            ("ping", {}),
            ("conversation.get", {"conversation": conversation}),
            ("message.create", said),
        ):
            reply = await ask(socket, action, **fields)
            assert (reply["code"], reply["retryable"]) == ("token_expired", False)
        assert (await ask(fresh, "message.create", **said))["type"] == "message.create.ok"
        await deployment.gateway.settle()
        assert (await ask(socket, "ping"))["code"] == "token_expired", "and nothing was pushed to it before"
