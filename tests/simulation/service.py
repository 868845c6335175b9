"""The service under the weather: real handlers and use cases, every call of theirs a point where things happen."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec
import pytest

from handlers import connection, history, send, stream
from tests.simulation.scheduler import Scheduler
from tests.simulation.weather import CALM, Weather
from tests.support.house import UNLIMITED
from threadkeep import container, telemetry
from threadkeep.domain.erasure import Terms
from threadkeep.domain.errors import HotUnavailable, WarmUnavailable
from threadkeep.ports import Delivery
from threadkeep.schema import ROUTES
from threadkeep.stores.cold_memory import ColdMemory
from threadkeep.stores.due_memory import DueMemory
from threadkeep.stores.erasures_memory import ErasuresMemory
from threadkeep.stores.exports_memory import ExportFilesMemory, ExportsMemory
from threadkeep.stores.hot_memory import HotMemory
from threadkeep.stores.manifests_memory import ManifestsMemory
from threadkeep.stores.queue_memory import QueueMemory
from threadkeep.stores.quotas_memory import QuotasMemory
from threadkeep.stores.replaced_memory import ReplacedMemory
from threadkeep.stores.uploads_memory import UploadsMemory
from threadkeep.stores.warm_memory import WarmMemory
from threadkeep.usecases.services import Services
from threadkeep.usecases.sweeping import sweep

SWEEP_EVERY_MS: Final = 20_000
HANDLERS: Final[dict[str, Callable[..., Any]]] = {
    "connection": connection._handle,
    "send": send._handle,
    "stream": stream._handle,
    "history": history._handle,
}
BULKHEADS: Final = {action: bulkhead for bulkhead, actions in ROUTES.items() for action in actions}


class Crashed(BaseException):
    """The sandbox is gone: nothing catches it, nobody hears of it."""


class SeenFault(AssertionError):  # noqa: N818 -- what the test has seen
    """The service answered ``internal``: it has a fault, whatever the weather."""


class Stormy:
    """A store whose every call may take its time, fail before or after its effect, or be the invocation's last."""

    def __init__(self, service: Service, store: Any, tier: str) -> None:
        self._service = service
        self._store = store
        self._tier = tier

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            self._service.meet(self._tier, "before")
            answer = getattr(self._store, name)(*args, **kwargs)
            self._service.meet(self._tier, "after")
            return answer

        return call


