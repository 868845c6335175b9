"""A copy of the project that may be broken, and tests that are run in it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from local.processes import ProcessTable

COPIED: Final = ("lambdas", "tests", "clients", "local", "stacks", "cdk.json", "pyproject.toml")
_LEFT_OUT: Final = shutil.ignore_patterns(".*", "node_modules", "*.egg-info", "tmp")
_GRACE_S: Final = 10
PASSED: Final = 0
FAILED: Final = 1


class Ran(msgspec.Struct, frozen=True):
    """How a run of tests ended.

    Attributes:
        code: pytest's exit code; None where the time was up.
        failed: the tests that failed, each with why.
        told: all that pytest said.
    """

    code: int | None
    failed: tuple[str, ...]
    told: str


def copy_project(source: Path, target: Path) -> None:
    """Copy what tests need, compiled files too: with the times they have, they stay good."""
    target.mkdir(parents=True)
    for name in COPIED:
        if (source / name).is_dir():
            shutil.copytree(source / name, target / name, ignore=_LEFT_OUT)
        else:
            shutil.copy2(source / name, target / name)


class Runner:
    """Runs tests in copies, several at one time, and can stop them all."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[str]] = set()
        self._is_stopped = False

    def run(self, folder: Path, tests: Iterable[str], *, timeout_s: float, options: Iterable[str] = ()) -> Ran:
        """Run these tests in that copy, and none of the code beside it."""
        if self._is_stopped:
            return Ran(None, (), "stopped")
        command = [sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=short", "--show-capture=no"]
        command += ["-p", "no:cacheprovider", f"--basetemp={folder / 'tmp'}", *options, *tests]
        # The client is installed from where it lies: its copy goes first.
        environment = os.environ | {"PYTHONPATH": str(folder / "clients/python"), "COLUMNS": "200"}
        with subprocess.Popen(  # noqa: S603 -- this very Python
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            self._running.add(process)
            try:
                told, _ = process.communicate(timeout=timeout_s)
                code: int | None = process.returncode
            except subprocess.TimeoutExpired:
                told, code = self._end(process, folder), None
            except BaseException:  # Ctrl-C and its like
                self._end(process, folder)
                raise
            finally:
                self._running.discard(process)
        summary = told.rpartition("short test summary info")[2].splitlines()
        return Ran(code, tuple(line for line in summary if line.startswith(("FAILED ", "ERROR "))), told)

    def stop(self) -> None:
        """Interrupt what runs, and begin nothing more."""
        self._is_stopped = True
        for process in tuple(self._running):
            process.send_signal(signal.SIGINT)

    def _end(self, process: subprocess.Popen[str], folder: Path) -> str:
        """Interrupt it, so that it stops the services that it started; where it does not, stop them in its place."""
        process.send_signal(signal.SIGINT)
        try:
            return process.communicate(timeout=_GRACE_S)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            told = process.communicate()[0]
        for written in (folder / "tmp").rglob("processes.json"):
            table = ProcessTable.load(written)
            for group in table.groups:
                table.stop(group, grace_s=_GRACE_S)
        return told
