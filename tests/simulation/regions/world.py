"""A world of two regions: one conversation, lived through while the regions lose sight of each other; then judged."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import msgspec

from tests.simulation.network import Frame
from tests.simulation.regions.clients import Client, Gateway
from tests.simulation.regions.contending import Contention
from tests.simulation.regions.deployment import SECOND_PASS_MS, Deployment, serving, stored
from tests.simulation.regions.producing import RegionalRun
from tests.simulation.regions.reading import RegionalReader
from tests.simulation.regions.table import LAG_MS_MAX, GlobalTable
from tests.simulation.regions.trouble import Kind, Trouble
from tests.simulation.regions.watching import RegionalViewer
from tests.simulation.scheduler import Scheduler
from tests.simulation.weather import Weather, draw
from threadkeep.domain.model import ConversationKey
from threadkeep.stores.buckets_memory import ObjectsMemory

HOME: Final = "eu-central-1"
AWAY: Final = "us-east-1"
REGIONS: Final = (HOME, AWAY)
TURN_MS_MAX: Final = 120_000
LIFE_MS: Final = 400_000
CALM_MS: Final = 270_000
"""Long enough for every lease and deadline, the second pass of an erasure, and for a viewer to renew."""
PROMPT_MS: Final = 60_000
"""Long enough for what piled up in a cut to come, however late, and to be told; far from a viewer's renewal."""


class Answer(msgspec.Struct):
    """An answer that was to be written, and by which runs."""

    stream: str
    parent: str
    runs: list[RegionalRun] = []


class Renamed(msgspec.Struct):
    """A title that somebody gave, and whether that was acknowledged."""

    title: str
    is_acknowledged: bool


