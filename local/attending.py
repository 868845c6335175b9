"""Work of an event loop that is attended to: it ends when a signal comes, when what it needs dies, or out of time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

from local.errors import LocalCloudError
from local.interrupts import awaitable
from threadkeep_client import ThreadkeepError

_LOOK_EVERY_S: Final = 0.2
_DEATH_S: Final = 0.5
"""After so long a killed program counts as dead."""
_RELEASE_S: Final = 5.0
T = TypeVar("T")


async def attended(
    name: str,
    work: Coroutine[Any, Any, T],
    *,
    check: Callable[[], None],
    timeout_s: float,
    release: Callable[[], Awaitable[object]] | None = None,
) -> T:
    """Do the work.

    Args:
        name: of the work, for messages.
        work: what is to be done.
        check: raises when something that the work needs is dead; that is then the reason for any failure.
        timeout_s: for all of it.
        release: called before unfinished work is cancelled, so that it waits for nothing any more.

    Raises:
        LocalCloudError: by ``check``; the work takes too long, or a deployment failed it.
        Interrupted: by a signal.
    """
    working = asyncio.create_task(work)
    checking = asyncio.create_task(_check(check))
    with awaitable() as interrupted:
        ends: set[asyncio.Future[Any]] = {working, checking, interrupted}
        try:
            await asyncio.wait(ends, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if interrupted.done():
                raise interrupted.result()
            if checking.done():
                checking.result()
            if not working.done():
                raise LocalCloudError(f"{name} took longer than {timeout_s:.0f} s")
            return await _result(name, working, check)
        finally:
            if release is not None and not working.done():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(release(), _RELEASE_S)
            for task in (working, checking):
                task.cancel()
            await asyncio.gather(working, checking, return_exceptions=True)


async def _check(check: Callable[[], None]) -> None:
    while True:
        check()
        await asyncio.sleep(_LOOK_EVERY_S)


async def _result(name: str, working: asyncio.Task[T], check: Callable[[], None]) -> T:
    """What came of the work; of a failure the reason, if something that it needs died."""
    try:
        return working.result()
    except* ThreadkeepError as errors:
        await asyncio.sleep(_DEATH_S)
        check()
        first = _leaves(errors)[0]
        raise LocalCloudError(f"{name} failed: {first}") from first


def _leaves(errors: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    found: list[BaseException] = []
    for error in errors.exceptions:
        found += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found
