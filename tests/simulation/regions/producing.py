"""Producers that go where they are told that their stream lives."""

from __future__ import annotations

from typing import Any, cast

from tests.simulation.network import Device, Frame
from tests.simulation.producing import Run
from tests.simulation.regions.clients import Client


class RegionalRun(Run):
    """One run, which asks by a client of two regions; it takes its time between two batches."""

    def __init__(self, client: Client, name: str, place: Frame, *, window_ms_max: int, **plan: Any) -> None:
        super().__init__(cast("Device", client), name, place, **plan)  # it looks like one
        self.client = client
        self._window_ms_max = window_ms_max

    def _window(self) -> None:
        scheduler = self.client.network.scheduler
        scheduler.pause(scheduler.random.randint(1, self._window_ms_max))
