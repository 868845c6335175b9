from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

from local.errors import LocalCloudError
from local.processes import ProcessGroup, ProcessTable, Record, require_alive, wait_until

SLEEP = "import time; time.sleep(60)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
WITH_CHILD = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", {child!r}])
print("ready", flush=True)
time.sleep(60)
"""


@pytest.fixture
def table(tmp_path: Path) -> Iterator[ProcessTable]:
    table = ProcessTable(tmp_path / "processes.json")
    yield table
    for group in table.groups:
        table.stop(group, grace_s=0)


def start(table: ProcessTable, tmp_path: Path, program: str) -> ProcessGroup:
    log = tmp_path / "program.log"
    group = table.start("program", [sys.executable, "-c", program], environment={}, log=log, cwd=tmp_path)
    if "ready" in program:
        wait_until(lambda: "ready" in log.read_text(), group, timeout_s=10)
    return group


def reloaded(tmp_path: Path) -> ProcessTable:
    """As another run of the program sees it."""
    return ProcessTable.load(tmp_path / "processes.json")


def test_stop_ends_the_whole_group(table: ProcessTable, tmp_path: Path) -> None:
    group = start(table, tmp_path, WITH_CHILD.format(child=STUBBORN))
    time.sleep(0.2)
    members = group.members()
    assert len(members) == 2
    table.stop(group, grace_s=0.3)
    assert not any(member.is_running() and member.status() != psutil.STATUS_ZOMBIE for member in members)
    assert table.groups == ()
    assert not (tmp_path / "processes.json").exists()


def test_stop_ends_what_a_killed_leader_left(table: ProcessTable, tmp_path: Path) -> None:
    group = start(table, tmp_path, WITH_CHILD.format(child=SLEEP))
    os.kill(group.record.pid, signal.SIGKILL)
    while group.alive():
        time.sleep(0.01)
    (orphan,) = group.members()
    table.stop(group, grace_s=1)
    assert not orphan.is_running() or orphan.status() == psutil.STATUS_ZOMBIE


def test_another_run_finds_and_stops_it(table: ProcessTable, tmp_path: Path) -> None:
    start(table, tmp_path, SLEEP)
    other = reloaded(tmp_path)
    (group,) = other.groups
    assert group.alive()
    assert group.exit_code() is None
    other.stop(group, grace_s=2)
    assert not group.alive()
    assert reloaded(tmp_path).groups == ()


def test_a_stranger_with_the_same_number_is_left_alone(table: ProcessTable, tmp_path: Path) -> None:
    stranger = start(table, tmp_path, SLEEP)
    record = msgspec.structs.replace(stranger.record, started_at=stranger.record.started_at - 3600)
    stale = ProcessGroup(record)
    assert not stale.alive()
    stale.stop(grace_s=0.1)
    assert stranger.alive()


def test_orphans_in_a_session_of_that_number_count_only_if_they_run_our_program(
    table: ProcessTable, tmp_path: Path
) -> None:
    group = start(table, tmp_path, WITH_CHILD.format(child=SLEEP))
    os.kill(group.record.pid, signal.SIGKILL)
    while group.alive():
        time.sleep(0.01)
    assert len(ProcessGroup(group.record).members()) == 1
    assert ProcessGroup(msgspec.structs.replace(group.record, program="/bin/other")).members() == []


def test_a_dead_one_is_named_with_how_it_ended_and_its_log(table: ProcessTable, tmp_path: Path) -> None:
    group = start(table, tmp_path, SLEEP)
    require_alive([group])
    os.kill(group.record.pid, signal.SIGKILL)
    while group.alive():
        time.sleep(0.01)
    with pytest.raises(LocalCloudError, match=r"^program is gone \(Killed\)\. Log: .*program\.log$"):
        require_alive([group])


def test_waiting_ends_with_the_program(table: ProcessTable, tmp_path: Path) -> None:
    group = start(table, tmp_path, "raise SystemExit(3)")
    with pytest.raises(LocalCloudError, match=r"program is gone \(exit 3\)"):
        wait_until(lambda: False, group, timeout_s=30)


def test_waiting_ends_with_its_time(table: ProcessTable, tmp_path: Path) -> None:
    group = start(table, tmp_path, SLEEP)
    with pytest.raises(LocalCloudError, match="program is not ready after 0 s"):
        wait_until(lambda: False, group, timeout_s=0.1)


class TestRun:
    def run(self, table: ProcessTable, folder: Path, program: str, *, timeout_s: float = 30.0, **more: object) -> None:
        needs = more.get("needs", ())
        assert isinstance(needs, tuple)
        table.run(
            "step",
            [sys.executable, "-c", program],
            environment={},
            log=folder / "step.log",
            cwd=folder,
            timeout_s=timeout_s,
            needs=needs,
        )

    def test_a_program_that_ends_well_leaves_nothing(self, table: ProcessTable, tmp_path: Path) -> None:
        self.run(table, tmp_path, "print('fine')")
        assert table.groups == ()

    def test_a_failure_is_one_line_with_the_reason_and_the_log(self, table: ProcessTable, tmp_path: Path) -> None:
        with pytest.raises(LocalCloudError) as caught:
            self.run(table, tmp_path, "raise ValueError('the port is taken')")
        assert str(caught.value) == (
            f"step failed (exit 1): ValueError: the port is taken. Log: {tmp_path / 'step.log'}"
        )

    def test_too_long_is_a_failure_and_stops_it(self, table: ProcessTable, tmp_path: Path) -> None:
        with pytest.raises(LocalCloudError, match="step took longer than 0 s"):
            self.run(table, tmp_path, SLEEP, timeout_s=0.2)
        assert table.groups == ()

    def test_the_death_of_what_it_needs_is_the_reason(self, table: ProcessTable, tmp_path: Path) -> None:
        needed = start(table, tmp_path, "raise SystemExit(0)")
        with pytest.raises(LocalCloudError, match=r"^program is gone \(exit 0\)"):
            self.run(table, tmp_path, SLEEP, needs=(needed,))


def test_a_damaged_file_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "processes.json").write_text("[{")
    with pytest.raises(LocalCloudError, match=r"processes\.json is damaged"):
        reloaded(tmp_path)


def test_records_keep_their_form() -> None:
    """A `make down` of another version must still find what an older one started."""
    assert Record.__struct_fields__ == ("name", "pid", "started_at", "program", "log")
