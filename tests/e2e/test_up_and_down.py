"""`make up`, `make down` and all that may come between, as programs."""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from local.state import CloudState
from tests.support.commands import left_behind, run, running


def test_up_keeps_a_cloud_that_down_stops_to_the_last_process(tmp_path: Path) -> None:
    folder = tmp_path / "cloud"
    up = run(folder, "up")
    try:
        assert up.process.returncode == 0, up.said()
        state = CloudState.from_file(folder / "cloud.json")
        assert state is not None
        assert state.url in up.said()
        assert "threadkeep token" in up.said()
        assert "threadkeep chat --echo" in up.said(), "without it nobody answers"

        again = run(folder, "up")
        assert again.process.returncode == 0, again.said()
        assert "is up already" in again.said()
        assert state.url in again.said()
        assert run(folder, "status").process.returncode == 0

        ports = [state.valkey.port, urlsplit(state.endpoint).port]
        assert all(listens(port) for port in ports)
    finally:
        down = run(folder, "down")
    assert down.process.returncode == 0, down.said()
    assert left_behind(folder) == []
    assert not any(listens(port) for port in ports)
    assert "No local cloud is up" in run(folder, "down").said()


def test_what_is_left_of_a_killed_cloud_is_noticed_and_cleared(tmp_path: Path) -> None:
    folder = tmp_path / "cloud"
    with running(folder, "up") as up:
        up.wait_for("cdk bootstrap")
        emulator = up.recorded_pid("emulator")
        up.process.kill()  # nothing can be cleared up by whom that happens to
        up.wait()
    assert is_running(emulator)
    status = run(folder, "status")
    assert status.process.returncode == 1
    assert "make down" in status.said()
    down = run(folder, "down")
    assert down.process.returncode == 0, down.said()
    assert left_behind(folder) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_start_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    folder = tmp_path / "cloud"
    with running(folder, "up") as up:
        up.wait_for("AWS emulator")
        time.sleep(1)  # somewhere within the bootstrap
        up.process.send_signal(number)
        assert up.wait(20) == 128 + number
    assert "interrupted" in up.said()
    assert "Traceback" not in up.said()
    assert left_behind(folder) == []


def test_two_commands_on_one_folder_exclude_each_other(tmp_path: Path) -> None:
    folder = tmp_path / "cloud"
    with running(folder, "up") as first:
        first.wait_for("Valkey")
        second = run(folder, "up")
        assert second.process.returncode == 1
        assert "is at work" in second.said()
        assert first.process.poll() is None
        first.process.send_signal(signal.SIGINT)
        first.wait(20)
    assert left_behind(folder) == []


@pytest.mark.parametrize("victim", ["Valkey", "emulator"])
def test_a_death_during_the_deployment_is_one_clear_line(tmp_path: Path, victim: str) -> None:
    folder = tmp_path / "cloud"
    with running(folder, "up") as up:
        up.wait_for("cdk bootstrap")
        os.kill(up.recorded_pid(victim), signal.SIGKILL)
        assert up.wait(15) == 1
    (line,) = up.errors.read_text().splitlines()
    assert victim in line
    assert "is gone (Killed)" in line
    assert str(folder / "logs") in line
    assert left_behind(folder) == []


def listens(port: int | None) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port or 0)) == 0


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
