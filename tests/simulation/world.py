"""A world: one conversation of a few turns, lived through by devices, producers and a sweeper; then judged."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import msgspec

from tests.simulation.network import Device, Frame, Network
from tests.simulation.producing import Run
from tests.simulation.reading import Reader
from tests.simulation.scheduler import START_MS, Scheduler
from tests.simulation.service import Service, serving, stored
from tests.simulation.viewing import Viewer
from tests.simulation.weather import CALM, draw
from threadkeep.domain import ids

TURN_MS_MAX: Final = 180_000
LIFE_MS: Final = 600_000
CALM_MS: Final = 300_000
"""Long enough for every lease and deadline, and for a viewer to renew."""


class Broken(AssertionError):  # noqa: N818 -- named for the promise
    """The history breaks a promise. The message says which."""


class Answer(msgspec.Struct):
    """An answer that was to be written, and by which runs."""

    stream: str
    parent: str
    runs: list[Run] = []
    stopped: bool = False


class World:
    """Everything that happens from one seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.scheduler = Scheduler(seed)
        self.rng = self.scheduler.random
        # Every fourth world breaks sockets all the time, every fourth kills nearly every producer.
        self.deadly = seed % 4 == 1
        self.network = Network(self.scheduler)
        self.weather = draw(self.rng, cuts=seed % 4 == 0)
        self.service = Service(self.scheduler, self.weather, self.network.push_to)
        self.network.service = self.service
        self.phone = Device(self.network, "phone", user="ann", scope="chat")
        self.tablet = Device(self.network, "tablet", user="ann", scope="chat")
        self.worker = Device(self.network, "worker", user="worker", scope="produce")
        self.conversation = self._new_id()
        self.viewers = [Viewer(device, self.conversation, self._check_shown) for device in (self.phone, self.tablet)]
        self.reader = Reader(
            Device(self.network, "laptop", user="ann", scope="chat"),
            self.conversation,
            check=self._check_path,
            acknowledged=self._acknowledged,
        )
        self.read_last: list[Frame] | None = None
        self.answers: dict[str, Answer] = {}
        self.accepted: dict[str, Frame] = {}
        self.kills = 0
        self._is_over = False
        self._has_talked = False

    def live(self) -> None:
        """Live through it, let it calm down, and judge.

        Raises:
            Broken: a promise was broken.
        """
        with serving(self.service):
            self.scheduler.spawn(self._talk)
            self.service.storm()
            self.service.sweep()
            end_ms = self.scheduler.now_ms() + LIFE_MS
            while self._is_lively() and self.scheduler.now_ms() < end_ms:
                self.scheduler.run(until_ms=1_000)
            self.service.calm_down()
            self.scheduler.run(until_ms=CALM_MS)
            self._is_over = True
            self.scheduler.spawn(self._read_last)
            self.scheduler.run(until_ms=10_000)
            self._judge()

    def _is_lively(self) -> bool:
        """Whether somebody still has something to do."""
        return not self._has_talked or any(not run.outcome for answer in self.answers.values() for run in answer.runs)

    def _new_id(self, after: str | None = None) -> str:
        made = ids.mint(self.scheduler.now_ms())
        while after is not None and made <= after:
            made = ids.mint(self.scheduler.now_ms() + 1)
        return made

    # --- what happens -----------------------------------------------------------------------------------------

    def _talk(self) -> None:
        self._take_turns()
        self._has_talked = True

    def _take_turns(self) -> None:
        if self.phone.call("conversation.create", conversation=self.conversation) is None:
            return
        for viewer in self.viewers:
            self.scheduler.spawn(partial(viewer.go, lambda: self._is_over))
        self.scheduler.spawn(partial(self.reader.go, lambda: self.service.weather is CALM))
        parent: str | None = None
        for _ in range(self.rng.randint(1, 2)):
            question = self._ask(parent)
            if question is None:
                return
            parent = self._answer(question)
            if parent is None:
                return

    def _ask(self, parent: str | None) -> str | None:
        """Both devices may ask at one instant: then one of them is told that it came second."""
        self._send(self.phone, parent)
        if self.scheduler.chance(0.4):
            self.scheduler.spawn(lambda: self._send(self.tablet, parent), after_ms=self.rng.randint(0, 20))
            self.scheduler.pause(5_000)
        found = [name for name, message in self.accepted.items() if message["parent"] == parent]
        return max(found, default=None)

    def _send(self, device: Device, parent: str | None) -> None:
        identifier = self._new_id(parent)
        message: Frame = {
            "message": identifier,
            "parent": parent,
            "role": "user",
            "parts": [{"type": "text", "text": f"asked by {device.name}"}],
        }
        reply = device.call("message.create", conversation=self.conversation, **message)
        if reply is not None and "code" not in reply:
            self.accepted[identifier] = message

    def _answer(self, question: str) -> str | None:
        """Have it answered by one run or several, perhaps stopped on the way; the answer's id once it is settled."""
        answer = Answer(self._new_id(question), question)
        self.answers[answer.stream] = answer
        self._start(answer, takeover=False, after_ms=0)
        if self.scheduler.chance(0.3):  # a second run of the same job, while the first is at it or after its death
            self._start(answer, takeover=self.scheduler.chance(0.7), after_ms=self.rng.randint(0, 20_000))
        if self.scheduler.chance(0.2):
            self.scheduler.spawn(lambda: self._stop(answer), after_ms=self.rng.randint(0, 3_000))
        self.scheduler.wait(lambda: self._is_settled(answer.stream), at_most_ms=TURN_MS_MAX, every_ms=500)
        return answer.stream if self._is_settled(answer.stream) else None

    def _start(self, answer: Answer, *, takeover: bool, after_ms: int) -> None:
        place = {"conversation": self.conversation, "stream": answer.stream, "parent": answer.parent}
        batches = self.rng.randint(1, 8)
        dies_at = self.rng.randint(0, batches) if self.scheduler.chance(0.9 if self.deadly else 0.2) else -1
        self.kills += dies_at >= 0
        name = f"run{len(answer.runs) + 1}"
        run = Run(self.worker, name, place, batches=batches, takeover=takeover, dies_at=dies_at)
        answer.runs.append(run)
        self.scheduler.spawn(run.go, after_ms=after_ms)

    def _stop(self, answer: Answer) -> None:
        reply = self.tablet.call("stream.cancel", conversation=self.conversation, stream=answer.stream)
        answer.stopped = reply is not None and "code" not in reply

    def _is_settled(self, stream: str) -> bool:
        return stream in stored(self.service, self.conversation)

    # --- what must hold ---------------------------------------------------------------------------------------

    def _check_shown(self, stream: str, text: str) -> None:
        """Whatever a screen shows of an answer is the beginning of what one run would have it say."""
        answer = self.answers.get(stream)
        if answer is not None and not any(run.text.startswith(text) for run in answer.runs):
            raise Broken(f"a screen shows a mixture: {text!r}")

    def _acknowledged(self) -> set[str]:
        closed = {
            stream for stream, answer in self.answers.items() if any(run.outcome == "complete" for run in answer.runs)
        }
        return closed | self.accepted.keys()

    def _check_path(self, path: list[Frame], known: set[str]) -> None:
        """A path has no gap, whatever the weather; and with the hot tier always there nothing acknowledged is missing.

        Nobody forks then, so that the messages are one path. (What the hot tier lost or never heard of, a path without
        a named leaf may lack until somebody subscribes: `_judge` looks for it at the end.)
        """
        parents = [message["parent"] for message in path]
        self._require(parents == [*(message["id"] for message in path[1:]), None][: len(path)], f"a gap: {parents}")
        if not self.weather.loses_hot and not self.service.losses:
            missing = known - {message["id"] for message in path}
            self._require(not missing, f"a path lacks what had been acknowledged: {missing}")

    def _read_last(self) -> None:
        self.read_last = self.reader.read()

    def _judge(self) -> None:
        table = stored(self.service, self.conversation)
        for name, message in self.accepted.items():
            self._require(name in table, f"the accepted message {name} is not in the table")
            self._require(table[name]["parts"] == message["parts"], f"the accepted message {name} is another one")
        for answer in self.answers.values():
            self._judge_answer(answer, table)
        if not self.weather.loses_hot and not self.service.losses:
            self._judge_turns(table)
        live = [stream for talk in self.service.hot._conversations.values() for stream in talk.live]
        self._require(not live, f"still running: {live}")
        self._require(not self.service.hot._deadlines, f"still filed: {list(self.service.hot._deadlines)}")
        for viewer in self.viewers:
            self._judge_screen(viewer, table)
        self._judge_last_read(table)

    def _judge_last_read(self, table: dict[str, Any]) -> None:
        """In the end the path is read from the newest message that the table holds."""
        if not table:
            return
        self._require(self.read_last is not None, "nobody could read")
        expected, name = [], max(table)
        while name is not None:
            expected.append(name)
            name = table[name]["parent"]
        read = [message["id"] for message in self.read_last or ()]
        self._require(read == expected, f"the last read is {read}, the table's path {expected}")

    def _judge_answer(self, answer: Answer, table: dict[str, Any]) -> None:
        message = table.get(answer.stream)
        if message is None:
            opened = [run for run in answer.runs if run.acknowledged or run.outcome == "complete"]
            self._require(not opened or self.service.losses > 0, "an answer that was begun is not in the table")
            return
        text = "".join(part["text"] for part in message["parts"])
        self._require(any(run.text.startswith(text) for run in answer.runs), f"the table holds a mixture: {text!r}")
        if message["status"] == "complete":
            self._require(any(run.text == text for run in answer.runs), f"complete, but cut: {text!r}")
        epoch = self._epoch(answer.stream)
        for run in answer.runs:
            if run.outcome == "complete":
                self._require(run.text == text, f"{run.name} was told ok, the table holds {text!r}")
                self._require(message["status"] == "complete", f"{run.name} was told ok, it is {message['status']}")
            if run.epoch == epoch and not self.service.losses:
                said = run.text[: run.acknowledged]
                self._require(text.startswith(said), f"{run.name} lost acknowledged text: {said!r}, kept {text!r}")

    def _epoch(self, stream: str) -> int:
        for key, messages in self.service.warm.messages.items():
            if key.conversation == self.conversation and stream in messages:
                return messages[stream].epoch
        raise KeyError(stream)

    def _judge_turns(self, table: dict[str, Any]) -> None:
        """With the hot tier always there, no two messages stand under one parent, since nobody forks here."""
        parents = [message["parent"] for message in table.values()]
        twice = {parent for parent in parents if parents.count(parent) > 1}
        self._require(not twice, f"two messages under {twice}")

    def _judge_screen(self, viewer: Viewer, table: dict[str, Any]) -> None:
        for name, message in table.items():
            shown = viewer.shown.get(name)
            self._require(shown is not None and shown.settled, f"{viewer.device.name} does not show {name} as settled")
            text = "".join(part["text"] for part in message["parts"])
            self._require(
                shown is not None and shown.text == text, f"{viewer.device.name} shows other text than is stored"
            )

    def _require(self, holds: bool, otherwise: str) -> None:  # noqa: FBT001 -- reads as a sentence
        if not holds:
            raise Broken(f"{otherwise} (at {self.scheduler.now_ms() - START_MS} ms)")
