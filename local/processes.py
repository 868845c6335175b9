"""Programs in process groups of their own, written down on disk, so that exactly those are stopped and no others."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Self

import msgspec
import psutil

from local.errors import LocalCloudError
from local.interrupts import shielded

_START_TOLERANCE_S: Final = 2.0
"""The system tells a process's start relative to its boot, whose time it may correct by a second."""
_KILL_WAIT_S: Final = 5.0
_POLL_S: Final = 0.05


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What tells one of our process groups from a stranger's that has its number now.

    Attributes:
        name: for messages, e.g. ``Valkey``.
        pid: of the leader, and so the group's and the session's number.
        started_at: the leader's start, epoch seconds.
        program: path of the program, as its command line has it.
        log: path of the file that its output goes to.
    """

    name: str
    pid: int
    started_at: float
    program: str
    log: str


class ProcessGroup:
    """A program that was started in a session of its own, with all that it started."""

    def __init__(self, record: Record, process: subprocess.Popen[bytes] | None = None) -> None:
        self.record: Final = record
        self._process: Final = process

    @classmethod
    def start(cls, name: str, command: Sequence[str], *, environment: Mapping[str, str], log: Path, cwd: Path) -> Self:
        """Start it detached: no terminal, its output into ``log`` (anew), exactly this environment."""
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                env=dict(environment),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            started_at = psutil.Process(process.pid).create_time()
        except psutil.Error:  # gone already: whoever waits for it says so
            started_at = time.time()
        record = Record(name=name, pid=process.pid, started_at=started_at, program=command[0], log=str(log))
        return cls(record, process)

    def exit_code(self) -> int | None:
        """How the leader ended (negative: by that signal), None while it runs, or if it is not this program's child."""
        return None if self._process is None else self._process.poll()

    def alive(self) -> bool:
        """Whether the leader runs, and is the one that was started."""
        if self._process is not None:
            return self._process.poll() is None
        leader = _running(self.record.pid)
        return leader is not None and self._is_recorded(leader)

    def members(self) -> list[psutil.Process]:
        """Its running processes: those of its session, if it is still the one recorded.

        A number is not given anew while a session has it. But a record may be older than the last boot, so without its
        leader a session that another run started counts only where it runs the recorded program.
        """
        leader = _running(self.record.pid)
        if leader is not None and not self._is_recorded(leader):
            return []
        found = [process for pid in psutil.pids() if _session(pid) == self.record.pid and (process := _running(pid))]
        if leader is None and self._process is None:
            return [process for process in found if _program(process) == self.record.program]
        return found

    def stop(self, *, grace_s: float) -> None:
        """End the group: SIGTERM, and SIGKILL after the grace. Does nothing to a group that is no longer ours.

        Raises:
            LocalCloudError: something of it survived.
        """
        for number, wait_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, _KILL_WAIT_S)):
            for member in self.members():
                _signal(member, number)
            if self._is_gone_within(wait_s):
                return
        left = [member.pid for member in self.members()]
        raise LocalCloudError(f"{self.record.name} does not stop: processes {left} are left")

    def _is_gone_within(self, wait_s: float) -> bool:
        deadline = time.monotonic() + wait_s
        while True:
            # Threads of a killed leader may outlive it, then it looks dead and cannot be reaped yet.
            is_reaped = self._process is None or self._process.poll() is not None
            if is_reaped and not self.members():
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_S)

    def _is_recorded(self, leader: psutil.Process) -> bool:
        try:
            return abs(leader.create_time() - self.record.started_at) < _START_TOLERANCE_S
        except psutil.Error:
            return False


