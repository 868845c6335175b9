"""Clients of two regions: a socket to each that they need, led to another one where theirs serves nobody."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.simulation.network import Device, Frame, Network
from tests.simulation.regions.deployment import Deployment
from tests.simulation.regions.table import SLOW_MS
from tests.simulation.scheduler import Scheduler

CLOSED_AGAIN_MS: Final = 500
FAR_MS: Final = 1 << 60


class Gateway(Network):
    """The sockets of one region. While it is closed nobody connects, and nothing passes."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__(scheduler)
        self.region: Deployment  # set by the world, which builds both

    def send(self, device: Device, body: str) -> None:
        """See `Network.send`."""
        if self.region.is_open:
            super().send(device, body)
        else:
            device.cut()

    def push_to(self, connection: str, frame: bytes) -> bool:
        """See `Network.push_to`."""
        return self.region.is_open and super().push_to(connection, frame)

    def close(self) -> None:
        """Every socket breaks."""
        self.region.is_open = False
        for device in list(self.devices.values()):
            device.cut()


class Socket(Device):
    """A connection to one region."""

    network: Gateway
    looks_every_ms = 40

    @property
    def is_served(self) -> bool:
        """Whether its region serves anybody."""
        return self.network.region.is_open

    def _connect(self) -> None:
        if self.network.region.is_open:
            super()._connect()
        else:
            self.network.scheduler.at(CLOSED_AGAIN_MS, self._connect)


class Client:
    """One principal on one device, with a socket for each region; goes where it is told to.

    Looks like a `Device` to whoever writes or reads with it.

    Attributes:
        at: the region that it asks.
        led: how often it was told to go elsewhere.
        moved: how often its region served nobody.
    """

    def __init__(self, gateways: Mapping[str, Gateway], name: str, *, home: str, user: str, scope: str) -> None:
        self.name = name
        self.home = home
        self.at = home
        self.led = self.moved = 0
        self.sockets = {
            region: Socket(gateway, f"{name}-{region}", user=user, scope=scope) for region, gateway in gateways.items()
        }

    @property
    def network(self) -> Gateway:
        """That of the region that it asks."""
        return self.socket.network

    @property
    def socket(self) -> Socket:
        """To the region that it asks."""
        return self.sockets[self.at]

    def listen(self, on_event: Callable[[Frame], None], on_connect: Callable[[], None]) -> None:
        """Be told of all events, and of every new socket."""
        for socket in self.sockets.values():
            socket.on_event = on_event
            socket.on_connect = on_connect

    def go_home(self) -> None:
        """Ask one's own region from here on."""
        self.at = self.home
        self.move_on()

    def move_on(self) -> bool:
        """Where the region serves nobody, the name for all regions leads to one that does."""
        if self.socket.is_served:
            return False
        self.moved += 1
        self.at = next(region for region, socket in self.sockets.items() if socket.is_served)
        return True

    def call(self, action: str, *, times: int = 150, **fields: Any) -> Frame | None:
        """Ask, repeat what may be repeated, and follow where the stream lives; None if it never came to an answer."""
        for _ in range(times):
            self.move_on()
            reply = self.socket.ask(action, **fields)
            if reply is not None and reply.get("reason") == "elsewhere":
                self._follow(reply["detail"]["region"])
            elif reply is not None and not reply.get("retryable"):
                return reply
            scheduler = self.network.scheduler
            scheduler.pause(scheduler.random.randint(50, 1_500))
        return None

    def _follow(self, region: str) -> None:
        """To where it is told to be, unless nobody is served there: then it asks here again, until they know."""
        gone_ms = self.network.scheduler.now_ms() - self.network.region.gone_since_ms.get(region, FAR_MS)
        assert gone_ms < SLOW_MS, f"{self.name} is sent to {region}, which was evacuated {gone_ms} ms ago"
        if self.sockets[region].is_served:
            self.led += 1
            self.at = region
