"""Viewers: what a screen shows, by the rules of docs/protocol.md, section 4."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from tests.simulation.network import Device, Frame

RENEW_MS: Final = 240_000
SILENCE_MS: Final = 15_000


class Shown(msgspec.Struct):
    """A message on the screen: its place and text, and whether it has its end."""

    epoch: int = 0
    offset: int = 0
    text: str = ""
    settled: bool = False
    behind: bool = True
    heard_ms: int = 0


class Viewer:
    """A device that watches one conversation. ``check`` is told whatever it comes to show of a stream."""

    def __init__(self, device: Device, conversation: str, check: Callable[[str, str], None]) -> None:
        self.device = device
        self.conversation = conversation
        self.shown: dict[str, Shown] = {}
        self.leaf: str | None = None
        self._check = check
        self._subscribed_ms = 0
        self._must_subscribe = True
        device.on_event = self._on_event
        device.on_connect = self._on_connect

    def _now(self) -> int:
        return self.device.network.scheduler.now_ms()

    def _on_connect(self) -> None:
        self._must_subscribe = True

    def _on_event(self, event: Frame) -> None:
        match event["type"]:
            case "message.created":
                self._settle(event["message"])
            case "stream.opened":
                self._entry(event["stream"]).behind = True
            case "stream.delta":
                self._take(event["stream"], event)

    def _entry(self, stream: str) -> Shown:
        return self.shown.setdefault(stream, Shown(heard_ms=self._now()))

    def _settle(self, message: Frame) -> None:
        text = "".join(part["text"] for part in message["parts"])
        shown = self._entry(message["id"])
        shown.text, shown.settled, shown.behind = text, True, False

    def _take(self, stream: str, delta: Frame) -> None:
        shown = self._entry(stream)
        if shown.settled:
            return
        shown.heard_ms = self._now()
        if delta["epoch"] > shown.epoch or (delta["epoch"] == shown.epoch and delta["at"] > shown.offset):
            shown.behind = True
        elif delta["epoch"] == shown.epoch and delta["at"] == shown.offset:
            self._apply(stream, shown, delta["ops"], delta["next"])

    def _apply(self, stream: str, shown: Shown, ops: list[list[str]], offset: int) -> None:
        shown.text += "".join(op[2] for op in ops)
        shown.offset = offset
        self._check(stream, shown.text)

    def go(self, until: Callable[[], bool]) -> None:
        """Watch until it is so."""
        while not until():
            self._look_after()
            self.device.network.scheduler.pause(100 if self._has_work() else 1_000)

    def _has_work(self) -> bool:
        return self._must_subscribe or any(not shown.settled for shown in self.shown.values())

    def _look_after(self) -> None:
        now = self._now()
        live = [shown for shown in self.shown.values() if not shown.settled]
        if any(now - shown.heard_ms > SILENCE_MS for shown in live):
            self._must_subscribe = True
        if self._must_subscribe or now - self._subscribed_ms > RENEW_MS:
            self._subscribe()
        for stream, shown in list(self.shown.items()):
            if shown.behind and not shown.settled:
                self._resume(stream, shown)

    def _subscribe(self) -> None:
        self._must_subscribe = False
        reply = self.device.call("conversation.subscribe", conversation=self.conversation, times=3)
        if reply is None or "code" in reply:
            self._must_subscribe = True
            return
        self._subscribed_ms = self._now()
        self.leaf = reply["leaf"]
        for live in reply["live"]:
            self._note_live(live)
        for shown in self.shown.values():
            if not shown.settled:
                shown.heard_ms, shown.behind = self._now(), True
        self._catch_up()

    def _note_live(self, live: Frame) -> None:
        shown = self._entry(live["stream"])
        if (shown.epoch, shown.offset) != (live["epoch"], live["offset"]):
            shown.behind = True

    def _device_of(self, _stream: str) -> Device:
        """Where its stream is read."""
        return self.device

    def _note_refusal(self, stream: str, refusal: Frame) -> None:
        """Why its stream could not be read."""

    def _catch_up(self) -> None:
        """Along the path from the leaf: what settled meanwhile."""
        cursor: Frame = {}
        while True:
            page = self.device.call("message.list", conversation=self.conversation, leaf="all", times=3, **cursor)
            if page is None or "code" in page:
                self._must_subscribe = True
                return
            for message in page["messages"]:
                self._settle(message)
            if page["cursor"] is None:
                return
            cursor = {"cursor": page["cursor"]}

    def _resume(self, stream: str, shown: Shown) -> None:
        page = self._device_of(stream).call(
            "stream.resume",
            conversation=self.conversation,
            stream=stream,
            epoch=shown.epoch,
            offset=shown.offset,
            times=3,
        )
        if page is not None and "code" in page:
            self._note_refusal(stream, page)
        if page is None or "code" in page or shown.settled:
            return  # kept as it is, and asked again
        shown.heard_ms = self._now()
        if page["state"] == "settled":
            self._settle(page["message"])
            return
        if page["epoch"] < shown.epoch:
            return
        if page["epoch"] != shown.epoch or page["at"] < shown.offset:
            if page["at"] != 0:
                return  # deltas have moved it on meanwhile
            if page["epoch"] == shown.epoch and page["offset"] < shown.offset:
                return
            shown.epoch, shown.text = page["epoch"], ""
        elif page["at"] > shown.offset:
            return
        self._apply(stream, shown, page["ops"], page["offset"])
        shown.behind = bool(page["more"])
