"""Lambda's side: handlers run in threads of their own, in parallel and in any order."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

from tests.support import canaries
from tests.support.gateway.clock import VirtualClock
from tests.support.gateway.events import ACCOUNT, REGION, new_id

Handler = Callable[[dict[str, Any], Any], Any]

_THREADS_MAX: Final = 32


class IntegrationFailed(Exception):  # noqa: N818 -- an outcome; the message is what the gateway's frame says
    """The function raised, answered with what is no answer, or took too long."""


@dataclass(frozen=True, slots=True)
class LambdaContext:
    """What a handler is given beside its event."""

    function_name: str
    aws_request_id: str = field(default_factory=new_id)
    function_version: str = "$LATEST"
    memory_limit_in_mb: int = 512

    @property
    def invoked_function_arn(self) -> str:
        """Its ARN."""
        return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{self.function_name}"

    def get_remaining_time_in_millis(self) -> int:
        """As at the start of an invocation with a timeout of 10 s."""
        return 10_000


class Functions:
    """Runs handlers by name. Each invocation has its own copy of the event, gone through JSON as on the way to Lambda.

    A function that takes longer than `timeout_s` of the virtual clock is given up, but runs on, as on AWS.
    """

    def __init__(self, handlers: Mapping[str, Handler], *, clock: VirtualClock, timeout_s: float) -> None:
        self._handlers = dict(handlers)
        self._clock = clock
        self._timeout_s = timeout_s
        self._pool = ThreadPoolExecutor(_THREADS_MAX, thread_name_prefix="function")

    def __contains__(self, name: str) -> bool:
        return name in self._handlers

    async def invoke(self, name: str, event: dict[str, Any]) -> Any:
        """Run a handler; returns what it returned, as JSON would carry it.

        Raises:
            IntegrationFailed: see there.
        """
        loop = asyncio.get_running_loop()
        running = loop.run_in_executor(self._pool, _run, name, self._handlers[name], json.dumps(event))
        late = asyncio.Event()
        timer = self._clock.call_at(self._clock.now() + self._timeout_s, _calling(loop, late.set))
        waiting = asyncio.create_task(late.wait())
        try:
            both: set[asyncio.Future[Any]] = {running, waiting}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            waiting.cancel()
        if not running.done():
            running.add_done_callback(lambda given_up: given_up.cancelled() or given_up.exception())
            raise IntegrationFailed("Endpoint request timed out")
        try:
            return json.loads(running.result())
        except Exception as error:
            raise IntegrationFailed("Internal server error") from error

    async def close(self) -> None:
        """Wait for what runs."""
        await asyncio.to_thread(self._pool.shutdown, wait=True, cancel_futures=True)


def _run(name: str, handler: Handler, event: str) -> str:
    said = json.loads(event)
    canaries.current.note_event(said)
    return json.dumps(handler(said, LambdaContext(name)))


def _calling(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> Callable[[], None]:
    """The call, made in the loop from whatever thread; nothing where the loop has ended."""

    def made() -> None:
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(call)

    return made