class ProcessTable:
    """The process groups of one local cloud.

    They are on disk as soon as they run, so that `make down` finds them even when the program that started them was
    killed.
    """

    def __init__(self, file: Path) -> None:
        self._file: Final = file
        self._groups: list[ProcessGroup] = []

    @classmethod
    def load(cls, file: Path) -> Self:
        """What another run wrote down; empty without a file.

        Raises:
            LocalCloudError: the file cannot be read.
        """
        table = cls(file)
        try:
            records = msgspec.json.decode(file.read_bytes(), type=list[Record])
        except FileNotFoundError:
            return table
        except msgspec.DecodeError as error:
            raise LocalCloudError(f"{file} is damaged ({error}): stop what runs by hand and delete it") from error
        table._groups = [ProcessGroup(record) for record in records]
        return table

    @property
    def groups(self) -> tuple[ProcessGroup, ...]:
        """In the order of their start."""
        return tuple(self._groups)

    def start(
        self, name: str, command: Sequence[str], *, environment: Mapping[str, str], log: Path, cwd: Path
    ) -> ProcessGroup:
        """Start a program and write it down, before an interrupt is heard."""
        with shielded():
            group = ProcessGroup.start(name, command, environment=environment, log=log, cwd=cwd)
            self._groups.append(group)
            self._write()
        return group

    def stop(self, group: ProcessGroup, *, grace_s: float) -> None:
        """Stop one and strike it out. Interrupts wait until that is done."""
        with shielded():
            group.stop(grace_s=grace_s)
            self._groups.remove(group)
            self._write()

    def run(
        self,
        name: str,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        log: Path,
        cwd: Path,
        timeout_s: float,
        needs: Iterable[ProcessGroup] = (),
    ) -> None:
        """Run a program to its end.

        Raises:
            LocalCloudError: it failed or took too long, or one of the groups that it needs died meanwhile.
        """
        needs = tuple(needs)
        group = self.start(name, command, environment=environment, log=log, cwd=cwd)
        deadline = time.monotonic() + timeout_s
        try:
            while (code := group.exit_code()) is None:
                require_alive(needs)
                if time.monotonic() > deadline:
                    raise LocalCloudError(f"{name} took longer than {timeout_s:.0f} s. Log: {log}")
                time.sleep(_POLL_S)
            if code != 0:
                require_alive(needs)  # if so, that is the reason
                raise LocalCloudError(f"{name} failed (exit {code}){_reason(log)}. Log: {log}")
        finally:
            self.stop(group, grace_s=1.0)

    def _write(self) -> None:
        if not self._groups:
            self._file.unlink(missing_ok=True)
            return
        partial = self._file.with_suffix(".partial")
        partial.write_bytes(msgspec.json.encode([group.record for group in self._groups]))
        partial.replace(self._file)


def require_alive(groups: Iterable[ProcessGroup]) -> None:
    """Check that all of them run.

    Raises:
        LocalCloudError: one does not; names it.
    """
    for group in groups:
        if not group.alive():
            code = group.exit_code()
            how = "" if code is None else f" (exit {code})" if code >= 0 else f" ({signal.strsignal(-code)})"
            raise LocalCloudError(f"{group.record.name} is gone{how}. Log: {group.record.log}")


def wait_until(ready: Callable[[], bool], group: ProcessGroup, *, timeout_s: float) -> None:
    """Wait until a program that was just started is of use.

    Raises:
        LocalCloudError: it died, or is not ready in time.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        is_ready = ready()
        require_alive([group])  # asked after: whoever answered may have been another on the same port
        if is_ready:
            return
        if time.monotonic() > deadline:
            raise LocalCloudError(f"{group.record.name} is not ready after {timeout_s:.0f} s. Log: {group.record.log}")
        time.sleep(_POLL_S)


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def _running(pid: int) -> psutil.Process | None:
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process
    except psutil.Error:
        return None


def _program(process: psutil.Process) -> str:
    try:
        return next(iter(process.cmdline()), "")
    except psutil.Error:
        return ""


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    try:
        process.send_signal(number)  # psutil makes sure that it is still that process
    except psutil.Error:
        return


def _reason(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    telling = [line for line in lines if "rror" in line or "❌" in line]
    last = (telling or [line for line in lines if line])[-1:]
    return f": {last[0][:300]}" if last else ""
