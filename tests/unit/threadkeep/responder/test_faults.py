"""Whatever becomes of its requests and of the cache, an answer is stored once, whole, and as it was said."""

from __future__ import annotations

import copy
from enum import Enum
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.house import House, serving
from tests.unit.threadkeep.responder.scene import Said, Scene
from threadkeep.domain.commands import OpenStream
from threadkeep.domain.errors import HotUnavailable, TierUnavailable
from threadkeep.responder.answers import Ended, ReasoningPiece, TextPiece
from threadkeep.responder.transport import ProduceCommand


class Fault(Enum):
    """What happens around one request."""

    NONE = "none"
    LOST = "the request never arrives"
    UNANSWERED = "it takes effect, and its reply is lost"
    WIPED = "the cache loses everything"
    AGED = "the cache falls back to what it held some requests ago"
    TABLE_AWAY = "the table cannot be reached"


class Weather:
    """Faults by the number of the request; fair weather afterwards."""

    def __init__(self, scene: Scene, faults: list[Fault]) -> None:
        self._scene = scene
        self._faults = iter(faults)
        self._fault = Fault.NONE
        self._snapshots: list[dict[Any, Any]] = []

    def before(self, command: ProduceCommand) -> None:
        hot = self._scene.house.hot
        self._scene.house.warm.unavailable = False
        self._snapshots = [*self._snapshots[-5:], copy.deepcopy(hot._conversations)]
        self._fault = next(self._faults, Fault.NONE)
        match self._fault:
            case Fault.LOST:
                raise HotUnavailable("lost")
            case Fault.WIPED:
                hot._conversations.clear()
            case Fault.AGED:
                hot._conversations = copy.deepcopy(self._snapshots[0])
            case Fault.TABLE_AWAY if not isinstance(command, OpenStream):
                self._scene.house.warm.unavailable = True

    def after(self, _command: ProduceCommand) -> None:
        if self._fault is Fault.UNANSWERED:
            raise TierUnavailable("unanswered")


PIECES: list[Said] = [
    (0.1, ReasoningPiece("hm ")),
    (0.3, TextPiece("Ein ")),
    (0.35, TextPiece("Strom \ud83d")),
    (0.9, TextPiece("\udc1f fließt ")),
    (1.8, TextPiece("界 ")),
    (4.5, TextPiece("x" * 20_000)),
    (4.9, TextPiece(" end")),
    (5.0, Ended("stop")),
]
TEXT = "Ein Strom 🐟 fließt 界 " + "x" * 20_000 + " end"


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(Fault), max_size=25))
def test_the_answer_is_stored_as_it_was_said(faults: list[Fault]) -> None:
    with serving(House()) as house:
        scene = Scene(house)
        weather = Weather(scene, faults)
        scene.transport.before, scene.transport.after = weather.before, weather.after
        # "closed" where its own close took effect, nobody told it so, and the cache forgot.
        assert scene.respond(*PIECES) in {"complete", "closed"}
        assert scene.stored.status == "complete"
        assert scene.parts == [{"type": "reasoning", "text": "hm "}, {"type": "text", "text": TEXT}]
        assert [message.message.id for message in house.warm.read_messages(scene.key, limit=9).messages] == [
            scene.reply,
            scene.question,
        ]
