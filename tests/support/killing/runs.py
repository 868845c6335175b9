"""Starts a producer's program, follows what it tells, and kills it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path
from typing import Final

from tests.support.killing import producing

_ROOT: Final = Path(__file__).parents[3]
_PATIENCE_S: Final = 30.0


async def killed_run(url: str, token: str, *ids: str, after: int, delay_s: float) -> tuple[int, list[str]]:
    """Run `tests.support.killing.producing` in a process group of its own and SIGKILL that.

    Args:
        url: of the deployment.
        token: with scope `produce`.
        *ids: of the conversation, the question and the answer.
        after: kill it when it has told so many pieces.
        delay_s: and so long after that, for it to be anywhere on the way to the next.

    Returns:
        Its epoch, and every piece that it told to have been acknowledged; `after` of them or more.

    Raises:
        TimeoutError: it told nothing for too long.
        AssertionError: it ended by itself.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        producing.__name__,
        url,
        *ids,
        stdin=PIPE,
        stdout=PIPE,
        cwd=_ROOT,
        start_new_session=True,
    )
    try:
        assert process.stdin is not None
        process.stdin.write(token.encode())
        process.stdin.close()
        told = [await _line(process) for _ in range(1 + after)]
        await asyncio.sleep(delay_s)
    finally:
        with contextlib.suppress(ProcessLookupError):  # the assertion below says so
            os.killpg(process.pid, signal.SIGKILL)
        ended = await process.wait()
    assert ended == -signal.SIGKILL, f"it ended by itself: {ended}"
    assert process.stdout is not None
    rest = (await process.stdout.read()).splitlines(keepends=True)
    epoch, *pieces = [json.loads(line) for line in [*told, *rest] if line.endswith(b"\n")]
    return epoch, pieces


async def _line(process: Process) -> bytes:
    assert process.stdout is not None
    async with asyncio.timeout(_PATIENCE_S):
        line = await process.stdout.readline()
    assert line.endswith(b"\n"), "it ended by itself"
    return line
