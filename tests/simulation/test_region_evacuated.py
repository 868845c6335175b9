"""A rehearsal: a region is evacuated and returns, step by step as docs/runbook.md says ("Evacuating a region").

Three ways in which a region can be lost: none of its functions runs; they run, and nobody hears of them; or all is
sound, and it is an exercise.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import pytest

from tests.simulation.network import Frame
from tests.simulation.regions.clients import Client
from tests.simulation.regions.deployment import serving
from tests.simulation.regions.judging import judge
from tests.simulation.regions.producing import RegionalRun
from tests.simulation.regions.world import AWAY, CALM_MS, HOME, Answer, World
from tests.simulation.weather import CALM

EVACUATION_SEED: Final = 1
"""Of a world that is about this; nothing else of it is used."""
BATCHES: Final = 120
WINDOW_MS: Final = 2_000
SWEPT_MS: Final = 70_000
"""After so long a sweeper has come upon everything that nobody writes any more: a lease, and two of its rounds."""


class Rehearsal:
    """The deployment, with whom it serves: somebody who asks, a screen in each region, a worker in the lost one."""

    def __init__(self, lost: str, *, runs_on: bool, is_heard: bool) -> None:
        self.world = World(EVACUATION_SEED)
        for region in self.world.regions.values():
            region.weather = CALM
        self.table = self.world.table
        self.table.lag_ms_max = 200
        self.lost, self.runs_on, self.is_heard = lost, runs_on, is_heard
        self.kept = AWAY if lost == HOME else HOME
        self.phone = self.world.phones[lost]
        self.is_through = False

    def live(self) -> None:
        """All of it."""
        with serving(self.world.scheduler):
            for region in self.world.regions.values():
                region.sweep()
            self.world.scheduler.spawn(self._go)
            for _ in range(100):
                self.world.scheduler.run(until_ms=10_000)
            assert self.is_through

    # --- the steps of the runbook -----------------------------------------------------------------------------

    def close(self) -> None:
        """Step 1: lead clients away from it."""
        self.world.gateways[self.lost].close()
        self.world.regions[self.lost].is_frozen = not self.runs_on
        if not self.is_heard:
            self.table.cut()

    def wait(self) -> None:
        """It takes an operator so long; a region that is heard would end what was being written there before that."""
        self.world.scheduler.pause(2_000 if self.is_heard else SWEPT_MS)

    def declare(self) -> None:
        """Step 2: the others are told that it counts as gone."""
        self.world.regions[self.kept].evacuated(self.lost)

    def return_(self) -> None:
        """Steps 3 and 4: it comes back, nobody knows when, and its table catches up."""
        self.world.regions[self.lost].is_frozen = False
        self.table.heal()
        assert self.world.scheduler.wait(lambda: self.table.under_way == 0, at_most_ms=60_000)

    def open_again(self) -> None:
        """Steps 5 and 6: it counts again, and clients are led to it."""
        self.world.regions[self.kept].evacuated()
        self.world.regions[self.lost].is_open = True

    # --- what clients see of it ---------------------------------------------------------------------------------

    def _go(self) -> None:
        world, scheduler = self.world, self.world.scheduler
        assert self._ask("conversation.create", title="new")["conversation"]["id"] == world.conversation
        for viewer in world.viewers:
            scheduler.spawn(partial(viewer.go, lambda: world.is_over))
        first = self._say("before")
        scheduler.pause(2_000)
        run = self._answer(first)
        scheduler.wait(lambda: run.acknowledged > 0, at_most_ms=10_000)
        assert self._settled() == {first}, "the answer is being written in the region that will be lost"

        self.close()
        self.phone.move_on()
        assert self.phone.at == self.kept
        assert self._read() == [first], "what was acknowledged is read in the other region"
        assert self._listed() == [world.conversation]
        elsewhere = self._elsewhere(run)
        assert elsewhere["detail"]["region"] == self.lost, "until it is declared, its answer may still live there"
        self.wait()
        assert not run.outcome, "the worker keeps its answer, and goes on asking"

        self.declare()
        led = run.client.led
        assert scheduler.wait(lambda: run.outcome == "complete", at_most_ms=10 * 60_000)
        assert run.client.at == self.kept
        assert run.client.led == led, "nobody is sent to what is gone"
        second = self._say("meanwhile", parent=run.place["stream"])
        assert self._read() == [second, run.place["stream"], first]
        assert self._texts()[run.place["stream"]] == run.text, "whole, though half of it was written where nobody is"

        self.return_()
        scheduler.pause(2 * SWEPT_MS)  # its sweeper has found what it still had
        assert world.regions[self.lost].hot.live(world.key) == ()
        assert self._texts()[run.place["stream"]] == run.text, "what has settled meanwhile stands"

        self.open_again()
        self.phone.go_home()
        assert self.phone.at == self.lost
        assert self._read() == [second, run.place["stream"], first], "read where it was lost, as it stands now"
        third = self._say("after", parent=second)
        scheduler.pause(CALM_MS)
        world.is_over = True
        assert self._read()[0] == third
        for reader in world.readers:
            world.last_read[reader.client.home] = reader.read()
        judge(world)
        self.is_through = True

    def _ask(self, action: str, **fields: Any) -> Frame:
        reply = self.phone.call(action, conversation=self.world.conversation, **fields)
        assert reply is not None
        assert "code" not in reply, reply
        return reply

    def _say(self, text: str, parent: str | None = None) -> str:
        message: Frame = {
            "message": self.world.new_id(parent),
            "parent": parent,
            "role": "user",
            "parts": [{"type": "text", "text": text}],
        }
        self._ask("message.create", **message)
        self.world.accepted[message["message"]] = message
        return str(message["message"])

    def _answer(self, question: str) -> RegionalRun:
        world = self.world
        answer = Answer(world.new_id(question), question)
        world.answers[answer.stream] = answer
        worker = Client(world.gateways, "worker", home=self.lost, user="worker", scope="produce")
        world.workers.append(worker)
        place = {"conversation": world.conversation, "stream": answer.stream, "parent": question}
        plan = {"batches": BATCHES, "takeover": False, "dies_at": -1}
        run = RegionalRun(worker, "run", place, window_ms_max=WINDOW_MS, **plan)
        answer.runs.append(run)
        world.scheduler.spawn(run.go)
        return run

    def _elsewhere(self, run: RegionalRun) -> Frame:
        """What the other region tells another worker that would write the same answer."""
        other = Client(self.world.gateways, "other", home=self.kept, user="worker", scope="produce")
        place = {"conversation": run.place["conversation"], "parent": run.place["parent"]}
        reply = other.socket.ask(
            "stream.open", producer="other", message=run.place["stream"], role="assistant", **place
        )
        assert reply is not None
        assert reply["reason"] == "elsewhere"
        return reply

    def _read(self) -> list[str]:
        return [message["id"] for message in self._ask("message.list")["messages"]]

    def _texts(self) -> dict[str, str]:
        page = self._ask("message.list", leaf="all")["messages"]
        return {message["id"]: "".join(part["text"] for part in message["parts"]) for message in page}

    def _listed(self) -> list[str]:
        reply = self.phone.call("conversation.list")
        return [item["id"] for item in reply["items"]] if reply is not None else []

    def _settled(self) -> set[str]:
        return set(self._read())


@pytest.mark.parametrize("lost", [HOME, AWAY])
@pytest.mark.parametrize(
    ("runs_on", "is_heard"), [(False, False), (True, False), (True, True)], ids=["dead", "cut off", "exercise"]
)
def test_a_region_is_evacuated_and_returns(lost: str, *, runs_on: bool, is_heard: bool) -> None:
    Rehearsal(lost, runs_on=runs_on, is_heard=is_heard).live()
