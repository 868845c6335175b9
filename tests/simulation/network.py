"""Sockets under the weather: frames are lost, doubled, late and out of order, and connections break."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from tests.simulation.scheduler import Scheduler
from tests.simulation.service import Service
from tests.simulation.weather import Weather

Frame = dict[str, Any]

TIMER_MS: Final = 10_000
"""How long a client waits for a reply (docs/protocol.md, section 2)."""


class Network:
    """All sockets of one world."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.service: Service  # set by the world, which builds both
        self.devices: dict[str, Device] = {}
        self.cuts = 0

    @property
    def weather(self) -> Weather:
        """That of the service."""
        return self.service.weather

    def delay_ms(self) -> int:
        """How long a frame takes; now and then much longer."""
        most = self.weather.delay_ms_max * (10 if self.scheduler.chance(0.02) else 1)
        return self.scheduler.random.randint(0, most)

    def send(self, device: Device, body: str) -> None:
        """A request on its way; perhaps twice, perhaps not at all."""
        if self.scheduler.chance(self.weather.cut):
            device.cut()
            return
        connection = device.connection
        for _ in range(2 if self.scheduler.chance(self.weather.request_doubled) else 1):
            if not self.scheduler.chance(self.weather.request_lost):
                self.scheduler.spawn(lambda: self._serve(device, connection, body), after_ms=self.delay_ms())

    def _serve(self, device: Device, connection: str, body: str) -> None:
        reply = self.service.invoke(body, connection, device.user, device.scope)
        if reply is None:  # crashed: the gateway's own frame, which names no request
            reply = {"message": "Internal server error", "connectionId": connection, "requestId": "x"}
        if not self.scheduler.chance(self.weather.reply_lost):
            frame = reply
            self.scheduler.at(self.delay_ms(), lambda: self._arrive(connection, frame))

    def push_to(self, connection: str, frame: bytes) -> bool:
        """A frame from @connections; False where the connection is gone."""
        device = self.devices.get(connection)
        if device is None:
            return False
        if self.scheduler.chance(self.weather.cut):
            device.cut()
            return False
        for _ in range(2 if self.scheduler.chance(self.weather.push_doubled) else 1):
            if not self.scheduler.chance(self.weather.push_lost):
                self.scheduler.at(self.delay_ms(), lambda: self._arrive(connection, json.loads(frame)))
        return True

    def _arrive(self, connection: str, frame: Frame) -> None:
        device = self.devices.get(connection)
        if device is not None:
            device.receive(frame)


class Device:
    """A client's connection: requests with their timers, repeats by the protocol's rules, events to whoever watches."""

    looks_every_ms = 20
    """How often it looks whether its reply has come."""

    def __init__(self, network: Network, name: str, *, user: str, scope: str) -> None:
        self.network = network
        self.name = name
        self.user = user
        self.scope = scope
        self.on_event: Callable[[Frame], None] = lambda _: None
        self.on_connect: Callable[[], None] = lambda: None
        self.connection = ""
        self._sockets = 0
        self._waiting: dict[str, Frame | None] = {}
        self._refs = 0
        self._connect()

    def _connect(self) -> None:
        self._sockets += 1
        self.connection = f"{self.name}-{self._sockets}="
        self.network.devices[self.connection] = self
        self.on_connect()

    def cut(self) -> None:
        """The socket breaks; there is a new one a little later."""
        if not self.connection:
            return
        self.network.cuts += 1
        self.network.scheduler.note(f"{self.name}: cut")
        del self.network.devices[self.connection]
        self.connection = ""
        self._fail_all()
        self.network.scheduler.at(self.network.scheduler.random.randint(10, 2_000), self._connect)

    def _fail_all(self) -> None:
        self._waiting = {ref: {"code": "unavailable", "retryable": True} for ref in self._waiting}

    def receive(self, frame: Frame) -> None:
        """A frame has come."""
        if "type" not in frame:
            self._fail_all()  # it names no request: each of them may be the one
        elif frame.get("ref") in self._waiting:
            self._waiting[frame["ref"]] = frame
        elif "ref" not in frame:
            self.on_event(frame)

    def ask(self, action: str, **fields: Any) -> Frame | None:
        """One request; None if no reply came in time."""
        scheduler = self.network.scheduler
        if not scheduler.wait(lambda: bool(self.connection), at_most_ms=TIMER_MS):
            return None
        self._refs += 1
        ref = f"{self.name}-{self._refs}"
        self._waiting[ref] = None
        self.network.send(self, json.dumps({"action": action, "ref": ref, **fields}))
        scheduler.wait(lambda: self._waiting[ref] is not None, at_most_ms=TIMER_MS, every_ms=self.looks_every_ms)
        return self._waiting.pop(ref)

    def call(self, action: str, *, times: int = 40, **fields: Any) -> Frame | None:
        """Ask, and repeat what may be repeated with the same ids; None if it never came to an answer."""
        scheduler = self.network.scheduler
        for number in range(times):
            reply = self.ask(action, **fields)
            if reply is not None and not reply.get("retryable"):
                return reply
            scheduler.pause(scheduler.random.randint(50, min(3_000, 200 * (number + 1))))
        return None
