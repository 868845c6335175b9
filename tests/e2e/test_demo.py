"""`make demo` as a program: what it shows, what it leaves, and what it says when something dies under it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from local.demo import CHATS_FILE, count_messages
from tests.support.commands import Command, left_behind, run, running
from threadkeep_client.cli.chats import read_chats

UNDERWAY = "Alpaca-Eval 1..2: 4"
"""Said when the first conversation is done, while others are streamed."""
CLEAR_MESSAGE_S = 15.0


def table(command: Command) -> dict[str, str]:
    """The quantities it ends with."""
    lines = command.output.read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines[lines.index("") + 1 :])


def test_the_demo_ends_with_no_differences_and_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "cloud"
    demo = run(folder, "demo")
    assert demo.process.returncode == 0, demo.said()
    found, chats = table(demo), read_chats(CHATS_FILE)
    assert found["differences"] == "0"
    assert int(found["conversations"]) == len(chats)
    assert int(found["messages"]) == sum(map(count_messages, chats))
    assert int(found["sockets cut and resumed"]) == 2
    answers = sum(count_messages(chat) - len(chat.turns) // 2 for chat in chats)
    assert answers < int(found["frames"]) < int(found["pieces"])
    assert "ms" in found["time to first delta"]
    assert demo.errors.read_text() == ""
    assert left_behind(folder) == []


def test_an_interrupted_demo_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "cloud"
    with running(folder, "demo") as demo:
        demo.wait_for(UNDERWAY)
        demo.process.send_signal(signal.SIGINT)
        assert demo.wait(CLEAR_MESSAGE_S) == 128 + signal.SIGINT
    (line,) = demo.errors.read_text().splitlines()
    assert "interrupted" in line
    assert left_behind(folder) == []


def test_the_death_of_the_emulator_under_the_demo_is_one_clear_line(tmp_path: Path) -> None:
    folder = tmp_path / "cloud"
    with running(folder, "demo") as demo:
        demo.wait_for(UNDERWAY)
        os.kill(demo.recorded_pid("emulator"), signal.SIGKILL)
        assert demo.wait(CLEAR_MESSAGE_S) == 1
    assert_names(demo, "the AWS emulator is gone (Killed)")
    assert left_behind(folder) == []


def test_through_a_cloud_that_is_up_it_leaves_that_up_and_sees_it_die(tmp_path: Path) -> None:
    folder = tmp_path / "cloud"
    up = run(folder, "up")
    assert up.process.returncode == 0, up.said()
    try:
        with running(folder, "demo") as demo:
            demo.wait_for(UNDERWAY)
            demo.process.send_signal(signal.SIGINT)
            assert demo.wait(CLEAR_MESSAGE_S) == 128 + signal.SIGINT
        assert run(folder, "status").process.returncode == 0
        with running(folder, "demo") as demo:
            demo.wait_for(UNDERWAY)
            os.kill(demo.recorded_pid("Valkey"), signal.SIGKILL)
            assert demo.wait(CLEAR_MESSAGE_S) == 1
        assert_names(demo, "Valkey is gone")
        status = run(folder, "status")
        assert status.process.returncode == 1
        assert "dead" in status.said()
    finally:
        down = run(folder, "down")
    assert down.process.returncode == 0, down.said()
    assert left_behind(folder) == []


def assert_names(demo: Command, what: str) -> None:
    (line,) = demo.errors.read_text().splitlines()
    assert line.startswith(f"local cloud: {what}. Log: {demo.folder / 'logs'}")
