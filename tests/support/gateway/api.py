"""What all connections of one gateway share."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.support.gateway.clock import VirtualClock
from tests.support.gateway.faults import Faults
from tests.support.gateway.functions import Functions
from tests.support.gateway.limits import Limits, Manners
from tests.support.gateway.throttle import TokenBucket

if TYPE_CHECKING:
    from tests.support.gateway.session import Session


@dataclass(slots=True, kw_only=True)
class Api:
    """One deployed WebSocket API.

    Attributes:
        stage: its name, the first segment of every path.
        functions: the integrations and the authorizer, by name.
        routes: which function serves which action. `$connect`, `$disconnect` and `$default` are `connection`'s.
        identity_sources: names of headers without which a handshake is answered with 401 unseen; none by default,
            since a browser can send no header.
        faults: what goes wrong; may be changed at any time.
        sessions: connections that take posts, by id.
        counts: what happened, by name, so that a test can tell that its fault was there.
        largest_sent_bytes: the largest message that went out to a client.
        failures: errors of the gateway's own, which end the test.
    """

    stage: str
    functions: Functions
    routes: Mapping[str, str]
    limits: Limits
    manners: Manners
    faults: Faults
    clock: VirtualClock
    bucket: TokenBucket
    identity_sources: tuple[str, ...] = ()
    sessions: dict[str, Session] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    largest_sent_bytes: int = 0
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    failures: list[BaseException] = field(default_factory=list)

    def route(self, message: str) -> str:
        """The route key of a message: `$request.body.action`, or `$default` where that names none."""
        try:
            body = json.loads(message)
        except (ValueError, RecursionError):
            return "$default"
        action = body.get("action") if isinstance(body, dict) else None
        if not isinstance(action, str):
            return "$default"
        if action in {"$connect", "$disconnect"} and self.manners.names_reserved_routes:
            return action
        return action if action in self.routes else "$default"

    def function(self, route: str) -> str:
        """Name of the function that serves a route."""
        return self.routes.get(route, "connection")

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do it beside everything else; `FaultGateway.settle` waits for it."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._note_end)

    def _note_end(self, task: asyncio.Task[Any]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.failures.append(error)
