"""Two regions behind real sockets, for the real clients, in virtual time; what one writes comes to the other later."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from http import HTTPStatus
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection
from websockets.http11 import Request, Response

from tests.support import regions as support
from tests.support.house import Device, Frame
from tests.support.regions import RegionHouse, Regions
from tests.support.served_house import HouseServer, now
from threadkeep_client import Client

LAG_S = 0.4
"""Until what was written has come to the other region, and is told there."""


class RegionServer(HouseServer):
    """One region's endpoint.

    Attributes:
        knocks: when somebody tried to connect.
        most: the most connections that one device ever had at one time.
    """

    def __init__(self, served: ServedRegions, house: RegionHouse) -> None:
        super().__init__(house)
        self.knocks: list[float] = []
        self.most = 0
        self._served = served
        self._is_away = False

    @property
    def url(self) -> str:
        """Where its clients connect to."""
        return f"ws://127.0.0.1:{self.port}/test"

    def go_away(self) -> None:
        """Nobody is served any more; what it holds it keeps."""
        self._is_away = True
        for socket in tuple(self.sockets.values()):
            socket.transport.abort()
        self.sockets.clear()

    def come_back(self) -> None:
        """Serve again."""
        self._is_away = False

    def welcome(self, connection: ServerConnection, _request: Request) -> Response | None:
        """See `HouseServer`."""
        self.knocks.append(now())
        return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, "away\n") if self._is_away else None

    def _invoke(self, event: dict[str, Any]) -> dict[str, Any]:
        answer = super()._invoke(event)
        names = [name.partition("-")[0] for name in self.sockets]
        self.most = max([self.most, *(names.count(name) for name in names)])
        self._served.spread(self)
        return answer


class ServedRegions:
    """Both regions: `eu` and `us`."""

    def __init__(self, regions: Regions) -> None:
        self.regions = regions
        self.eu = RegionServer(self, regions.eu)
        self.us = RegionServer(self, regions.us)

    def client(self, region: RegionServer, device: Device) -> Client:
        """A client of that region, not yet connected."""
        return region.client(device)

    def spread(self, server: RegionServer) -> None:
        """What was just written comes to the other region after a while, and is told there."""
        house = server.house
        assert isinstance(house, RegionHouse)
        if house.outbox or house.records:
            server.spawn_later(LAG_S, self._settle)

    def _settle(self) -> None:
        self.eu.set_clock()
        self.regions.settle()

    @contextmanager
    def _known(self) -> Iterator[None]:
        """Each writes its real endpoint into what it writes."""
        urls = {
            house.region: server.url for server in (self.eu, self.us) if isinstance(house := server.house, RegionHouse)
        }
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(support, "endpoint", lambda region: urls[region])
            for server in (self.eu, self.us):
                others = server.house.services.others
                assert others is not None
                server.house.replace(others=dataclasses.replace(others, endpoint=server.url))
            yield


@asynccontextmanager
async def served(regions: Regions) -> AsyncIterator[ServedRegions]:
    """Serve both regions."""
    made = ServedRegions(regions)
    async with made.eu, made.us:
        with made._known():
            yield made


def live_elsewhere(reply: Frame) -> list[str]:
    """The endpoints that a reply to a subscribe names."""
    return [told["endpoint"] for told in reply["live"] if "endpoint" in told]