class World:
    """Everything that happens from one seed. `live`, then let `judging.judge` look at it."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.scheduler = Scheduler(seed)
        self.rng = self.scheduler.random
        self.kind = list(Kind)[seed % len(Kind)]
        self.table = GlobalTable(self.scheduler, REGIONS, lag_ms_max=self.rng.choice(LAG_MS_MAX))
        if self.scheduler.chance(0.4):
            self.table.stuck, self.table.away = 0.4, self.rng.choice((0, 0.5, 1))
        self.gateways = {region: Gateway(self.scheduler) for region in REGIONS}
        buckets = {region: ObjectsMemory() for region in REGIONS}
        self.buckets = buckets
        self.weather = {region: self._draw() for region in REGIONS}
        self.regions = {
            region: Deployment(
                region, self.table, buckets, weather=self.weather[region], push_to=self.gateways[region].push_to
            )
            for region in REGIONS
        }
        for region, gateway in self.gateways.items():
            gateway.service = gateway.region = self.regions[region]
        self.trouble = Trouble(self)
        self.contention = Contention(self)
        self.conversation = self.new_id()
        self.phones = {region: self.client(f"phone-{region}", region) for region in REGIONS}
        self.viewers = [
            RegionalViewer(self.client(f"screen-{region}", region), self.conversation, self.check_shown)
            for region in REGIONS
        ]
        self.readers = [
            RegionalReader(self.client(f"laptop-{region}", region), self.conversation, self.check_path)
            for region in REGIONS
        ]
        self.workers: list[Client] = []
        self.answers: dict[str, Answer] = {}
        self.accepted: dict[str, Frame] = {}
        self.renamed: list[Renamed] = []
        self.deleted = False
        self.last_read: dict[str, list[Frame] | None] = {}
        self.receipts: dict[str, Frame | None] = {}
        self.kills = 0
        self.is_over = False
        self._has_talked = False

    def _draw(self) -> Weather:
        """In every other region nothing is wrong but the other one: what is seen there is seen for certain."""
        if self.rng.random() < 0.5:
            return Weather(delay_ms_max=self.rng.choice((1, 5, 50)))
        return draw(self.rng, cuts=False)

    def client(self, name: str, home: str, *, user: str = "ann", scope: str = "chat") -> Client:
        """Somebody's new device."""
        return Client(self.gateways, name, home=home, user=user, scope=scope)

    def new_id(self, after: str | None = None) -> str:
        """An id of now, or of a moment later where it has to stand behind that one."""
        made = after or ""
        for late_ms in range(100):
            time, rest = f"{self.scheduler.now_ms() + late_ms:012x}", f"{self.rng.getrandbits(60):015x}"
            made = f"{time[:8]}-{time[8:]}-7{rest[:3]}-8{rest[:3]}-{rest[3:]}"
            if after is None or made > after:
                break
        return made

    @property
    def key(self) -> ConversationKey:
        """Of the conversation."""
        return ConversationKey("acme", self.conversation)

    @property
    def home(self) -> str:
        """The region where the table is cleared, and the archive runs."""
        return HOME

    @property
    def clients(self) -> list[Client]:
        """Everybody."""
        watching = [viewer.client for viewer in self.viewers]
        reading = [reader.client for reader in self.readers]
        return [*self.phones.values(), *watching, *reading, *self.workers]

    @property
    def is_gentle(self) -> bool:
        """Whether nothing was lost but the sight of each other."""
        lossy = ("hot_before", "hot_after", "forget", "fail_over", "push_lost", "cut", "crash", "reply_lost")
        return not any(getattr(weather, name) for weather in self.weather.values() for name in lossy)

    # --- what happens -----------------------------------------------------------------------------------------

    def live(self) -> None:
        """Live through it, and let it calm down.

        Raises:
            AssertionError: a promise was broken that holds at every instant.
        """
        with serving(self.scheduler):
            self.scheduler.spawn(self._talk)
            self.trouble.begin()
            self.contention.begin()
            for region in self.regions.values():
                region.storm()
                region.sweep()
            end_ms = self.scheduler.now_ms() + LIFE_MS
            while self._is_lively() and self.scheduler.now_ms() < end_ms:
                self.scheduler.run(until_ms=1_000)
            self.trouble.end()
            for region in self.regions.values():
                region.calm_down()
            self.scheduler.run(until_ms=PROMPT_MS)
            self.check_prompt()
            self.scheduler.run(until_ms=CALM_MS - PROMPT_MS)
            self.is_over = True
            self.scheduler.spawn(self._look_last)
            self.scheduler.run(until_ms=20_000)

    def _look_last(self) -> None:
        for reader in self.readers:
            reader.client.go_home()
            self.last_read[reader.client.home] = reader.read()
        for region, phone in self.phones.items():
            phone.go_home()
            self.receipts[region] = phone.call("erasure.get", erasure=self.conversation, times=3)
        self.contention.look()

    def _is_lively(self) -> bool:
        runs = (run for answer in self.answers.values() for run in answer.runs)
        return not self._has_talked or not self.trouble.is_over or any(not run.outcome for run in runs)

    def _talk(self) -> None:
        self._take_turns()
        if self.kind is Kind.ERASURE:
            self._delete()
        self._has_talked = True

    def _take_turns(self) -> None:
        creator = self.phones[self.rng.choice(REGIONS)]
        if creator.call("conversation.create", conversation=self.conversation, title="new") is None:
            return
        for viewer in self.viewers:
            self.scheduler.spawn(partial(viewer.go, lambda: self.is_over))
        for reader in self.readers:
            self.scheduler.spawn(partial(reader.go, lambda: self._has_talked))
        parent: str | None = None
        for _ in range(self.rng.randint(1, 3)):
            if self.scheduler.chance(0.3):
                self.scheduler.spawn(self._rename, after_ms=self.rng.randint(0, 3_000))
            question = self._ask(parent)
            if question is None:
                return
            parent = self._answer(question)
            if parent is None:
                return
            self.scheduler.pause(self.rng.choice((1, 100, 3_000)))

    def _ask(self, parent: str | None) -> str | None:
        """Somebody in one region asks, now and then somebody in the other as well: then both stand."""
        first, second = self.rng.sample(REGIONS, 2)
        if self.scheduler.chance(0.3):
            self.scheduler.spawn(lambda: self._send(second, parent), after_ms=self.rng.randint(0, 200))
        self._send(first, parent)
        found = [name for name, message in self.accepted.items() if message["parent"] == parent]
        return max(found, default=None)

    def _send(self, region: str, parent: str | None) -> None:
        phone = self.phones[region]
        phone.go_home()
        for _ in range(3):
            message: Frame = {
                "message": self.new_id(parent),
                "parent": parent,
                "role": "user",
                "parts": [{"type": "text", "text": f"asked in {region}"}],
            }
            reply = phone.call("message.create", conversation=self.conversation, **message)
            if reply is not None and "code" not in reply:
                self.accepted[message["message"]] = message
                return
            if reply is None or reply.get("reason") != "stale_leaf" or not self.scheduler.chance(0.5):
                return
            parent = reply["detail"]["leaf"]  # what the other region had not heard of

    def _answer(self, question: str) -> str | None:
        """Have it answered by one run or several, in one region or in both; its id once it is settled anywhere."""
        answer = Answer(self.new_id(question), question)
        self.answers[answer.stream] = answer
        self._start(answer, takeover=False, after_ms=0)
        if self.scheduler.chance(0.4):
            self._start(answer, takeover=self.scheduler.chance(0.7), after_ms=self.rng.randint(0, 20_000))
        if self.scheduler.chance(0.2):
            phone = self.phones[self.rng.choice(REGIONS)]
            self.scheduler.spawn(lambda: self._stop(phone, answer), after_ms=self.rng.randint(0, 3_000))
        self.scheduler.wait(lambda: self.is_settled(answer.stream), at_most_ms=TURN_MS_MAX, every_ms=500)
        return answer.stream if self.is_settled(answer.stream) else None

    def _start(
        self, answer: Answer, *, takeover: bool, after_ms: int, region: str | None = None, dies_at: int | None = None
    ) -> None:
        place = {"conversation": self.conversation, "stream": answer.stream, "parent": answer.parent}
        batches = self.rng.randint(1, 12 if self.kind is Kind.EVACUATION else 6)
        if dies_at is None:
            dies_at = self.rng.randint(0, batches) if self.scheduler.chance(0.2) else -1
        self.kills += dies_at >= 0
        name = f"run{len(answer.runs) + 1}"
        window_ms_max = 3_000 if self.kind is Kind.EVACUATION else 250
        region = region or self.rng.choice(REGIONS)
        worker = self.client(f"{name}-{len(self.workers)}", region, user="worker", scope="produce")
        self.workers.append(worker)
        run = RegionalRun(
            worker, name, place, batches=batches, takeover=takeover, dies_at=dies_at, window_ms_max=window_ms_max
        )
        answer.runs.append(run)
        self.scheduler.spawn(run.go, after_ms=after_ms)

    def write_again(self, region: str) -> None:
        """Another worker begins the newest answer anew there, where nobody has heard of its end, and dies soon."""
        answer = self.answers[max(self.answers)]
        self._start(answer, takeover=True, after_ms=0, region=region, dies_at=self.rng.randint(1, 2))

    def _stop(self, phone: Client, answer: Answer) -> None:
        phone.call("stream.cancel", conversation=self.conversation, stream=answer.stream)

    def _rename(self) -> None:
        phone = self.phones[self.rng.choice(REGIONS)]
        renamed = Renamed(f"title {len(self.renamed)}", is_acknowledged=False)
        self.renamed.append(renamed)
        reply = phone.call("conversation.update", conversation=self.conversation, title=renamed.title)
        renamed.is_acknowledged = reply is not None and "code" not in reply

    def _delete(self) -> None:
        """Now and then the other region hears of it only after the second pass, and goes on writing until then."""
        here, there = self.rng.sample(REGIONS, 2)
        is_unheard = self.scheduler.chance(0.4)
        if is_unheard:
            self.trouble.cuts += 1
            self.table.cut()
        reply = self.phones[here].call("conversation.delete", conversation=self.conversation)
        self.deleted = reply is not None and "code" not in reply
        if is_unheard:
            for _ in range(2):
                self.scheduler.pause(self.rng.randint(1_000, SECOND_PASS_MS))
                self._send(there, max(self.accepted, default=None))
            self.table.heal()

    def is_settled(self, stream: str) -> bool:
        """Whether any region has it."""
        return any(stream in stored(region, self.conversation) for region in self.regions.values())

    def is_settled_in(self, region: str) -> bool:
        """Whether that region alone has the newest answer."""
        newest = max(self.answers, default="")
        return [name for name, one in self.regions.items() if newest in stored(one, self.conversation)] == [region]

    # --- what must hold at every instant ------------------------------------------------------------------------

    def check_shown(self, stream: str, text: str) -> None:
        """Whatever a screen shows of an answer is the beginning of what one run would have it say."""
        answer = self.answers.get(stream)
        is_right = answer is None or any(run.text.startswith(text) for run in answer.runs)
        assert is_right, f"a screen shows a mixture: {text!r}"

    def check_path(self, path: list[Frame], following: str | None) -> None:
        """A path goes from parent to parent, to its root, or says where it breaks off."""
        parents = [message["parent"] for message in path]
        expected = [*(message["id"] for message in path[1:]), following]
        assert not path or parents == expected, f"a gap that nobody spoke of: {parents}, not {expected}"

    def check_prompt(self) -> None:
        """Where nothing was lost, whoever watches has been told of everything, without having to ask."""
        if not self.is_gentle or self.kind is Kind.EVACUATION:
            return
        for viewer in self.viewers:
            if not viewer.has_subscribed:
                continue  # it never saw the conversation
            assert viewer.is_deleted or not self.deleted, f"{viewer.client.name} was not told of the deletion"
            told: dict[str, Any] = {} if self.deleted else stored(self.regions[viewer.client.home], self.conversation)
            lacking = [name for name in told if not (name in viewer.shown and viewer.shown[name].settled)]
            assert not lacking, f"{viewer.client.name} was not told of {lacking}"
