"""Producers: runs of a worker's program, each with a text of its own, so that a mixture shows."""

from __future__ import annotations

from typing import Any

from tests.simulation.network import Device, Frame


class Run:
    """One run: opens (or takes over), appends batch by batch, closes. It may be killed between any two steps.

    Attributes:
        text: all that this run would have the answer say: what it kept from a run before, and its own batches.
        acknowledged: how much of the text has been acknowledged in the present epoch.
        outcome: ``complete`` (closed with ok), ``ended`` (by another), ``killed``, ``lost`` (gave up), or still "".
    """

    def __init__(self, device: Device, name: str, place: Frame, *, batches: int, takeover: bool, dies_at: int) -> None:
        self.device = device
        self.name = name
        self.place = place
        self.takeover = takeover
        self.dies_at = dies_at
        self.epoch = 0
        self.acknowledged = 0
        self.outcome = ""
        self.settled: Frame | None = None
        self._own = [f"{name}.{number} " for number in range(batches)]
        self._kept = ""
        self._base = 0
        self._sent: list[str] = []

    @property
    def text(self) -> str:
        """See above."""
        return self._kept + "".join(self._own)

    def go(self) -> None:
        """Run to whatever end."""
        self.outcome = self._go()
        self.device.network.scheduler.note(f"{self.name}: {self.outcome}")

    def _go(self) -> str:
        if not self._open(held=None):
            return self.outcome or "ended"
        steps = 0
        while True:
            if steps == self.dies_at:
                return "killed"
            steps += 1
            self._window()
            reply = self._step()
            if reply is None:
                return "lost"
            outcome = self._judge(reply)
            if outcome:
                return outcome

    def _window(self) -> None:
        scheduler = self.device.network.scheduler
        scheduler.pause(scheduler.random.randint(1, 250))

    def _step(self) -> Frame | None:
        """The next append, or the close."""
        at = {**self.place_of_writing, "epoch": self.epoch}
        if self._done < len(self._sent):
            ops = [["text", 0, self._sent[self._done]]]
            return self.device.call("stream.append", **at, offset=self._base + self._done, ops=ops)
        body = {"body": [{"type": "text", "text": self.text}], "parent": self.place["parent"], "role": "assistant"}
        return self.device.call("stream.close", **at, offset=self._base + self._done, status="complete", **body)

    def _judge(self, reply: Frame) -> str:
        """What the reply means; an outcome where it is the end."""
        match reply.get("code"), reply.get("reason"):
            case None, None if reply["type"] == "stream.append.ok":
                self._done = reply["offset"] - self._base
                self.acknowledged = len(self._kept_here) + sum(map(len, self._sent[: self._done]))
            case None, None:
                self.settled = reply["message"]
                return "complete"
            case "gap", _:
                self._done = max(0, reply["detail"]["expected"] - self._base)
            case ("not_found" | "fenced", _) | ("conflict", "diverged"):
                if not self._open(held=self.epoch):
                    return self.outcome or "ended"
            case "closed", _:
                return "ended"
            case code, reason:
                raise AssertionError(f"{self.name}: no rule for {code}/{reason}")
        return ""

    def _open(self, *, held: int | None) -> bool:
        """Open, anew where an epoch was held: then everything is sent again."""
        opening: dict[str, Any] = {"producer": self.name, "message": self.place["stream"], "role": "assistant"}
        opening |= {"conversation": self.place["conversation"], "parent": self.place["parent"]}
        if held is not None:
            opening["epoch"] = held
        elif self.takeover:
            opening["takeover"] = True
        reply = self.device.call("stream.open", **opening)
        if reply is None:
            self.outcome = "lost"
            return False
        if "code" in reply:
            return False
        self.epoch, self._done = reply["epoch"], 0
        self.acknowledged = 0
        if held is None and self.takeover and reply["offset"]:
            return self._read_kept(reply["offset"])
        self._base, self._kept_here = 0, ""
        self._sent = [*([self._kept] if self._kept else []), *self._own]
        return True

    def _read_kept(self, end: int) -> bool:
        """What the run before has left, by `stream.resume`."""
        self._kept, at = "", 0
        while at < end:
            where = {"conversation": self.place["conversation"], "stream": self.place["stream"]}
            page = self.device.call("stream.resume", **where, epoch=self.epoch, offset=at)
            if page is None or "code" in page or page["epoch"] != self.epoch or page["state"] != "live":
                self._kept = ""
                return self._open(held=self.epoch)
            self._kept += "".join(op[2] for op in page["ops"])
            at = page["offset"]
        self._base, self._kept_here = end, self._kept
        self._sent = list(self._own)
        self.acknowledged = len(self._kept)
        return True

    @property
    def place_of_writing(self) -> Frame:
        """Conversation and stream, as appends name them."""
        return {"conversation": self.place["conversation"], "stream": self.place["stream"]}