class Push:
    """@connections: hands frames to the network, and knows who is gone."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def send(self, connections: Any, frame: bytes) -> Delivery:
        """See `threadkeep.ports.Push`."""
        self._service.meet("push", "before")
        gone = [name for name in connections if not self._service.push_to(name, frame)]
        return Delivery(gone=tuple(gone), late=())

    def hint(self, connections: Any, frame: bytes) -> None:
        """See `threadkeep.ports.Push`."""
        for name in connections:
            self._service.push_to(name, frame)


class Service:
    """One deployment. ``push_to`` is the network's: takes a frame for a connection, False where that is gone."""

    def __init__(self, scheduler: Scheduler, weather: Weather, push_to: Callable[[str, bytes], bool]) -> None:
        self.scheduler = scheduler
        self.weather = weather
        self.push_to = push_to
        self.hot = HotMemory(scheduler, region="here")
        self.warm = WarmMemory()
        self.losses = self.fell_back_ms = 0
        self.services = Services(
            hot=Stormy(self, self.hot, "hot"),
            warm=Stormy(self, self.warm, "warm"),
            uploads=UploadsMemory(),
            manifests=ManifestsMemory(self.warm),
            cold=(cold := ColdMemory("here")),
            objects=cold,
            terms=Terms(regions=("here",)),
            erasures=ErasuresMemory(self.warm),
            exports=ExportsMemory(),
            export_files=ExportFilesMemory(),
            erase_queue=QueueMemory(),
            tell_queue=QueueMemory(),
            export_queue=QueueMemory(),
            archive_queue=QueueMemory(),
            due=DueMemory(self.warm),
            replaced=ReplacedMemory(self.warm),
            quotas=QuotasMemory(scheduler, UNLIMITED),
            own_quotas=QuotasMemory(scheduler, UNLIMITED),
            push=Push(self),
            clock=scheduler,
            region="here",
            sleep=lambda seconds: scheduler.pause(round(seconds * 1_000)),
        )
        self._older: Any = None

    # --- the weather ------------------------------------------------------------------------------------------

    def meet(self, tier: str, when: str) -> None:
        """A point where things happen."""
        scheduler, weather = self.scheduler, self.weather
        scheduler.pause(scheduler.random.randint(0, max(1, weather.delay_ms_max // 5)))
        if scheduler.chance(weather.crash):
            scheduler.note(f"crash at {tier} ({when})")
            raise Crashed
        if tier == "hot" and scheduler.chance(weather.hot_before if when == "before" else weather.hot_after):
            raise HotUnavailable(f"weather, {when}")
        if tier == "warm" and scheduler.chance(weather.warm_before if when == "before" else weather.warm_after):
            raise WarmUnavailable(f"weather, {when}")

    def storm(self) -> None:
        """Once a second: the hot tier may be lost, or fall back to what it was a while ago."""
        scheduler = self.scheduler
        state = (self.hot._conversations, self.hot._deadlines)
        if scheduler.chance(self.weather.forget):
            scheduler.note("the hot tier forgets everything")
            self.losses += 1
            self.hot._conversations, self.hot._deadlines = {}, {}
        elif self._older is not None and scheduler.chance(self.weather.fail_over):
            scheduler.note("the hot tier fails over to an older state")
            self.losses += 1
            self.fell_back_ms = scheduler.now_ms()
            self.hot._conversations, self.hot._deadlines = self._older
            self._older = None
        elif self.weather.fail_over and scheduler.chance(0.3):
            self._older = copy.deepcopy(state)
        scheduler.at(1_000, self.storm)

    def calm_down(self) -> None:
        """No more faults."""
        self.weather = CALM

    # --- invocations ------------------------------------------------------------------------------------------

    def invoke(self, body: str, connection_id: str, user: str, scope: str) -> dict[str, Any] | None:
        """Run the handler of a frame's route, in the present task; None if it crashed."""
        action = json.loads(body)["action"]
        bulkhead = BULKHEADS.get(action, "connection")
        event = {
            "body": body,
            "requestContext": {
                "eventType": "MESSAGE",
                "routeKey": action,
                "connectionId": connection_id,
                "authorizer": {"tenant": "acme", "sub": user, "scope": scope, "exp": "4000000000"},
            },
        }
        try:
            answer: dict[str, Any] = json.loads(HANDLERS[bulkhead](event, None)["body"])
        except Crashed:
            return None
        if answer.get("code") == "internal":
            raise SeenFault(f"internal in answer to {body[:200]}")
        return answer

    def sweep(self) -> None:
        """The sweeper's schedule."""

        def once() -> None:
            try:
                sweep(self.services)
            except (HotUnavailable, Crashed):
                self.scheduler.note("sweep broke off")

        self.scheduler.spawn(once)
        self.scheduler.at(SWEEP_EVERY_MS, self.sweep)


@contextmanager
def serving(service: Service) -> Iterator[None]:
    """Meanwhile the handlers work with this service's ports, and count nothing."""

    def note(what: str, error: BaseException) -> None:
        if not isinstance(error, HotUnavailable | WarmUnavailable):
            raise SeenFault(what) from error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(container, "services", lambda: service.services)
        patch.setattr(telemetry, "count", lambda *_, **__: None)
        patch.setattr(telemetry, "note_fault", note)
        yield


def stored(service: Service, conversation: str) -> dict[str, Any]:
    """All messages of a conversation as the table holds them, by id, as JSON."""
    found: dict[str, Any] = {}
    for key, messages in service.warm.messages.items():
        if key.conversation == conversation:
            found |= {name: json.loads(msgspec.json.encode(kept.message)) for name, kept in messages.items()}
    return found
