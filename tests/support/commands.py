"""``python -m local`` as its users run it: a program, its output, and what it leaves behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psutil

ROOT: Final = Path(__file__).resolve().parents[2]
START_S: Final = 240.0


class Command:
    """A running ``python -m local``; its output is read from files, so that it never waits for us."""

    def __init__(self, folder: Path, name: str, *options: str) -> None:
        self.folder = folder
        self.output = folder.with_name(f"{folder.name}-{name}.out")
        self.errors = folder.with_name(f"{folder.name}-{name}.err")
        with self.output.open("wb") as output, self.errors.open("wb") as errors:
            self.process = subprocess.Popen(  # noqa: S603 - this very program
                [sys.executable, "-m", "local", "--folder", str(folder), name, *options],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                env=os.environ | {"PYTHONUNBUFFERED": "1"},
                start_new_session=True,
            )

    def wait(self, timeout_s: float = START_S) -> int:
        """Its exit code."""
        return self.process.wait(timeout_s)

    def wait_for(self, text: str, timeout_s: float = START_S) -> None:
        """Until its output says so."""
        deadline = time.monotonic() + timeout_s
        while text not in self.output.read_text():
            assert self.process.poll() is None, f"ended before {text!r}: {self.said()}"
            assert time.monotonic() < deadline, f"never said {text!r}: {self.said()}"
            time.sleep(0.05)

    def said(self) -> str:
        """All it said so far."""
        return self.output.read_text() + self.errors.read_text()

    def recorded_pid(self, name: str) -> int:
        """The process of that name that it wrote down."""
        records = json.loads((self.folder / "processes.json").read_text())
        return next(int(record["pid"]) for record in records if name in record["name"])


@contextlib.contextmanager
def running(folder: Path, name: str, *options: str) -> Iterator[Command]:
    """Run a command; should the test fail, end it as a user would."""
    command = Command(folder, name, *options)
    try:
        yield command
    finally:
        if command.process.poll() is None:
            command.process.send_signal(signal.SIGINT)
            command.wait(30)


def run(folder: Path, name: str, *options: str) -> Command:
    """Run a command to its end."""
    with running(folder, name, *options) as command:
        command.wait()
    return command


def left_behind(folder: Path) -> list[str]:
    """Processes that have to do with the folder, and files in it other than logs."""
    processes = [process for process in map(_described, psutil.pids()) if str(folder) in process]
    files = [str(path) for path in folder.rglob("*") if path.is_file() and path.parent.name != "logs"]
    folders = [str(path) for path in folder.iterdir() if path.is_dir() and path.name != "logs"]
    return processes + files + folders


def _described(pid: int) -> str:
    """Its command line, working folder and environment; nothing of one that is gone, a zombie, or not ours to read."""
    try:
        process = psutil.Process(pid)
        if pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
            return ""
        return " ".join((str(pid), *process.cmdline(), process.cwd(), *process.environ().values()))
    except psutil.Error:
        return ""
