"""Viewers of two regions: settled messages from their own, what streams elsewhere from there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tests.simulation.network import Device, Frame
from tests.simulation.regions.clients import Client
from tests.simulation.viewing import RENEW_MS, Shown, Viewer

AGAIN_MS: Final = 1_000
GIVE_UP_MS: Final = 60_000
"""How long what nobody knows is asked for (protocol, section 4)."""


class RegionalViewer(Viewer):
    """A viewer that is told of streams elsewhere, and follows them with a socket of its own (protocol, section 9).

    Attributes:
        followed: streams that it followed elsewhere.
        is_deleted: whether it was told that the conversation is gone.
        title: what it was last told.
    """

    def __init__(self, client: Client, conversation: str, check: Callable[[str, str], None]) -> None:
        super().__init__(client.socket, conversation, check)
        self.client = client
        self.followed: set[str] = set()
        self.is_deleted = False
        self.title: str | None = None
        self._where: dict[str, str] = {}
        self._unknown_ms: dict[str, int] = {}
        self._again_ms: dict[str, int] = {}
        self._watched_ms: dict[str, int] = {}
        client.listen(self._on_event, self._on_connect)

    def _on_connect(self) -> None:
        super()._on_connect()
        self._watched_ms.clear()

    def _on_event(self, event: Frame) -> None:
        match event["type"]:
            case "stream.opened":
                self._note_region(event["stream"], event["region"])
            case "conversation.deleted":
                self.is_deleted = True
            case "conversation.updated":
                self.title = event["conversation"].get("title")
        super()._on_event(event)

    def go(self, until: Callable[[], bool]) -> None:
        """Watch until it is so, or the conversation is gone."""
        super().go(lambda: self.is_deleted or until())

    def _note_live(self, live: Frame) -> None:
        self._note_region(live["stream"], live["region"])
        super()._note_live(live)

    def _note_refusal(self, stream: str, refusal: Frame) -> None:
        if refusal.get("reason") == "elsewhere":
            self._note_region(stream, refusal["detail"]["region"])
        elif refusal["code"] == "not_found":
            since_ms = self._unknown_ms.setdefault(stream, self._now())
            if self._now() - since_ms > GIVE_UP_MS and not self.shown[stream].settled:
                del self.shown[stream], self._unknown_ms[stream]

    def _note_region(self, stream: str, region: str) -> None:
        if self._where.get(stream, self.client.at) != region:
            self._entry(stream).behind = True
        self._where[stream] = region

    def _look_after(self) -> None:
        scheduler = self.device.network.scheduler
        if self.client.move_on():
            self._must_subscribe = True
        elif self.client.at != self.client.home and scheduler.chance(0.02):
            self.client.go_home()
            self._must_subscribe = self.client.at == self.client.home
        self.device = self.client.socket
        for region in dict.fromkeys(self._where.get(name) for name, shown in self.shown.items() if not shown.settled):
            if region is not None and region != self.client.at:
                self._watch(region)
        super()._look_after()

    @property
    def has_subscribed(self) -> bool:
        """Whether it ever came to watch."""
        return self._subscribed_ms > 0

    def _subscribe(self) -> None:
        super()._subscribe()
        if any(shown.behind and not shown.settled for shown in self.shown.values()):
            self._watched_ms.clear()  # what streams elsewhere may be silent since that subscription was lost
        if self._must_subscribe:
            self.device.network.scheduler.pause(1_000)

    def _watch(self, region: str) -> None:
        """Be subscribed there too, as long as something is followed there."""
        socket = self.client.sockets[region]
        if not socket.is_served or self._now() - self._watched_ms.get(region, -RENEW_MS) < RENEW_MS:
            return
        reply = socket.ask("conversation.subscribe", conversation=self.conversation)
        if reply is not None and "code" not in reply:
            self._watched_ms[region] = self._now()
            for shown in self.shown.values():
                shown.behind = shown.behind or not shown.settled

    def _device_of(self, stream: str) -> Device:
        socket = self.client.sockets[self._where.get(stream, self.client.at)]
        return socket if socket.is_served else self.device

    def _resume(self, stream: str, shown: Shown) -> None:
        if self._now() < self._again_ms.get(stream, 0):
            return
        if self._device_of(stream) is not self.device:
            self.followed.add(stream)
        super()._resume(stream, shown)
        if shown.behind:
            self._again_ms[stream] = self._now() + AGAIN_MS
