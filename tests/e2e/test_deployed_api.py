"""The deployed service as a client meets it: who gets in, what is refused, what is kept."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from local.deploy import aws_session
from local.keys import SigningKey
from tests.support.services import DeployedCloud
from threadkeep_client import Client, NotFoundError, UnauthorizedError, new_id


async def handshake_status(url: str, token: str | None = None, **headers: str) -> int:
    """101 for a handshake that succeeds, else how it was refused."""
    authorization = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        async with connect(url, additional_headers=authorization | headers, open_timeout=60):
            return 101
    except InvalidStatus as refusal:
        return refusal.response.status_code


class TestHandshake:
    async def test_a_token_of_the_key_set_gets_in(self, local_cloud: DeployedCloud) -> None:
        assert await handshake_status(local_cloud.state.url, local_cloud.mint_token()) == 101

    async def test_locally_also_in_the_query(self, local_cloud: DeployedCloud) -> None:
        assert await handshake_status(f"{local_cloud.state.url}?token={local_cloud.mint_token()}") == 101

    async def test_nobody_gets_in_without(self, local_cloud: DeployedCloud) -> None:
        assert await handshake_status(local_cloud.state.url) == 403

    async def test_an_expired_token_is_refused(self, local_cloud: DeployedCloud) -> None:
        token = local_cloud.key.mint_token(sub="ada", tenant="acme", scope=["chat"], lifetime_s=-3600)
        assert await handshake_status(local_cloud.state.url, token) == 403

    async def test_a_token_of_another_key_is_refused(self, local_cloud: DeployedCloud) -> None:
        token = SigningKey.generate().mint_token(sub="ada", tenant="acme", scope=["chat"])
        assert await handshake_status(local_cloud.state.url, token) == 403

    async def test_no_tenant_no_connection(self, local_cloud: DeployedCloud) -> None:
        assert await handshake_status(local_cloud.state.url, local_cloud.mint_token(tenant="")) == 403

    async def test_a_page_of_a_foreign_origin_is_refused(self, local_cloud: DeployedCloud) -> None:
        token = local_cloud.mint_token()
        assert await handshake_status(local_cloud.state.url, token, Origin="https://evil.example") == 403


@pytest.fixture
async def socket(local_cloud: DeployedCloud) -> AsyncIterator[ClientConnection]:
    headers = {"Authorization": f"Bearer {local_cloud.mint_token()}"}
    async with connect(local_cloud.state.url, additional_headers=headers, open_timeout=60) as socket:
        yield socket


async def exchange(socket: ClientConnection, frame: str) -> dict[str, Any]:
    await socket.send(frame)
    reply = json.loads(await asyncio.wait_for(socket.recv(), 60))
    assert isinstance(reply, dict)
    return reply


@pytest.mark.parametrize(
    "frame",
    [
        "",
        "{",
        "[]",
        '"text"',
        '{"action": 7}',
        '{"action": "no.such"}',
        '{"action": "$connect"}',
        '{"action": "message.create"}',
        '{"action": "conversation.create", "title": 7}',
        '{"action": "conversation.create", "metadata": ' + '{"a":' * 200 + "1" + "}" * 200 + "}",
    ],
)
async def test_a_malformed_frame_is_answered_and_the_socket_stays_open(socket: ClientConnection, frame: str) -> None:
    reply = await exchange(socket, frame)
    assert (reply["type"], reply["code"], reply["retryable"]) == ("error", "bad_request", False)
    assert "Traceback" not in json.dumps(reply)
    assert (await exchange(socket, '{"action": "ping", "ref": "r"}'))["ref"] == "r"


async def test_foreign_and_missing_conversations_look_alike(local_cloud: DeployedCloud) -> None:
    def connected(sub: str, tenant: str) -> Client:
        return Client(local_cloud.state.url, local_cloud.mint_token(sub=sub, tenant=tenant, scope="chat"))

    async with connected("ada", "acme") as ada, connected("eve", "acme") as eve, connected("ada", "other") as other:
        hers = (await ada.create_conversation(title="hers"))["id"]
        refusals = set()
        for client, conversation in ((eve, hers), (other, hers), (ada, new_id())):
            with pytest.raises(NotFoundError) as refusal:
                await client.history(conversation)
            refusals.add(str(refusal.value))
        assert len(refusals) == 1


async def test_a_scope_that_is_lacking_is_refused(local_cloud: DeployedCloud) -> None:
    async with Client(local_cloud.state.url, local_cloud.mint_token(scope="chat")) as chat:
        conversation = (await chat.create_conversation())["id"]
        with pytest.raises(UnauthorizedError):
            await chat.produce(conversation, parent=None).open()


async def test_what_is_answered_with_ok_is_in_the_table(local_cloud: DeployedCloud) -> None:
    async with Client(local_cloud.state.url, local_cloud.mint_token()) as client:
        conversation = (await client.create_conversation(title="kept"))["id"]
        question = await client.create_message(conversation, "Where?", parent=None)
        async with client.produce(conversation, parent=question["id"]) as answer:
            await answer.text("Here.")
    table = aws_session().resource("dynamodb", endpoint_url=local_cloud.state.endpoint).Table(local_cloud.state.table)
    item = {"pk": f"acme#{conversation}"}
    for message in (question["id"], answer.id):
        assert "Item" in table.get_item(Key=item | {"sk": f"m#{message}"}), message
