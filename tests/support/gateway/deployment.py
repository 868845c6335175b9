"""The service behind the gateway: its handlers, a hot tier of the test's, the other stores in memory, and clients."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator
from typing import Any, Final

import boto3

from local.keys import SigningKey
from tests.support.gateway.bulkheads import REGION, bulkheads, serving
from tests.support.gateway.clock import VirtualClock
from tests.support.gateway.server import FaultGateway
from tests.support.hot import SystemClock
from tests.support.house import House
from threadkeep.ports import HotStore
from threadkeep.stores.aws_config import PUSH
from threadkeep.stores.push_gateway import GatewayPush
from threadkeep.usecases.services import Services
from threadkeep_client.backoff import Backoff
from threadkeep_client.cli.chats import Chat
from threadkeep_client.cli.replay import Replay
from threadkeep_client.cli.report import Report
from threadkeep_client.client import Client
from threadkeep_client.patience import ConnectionSettings
from threadkeep_client.updates import ViewerSettings
from threadkeep_client.viewer import Viewer

QUICK: Final = Backoff(base_s=0.02, ceiling_s=0.2, floor_s=0.005)
CONNECTION: Final = ConnectionSettings(open_s=5.0, reply_s=0.4, deadline_s=20.0, reconnect=QUICK, repeat=QUICK)
VIEWER: Final = ViewerSettings(silent_s=0.4, retry_s=0.1)


class QuickClient(Client):
    """A client that is as patient as a test can wait."""

    def watch(
        self,
        conversation: str,
        *,
        stream: str | None = None,
        since: str | None = None,
        settings: ViewerSettings | None = None,
    ) -> Viewer:
        """See `Client.watch`."""
        return super().watch(conversation, stream=stream, since=since, settings=settings or VIEWER)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Deployment:
    """The service as clients see it, and what is behind."""

    gateway: FaultGateway
    services: Services
    key: SigningKey

    def client(self, scope: str = "chat", sub: str = "ann") -> QuickClient:
        """A client, not yet connected."""
        token = self.key.mint_token(sub=sub, tenant="acme", scope=scope.split())
        return QuickClient(self.gateway.url, token, settings=CONNECTION)

    async def replay(self, chats: list[Chat]) -> Report:
        """Send conversations through it, watch, read back, compare."""
        report = Report(checked=True)
        async with self.client() as chat, self.client("produce", "worker") as worker, self.client() as watcher:
            replay = Replay(chat, worker, watcher, report, check=True)
            await asyncio.gather(*(replay.run(one, lambda: None) for one in chats))
        return report


@contextlib.asynccontextmanager
async def deployed(hot: HotStore, key: SigningKey, **settings: Any) -> AsyncIterator[Deployment]:
    """The service runs meanwhile, behind a gateway with these settings. No handler may have noted a fault."""
    async with FaultGateway(bulkheads(), clock=VirtualClock(flowing=True), **settings) as gateway:
        posts = boto3.client(
            "apigatewaymanagementapi",
            endpoint_url=gateway.connections_url,
            region_name=REGION,
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
            config=PUSH,
        )
        services = dataclasses.replace(House().services, hot=hot, push=GatewayPush(posts), clock=SystemClock())
        with serving(services, key) as noted:
            yield Deployment(gateway=gateway, services=services, key=key)
            await gateway.settle()
        posts.close()
        assert noted == []
