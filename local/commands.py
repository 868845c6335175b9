"""The commands `up`, `down`, `demo` and `status`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.console import Console

from local import demo, demo_regions
from local.cloud import FOLDER, Cloud, only_one
from local.demo_regions import Leg
from local.dialogue import Tally
from local.errors import LocalCloudError
from local.interrupts import Interrupted, interruptible
from local.progress import Steps
from local.state import REGIONS, CloudState

_COMMANDS: Final = {
    "up": "keep a local cloud running",
    "down": "stop it",
    "demo": "send real conversations through one, compare, stop it",
    "status": "tell whether one runs",
}
_STARTING: Final = frozenset({"up", "demo"})
_COUNTS: Final = range(1, len(REGIONS) + 1)


def main(words: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        The exit code: 0, 1 after a failure (one line of it on stderr), 128 + the signal's number when interrupted.
    """
    parser = argparse.ArgumentParser(
        prog="python -m local", description="A local cloud: Valkey, an AWS emulator, and the service deployed into it."
    )
    parser.add_argument(
        "--folder", type=Path, default=FOLDER, help="where the cloud keeps its files (default: %(default)s)"
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, description in _COMMANDS.items():
        command = commands.add_parser(name, help=description, description=description)
        if name in _STARTING:
            command.add_argument(
                "--regions", type=int, choices=_COUNTS, default=1, help="how many it has (default: %(default)s)"
            )
    options = parser.parse_args(words)
    steps = Steps(Console())
    try:
        with interruptible():
            return _run(options.command, options.folder.resolve(), steps, regions=getattr(options, "regions", 1))
    except LocalCloudError as error:
        print(f"local cloud: {error}", file=sys.stderr)
        return 1
    except Interrupted as signal:
        print(f"local cloud: interrupted ({signal}); all that was started is stopped", file=sys.stderr)
        return signal.exit_code


def _run(command: str, folder: Path, steps: Steps, *, regions: int) -> int:
    if command == "status":
        return _status(Cloud(folder, steps))
    with only_one(folder):
        cloud = Cloud(folder, steps, regions=REGIONS[:regions])
        if command in _STARTING and cloud.state is not None:
            _check_regions(cloud.state, regions)
        if command == "up":
            return _up(cloud, steps)
        if command == "down":
            return _down(cloud, steps)
        return _demo(cloud, steps)


def _check_regions(state: CloudState, regions: int) -> None:
    there = 1 + len(state.others)
    if there != regions:
        raise LocalCloudError(f"the local cloud that is up has {there} region(s), not {regions}: `make down` first")


def _up(cloud: Cloud, steps: Steps) -> int:
    state = cloud.state
    if state is not None:
        print("The local cloud is up already (`make down` stops it).")
    else:
        _clear(cloud, steps)
        state = cloud.start()
    _tell(state)
    return 0


def _down(cloud: Cloud, steps: Steps) -> int:
    if not cloud.is_left_over:
        print("No local cloud is up.")
        return 0
    with steps.step("Stop"):
        cloud.stop()
    return 0


def _status(cloud: Cloud) -> int:
    state = cloud.state
    if state is not None:
        _tell(state)
        return 0
    print("A local cloud is starting, or is dead: `make down` clears it." if cloud.is_left_over else "None is up.")
    return 1


def _demo(cloud: Cloud, steps: Steps) -> int:
    state = cloud.state
    if state is not None:
        print("The demo goes through the local cloud that is up, and leaves it so (`make down` stops it).")
        return _report(_play(cloud, state, steps), steps)
    _clear(cloud, steps)
    with cloud as state:
        played = _play(cloud, state, steps)
    return _report(played, steps)


def _play(cloud: Cloud, state: CloudState, steps: Steps) -> Tally | list[Leg]:
    if state.others:
        return demo_regions.play(cloud, state, steps.console)
    return demo.play(cloud, state, steps.console)


def _report(played: Tally | list[Leg], steps: Steps) -> int:
    if isinstance(played, Tally):
        return demo.report(played, steps.console)
    return demo_regions.report(played, steps.console)


def _clear(cloud: Cloud, steps: Steps) -> None:
    if cloud.is_left_over:
        with steps.step("Clear away what is left of a dead local cloud"):
            cloud.stop()


def _tell(state: CloudState) -> None:
    print(f"URL    {state.url}")
    for region in state.others:
        print(f"       {region.url} ({region.region})")
    print("Token  .venv/bin/threadkeep token")
    print("Chat   .venv/bin/threadkeep chat --echo   (answers itself, as a worker would)")
    print("Stop   make down")
