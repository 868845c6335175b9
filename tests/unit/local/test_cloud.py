from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from local.cloud import Cloud, only_one
from local.errors import LocalCloudError
from local.processes import ProcessTable, Record
from local.progress import Steps
from tests.unit.local.test_state import STATE


def cloud_in(folder: Path) -> Cloud:
    return Cloud(folder, Steps(Console(quiet=True)))


def write_down(folder: Path, *records: Record) -> None:
    (folder / "processes.json").write_bytes(msgspec.json.encode(records))


def dead_record(folder: Path) -> Record:
    """Of a process that has ended: its number may be anybody's by now."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    log = folder / "logs" / "valkey.log"
    return Record(name="Valkey", pid=process.pid, started_at=1.0, program=sys.executable, log=str(log))


def test_an_empty_folder_holds_no_cloud(tmp_path: Path) -> None:
    cloud = cloud_in(tmp_path)
    assert cloud.state is None
    assert not cloud.is_left_over


def test_the_state_of_a_dead_cloud_is_stale_and_is_cleared_away(tmp_path: Path) -> None:
    STATE.to_file(tmp_path / "cloud.json")
    write_down(tmp_path, dead_record(tmp_path))
    for name in ("key.pem", "work/emulator/tmp/copy", "logs/valkey.log"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    cloud = cloud_in(tmp_path)
    assert cloud.state is None
    assert cloud.is_left_over
    with pytest.raises(LocalCloudError, match=r"^Valkey is gone\. Log: .*valkey\.log$"):
        cloud.require_alive()
    cloud.stop()
    assert not cloud.is_left_over
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]


def test_a_state_file_alone_is_stale_too(tmp_path: Path) -> None:
    STATE.to_file(tmp_path / "cloud.json")
    assert cloud_in(tmp_path).state is None


def test_a_cloud_whose_processes_run_is_found(tmp_path: Path) -> None:
    table = ProcessTable(tmp_path / "processes.json")
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    table.start("Valkey", command, environment={}, log=tmp_path / "logs" / "valkey.log", cwd=tmp_path)
    STATE.to_file(tmp_path / "cloud.json")
    try:
        assert cloud_in(tmp_path).state == STATE
    finally:
        cloud_in(tmp_path).stop()
        assert not table.groups[0].alive()


def test_a_folder_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    with only_one(tmp_path / "cloud"), pytest.raises(LocalCloudError, match="is at work"), only_one(tmp_path / "cloud"):
        pass
    with only_one(tmp_path / "cloud"):
        pass
