"""A conversation with one question, a model that says what a test wants, and time that only tests move."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from tests.support.hot import SetClock
from tests.support.house import PHONE, Frame, House
from threadkeep.domain.errors import HotUnavailable
from threadkeep.domain.model import ConversationKey, Message
from threadkeep.domain.ops import Parts
from threadkeep.domain.streams import Facts
from threadkeep.ports import AnswerRequest
from threadkeep.responder.answers import AnswerStream, Cut, Event
from threadkeep.responder.produce import Pace, Producer
from threadkeep.responder.prompt import Prompt
from threadkeep.responder.pump import Source
from threadkeep.responder.respond import Answering, Responded, Settings
from threadkeep.responder.transport import DirectTransport, ProduceCommand, Transport, producing
from threadkeep.usecases.services import Reply
from threadkeep.usecases.tiers import Tiers

Said = tuple[float, Event | Callable[[], None]]
"""At what second of the answer a model says what, or something else happens."""


class VirtualTime:
    """`Timing` on the clock of a house."""

    def __init__(self, clock: SetClock) -> None:
        self._clock = clock
        self._start_ms = clock.ms
        self._rest_ms = 0.0

    def now_s(self) -> float:
        return (self._clock.ms - self._start_ms + self._rest_ms) / 1_000

    def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            return
        moved_ms = self._rest_ms + max(seconds, 1e-6) * 1_000  # floats: a wait must never be lost in rounding
        self._clock.ms += int(moved_ms)
        self._rest_ms = moved_ms - int(moved_ms)


class ScriptedModel:
    """`Model` that says what it is told to; remembers what it was asked, and when it was stopped.

    Attributes:
        script: for every answer; after the last event it is silent for ever.
        prompts: what it was asked.
        stopped_s: at what second of each answer it was stopped.
    """

    name = "scripted"

    def __init__(self, time: VirtualTime) -> None:
        self.script: Sequence[Said] = ()
        self.prompts: list[Prompt] = []
        self.stopped_s: list[float] = []
        self._time = time

    def answer(self, prompt: Prompt) -> ScriptedStream:
        self.prompts.append(prompt)
        return ScriptedStream()

    def begin(self, stream: AnswerStream) -> Source:
        assert isinstance(stream, ScriptedStream)
        return ScriptedSource(self.script, self._time, self.stopped_s)


class ScriptedStream:
    """An answer that is never iterated: its source is scripted."""

    def __iter__(self) -> Iterator[Event]:
        raise NotImplementedError

    def cancel(self) -> None:
        raise NotImplementedError


class ScriptedSource:
    """`Source` in virtual time."""

    def __init__(self, script: Sequence[Said], time: VirtualTime, stopped_s: list[float]) -> None:
        self._script = list(script)
        self._time = time
        self._start_s = time.now_s()
        self._stopped_s = stopped_s

    def take(self, wait_s: float) -> Event | None:
        until_s = self._time.now_s() + wait_s
        while self._script and self._start_s + self._script[0][0] <= until_s:
            at_s, said = self._script.pop(0)
            late_s = self._start_s + at_s - self._time.now_s()
            if late_s > 0:
                self._time.sleep(late_s)
            if isinstance(said, Event):
                return said
            said()
        rest_s = until_s - self._time.now_s()
        if rest_s > 0:
            self._time.sleep(rest_s)
        return None

    def stop(self) -> None:
        self._stopped_s.append(self._time.now_s() - self._start_s)
        self._script = [(0.0, Cut())]


class Spied:
    """`Transport` that notes what goes through it, and when; and fails as it is told.

    Attributes:
        sent: the second, and the command, whether it failed or not.
        before, after: called with each command before it takes effect, and after; may raise.
    """

    def __init__(self, transport: Transport, time: VirtualTime) -> None:
        self.sent: list[tuple[float, ProduceCommand]] = []
        self.before: Callable[[ProduceCommand], None] = nothing
        self.after: Callable[[ProduceCommand], None] = nothing
        self.body_bytes_max = transport.body_bytes_max
        self._transport = transport
        self._time = time

    def send(self, command: ProduceCommand) -> Reply:
        self.sent.append((self._time.now_s(), command))
        self.before(command)
        reply = self._transport.send(command)
        self.after(command)
        return reply

    def of(self, kind: type[ProduceCommand]) -> list[Any]:
        """The commands of one kind."""
        return [command for _, command in self.sent if isinstance(command, kind)]


def nothing(_command: ProduceCommand) -> None:
    """What a transport says while nothing is wrong."""


class Scene:
    """A conversation of PHONE's in a house, with one question."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.conversation = house.conversation()
        self.question = house.message(self.conversation, text="What is a stream?")
        self.reply = house.new_id()
        self.time = VirtualTime(house.clock)
        self.model = ScriptedModel(self.time)
        self.settings = Settings()
        self.transport = self.new_transport()

    @property
    def key(self) -> ConversationKey:
        return self.house.key(self.conversation)

    def new_transport(self) -> Spied:
        return Spied(DirectTransport(self.house.services, producing("acme", "ann")), self.time)

    def request(self, **fields: Any) -> AnswerRequest:
        asked = {"conversation": self.conversation, "parent": self.question, "reply": self.reply} | fields
        return AnswerRequest(tenant="acme", user="ann", **asked)

    def respond(self, *script: Said, **fields: Any) -> Responded:
        """Have it answered by a model that says this."""
        self.model.script = script
        answering = Answering(
            tiers=Tiers.of(self.house.services),
            model=self.model,
            settings=self.settings,
            timing=self.time,
            begin=self.model.begin,
        )
        return answering.respond(self.request(**fields), self.transport)

    def ask_again(self, text: str = "And then?") -> None:
        """Another question, under the answer."""
        self.question = self.house.message(self.conversation, self.reply, text)
        self.reply = self.house.new_id()

    def producer(self, pace: Pace | None = None) -> Producer:
        """A producer of the answer, not yet open."""
        return Producer(
            self.transport,
            conversation=self.conversation,
            stream=self.reply,
            facts=Facts(parent=self.question, role="assistant", model="scripted"),
            fork=False,
            timing=self.time,
            pace=Pace() if pace is None else pace,
        )

    def watch(self) -> None:
        """PHONE watches."""
        self.house.ok(PHONE, "conversation.subscribe", conversation=self.conversation)

    def frames(self, kind: str) -> list[Frame]:
        """What PHONE was sent of one type."""
        return [frame for frame in self.house.frames(PHONE) if frame["type"] == kind]

    @property
    def stored(self) -> Message:
        """The answer as it stands in the table."""
        stored = self.house.warm.read_message(self.key, self.reply)
        assert stored is not None, "no answer is stored"
        return stored.message

    @property
    def parts(self) -> list[dict[str, Any]]:
        """Its parts, as plain JSON."""
        parts: Parts = self.stored.parts  # type: ignore[assignment]
        read: list[dict[str, Any]] = msgspec.json.decode(msgspec.json.encode(parts))
        return read

    @property
    def text(self) -> str:
        """Its text."""
        return "".join(part["text"] for part in self.parts if part["type"] == "text")

    @property
    def error(self) -> dict[str, Any]:
        """Its error, as plain JSON."""
        read: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self.stored.error))
        return read

    def lose_hot(self) -> None:
        """The hot tier loses all that it holds."""
        self.house.lose_hot()


def hot_is_away(_command: ProduceCommand) -> None:
    """What a transport says while the hot tier cannot be reached."""
    raise HotUnavailable("told to be unavailable")
