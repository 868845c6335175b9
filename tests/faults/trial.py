"""Planting every fault in a copy of its own, and seeing what the tests say."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Final, Literal

import msgspec

from tests.faults.fault import Fault, StaleFaultError
from tests.faults.scratch import FAILED, PASSED, Runner

Verdict = Literal["caught", "missed", "stale", "timed out"]

PROCESSES: Final = 2
FAULT_S_MAX: Final = 60
SOUND_S_MAX: Final = 240
_WHY_LINES: Final = 15


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a fault.

    Attributes:
        why: the test that caught it and what it said, or what stood in the way.
    """

    name: str
    verdict: Verdict
    seconds: float
    why: str


class UnsoundError(Exception):
    """The tests fail with nothing broken, so they would tell nothing."""


def check_sound(runner: Runner, sound: Path, faults: Iterable[Fault]) -> None:
    """Run all that is named in the table, with nothing broken.

    Raises:
        UnsoundError: something fails.
    """
    tests = sorted({test for fault in faults for test in fault.caught_by})
    ran = runner.run(sound, tests, timeout_s=SOUND_S_MAX, options=["-n", str(PROCESSES)]) if tests else None
    if ran is not None and ran.code != PASSED:
        told = "\n".join(ran.failed or ran.told.splitlines()[-_WHY_LINES:])
        raise UnsoundError(f"With nothing broken these must pass within {SOUND_S_MAX} s; mend them first:\n{told}")


def try_all(
    runner: Runner, sound: Path, faults: Sequence[Fault], *, started: Callable[[Fault], None]
) -> Generator[Outcome, None, None]:
    """Try each, some at one time; the outcomes as they come."""

    def attempt(fault: Fault) -> Outcome:
        started(fault)
        return _attempt(runner, sound, fault)

    with ThreadPoolExecutor(PROCESSES) as pool:
        try:
            for future in as_completed([pool.submit(attempt, fault) for fault in faults]):
                yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            runner.stop()
            raise


def _attempt(runner: Runner, sound: Path, fault: Fault) -> Outcome:
    started = time.monotonic()
    folder = sound.parent / "".join(letter if letter.isalnum() else "-" for letter in fault.name)
    try:
        shutil.copytree(sound, folder, ignore=shutil.ignore_patterns("tmp"))
        verdict, why = _verdict(runner, folder, fault)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Outcome(name=fault.name, verdict=verdict, seconds=round(time.monotonic() - started, 1), why=why)


def _verdict(runner: Runner, folder: Path, fault: Fault) -> tuple[Verdict, str]:
    try:
        fault.plant(folder)
    except StaleFaultError as error:
        return "stale", str(error)
    ran = runner.run(folder, fault.caught_by, timeout_s=FAULT_S_MAX, options=["-x"])
    match ran.code:
        case None:
            return "timed out", f"no end within {FAULT_S_MAX} s"
        case 0:
            return "missed", "all of its tests pass"
        case code if code == FAILED and ran.failed and ran.failed[0].startswith("FAILED "):
            return "caught", ran.failed[0].removeprefix("FAILED ")
        case _:  # what cannot even be imported or set up shows nothing of a test
            return "stale", "the broken code does not run: " + "\n".join(ran.told.splitlines()[-_WHY_LINES:])
