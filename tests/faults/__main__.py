"""`python -m tests.faults [--json] [NAME…]`: whether the tests notice what is broken on purpose."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from local.interrupts import Interrupted, interruptible
from tests.faults.fault import ROOT, Fault, load_table
from tests.faults.scratch import Runner, copy_project
from tests.faults.trial import Outcome, UnsoundError, check_sound, try_all

_COLOURS: Final = {"caught": "green", "missed": "red", "stale": "yellow", "timed out": "magenta"}


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if every fault is caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("names", metavar="NAME", nargs="*", help="faults to plant, by what their names hold; else all")
    parser.add_argument("--json", action="store_true", help="print the outcomes as JSON")
    options = parser.parse_args(arguments)
    console = Console(stderr=True)
    table = load_table()
    faults = [fault for fault in table if not options.names or any(name in fault.name for name in options.names)]
    if not faults:
        console.print("No fault goes by that name. There are:", *(fault.name for fault in table), sep="\n  ")
        return 1
    started = time.monotonic()
    try:
        with interruptible():
            outcomes = _run(console, faults)
    except UnsoundError as error:
        console.print(str(error), markup=False, highlight=False, soft_wrap=True)
        return 1
    except Interrupted as interrupted:
        return interrupted.exit_code
    if options.json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(outcomes)).decode() + "\n")
    else:
        Console().print(_table(outcomes))
        for outcome in outcomes:
            if outcome.verdict != "caught":
                console.print(f"{outcome.name}: {outcome.why}", markup=False, highlight=False, soft_wrap=True)
    counted = Counter(outcome.verdict for outcome in outcomes)
    said = ", ".join(f"{count} {verdict}" for verdict, count in counted.items())
    console.print(f"{len(outcomes)} faults planted: {said}; {time.monotonic() - started:.0f} s")
    return 0 if counted["caught"] == len(outcomes) else 1


def _run(console: Console, faults: Sequence[Fault]) -> list[Outcome]:
    runner, outcomes = Runner(), dict[str, Outcome]()
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with (
        tempfile.TemporaryDirectory(prefix="threadkeep-faults-") as scratch,
        Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress,
        ExitStack() as stack,
    ):
        sound = Path(scratch) / "sound"
        copy_project(ROOT, sound)
        task = progress.add_task("their tests, with nothing broken", total=len(faults))
        check_sound(runner, sound, faults)
        trials = try_all(
            runner, sound, faults, started=lambda fault: progress.update(task, description=escape(fault.name))
        )
        for outcome in stack.enter_context(closing(trials)):
            outcomes[outcome.name] = outcome
            progress.advance(task)
            colour = _COLOURS[outcome.verdict]
            console.print(
                f"[{colour}]{outcome.verdict:<9}[/] {outcome.seconds:5.1f} s  {escape(outcome.name)}", highlight=False
            )
    return [outcomes[fault.name] for fault in faults]


def _table(outcomes: Sequence[Outcome]) -> Table:
    table = Table("fault", "verdict", "s", "by")
    for outcome in outcomes:
        test = outcome.why.partition(" - ")[0].rpartition("::")[2] if outcome.verdict == "caught" else ""
        colour = _COLOURS[outcome.verdict]
        table.add_row(escape(outcome.name), f"[{colour}]{outcome.verdict}[/]", f"{outcome.seconds:.1f}", escape(test))
    return table


if __name__ == "__main__":
    sys.exit(main())
