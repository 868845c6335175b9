"""The steps of a command as they go: a spinner with its time on a terminal, a line for each when done."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from local.interrupts import shielded


class Steps:
    """Shows one step after the other."""

    def __init__(self, console: Console) -> None:
        self.console = console

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """The block is a step of that name; it leaves a line with the time it took, also when it failed."""
        started = time.monotonic()
        outcome = "[red]failed[/]"
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        progress = Progress(*columns, console=self.console, transient=True, disable=not self.console.is_terminal)
        progress.add_task(escape(name))
        try:
            with _shown(progress):
                yield
            outcome = "[green]ok[/]"
        except KeyboardInterrupt:
            outcome = "[yellow]interrupted[/]"
            raise
        finally:
            seconds = time.monotonic() - started
            self.console.print(f"{escape(name):<48} {seconds:6.1f} s  {outcome}", highlight=False)


class Bars:
    """A bar for each of several things that go on at one time; without a terminal, a line for each when done."""

    def __init__(self, console: Console, totals: Sequence[tuple[str, int]]) -> None:
        self._console = console
        self._shown = ExitStack()
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=console, disable=not console.is_terminal)
        self._tasks = [self._progress.add_task(escape(name), total=total, start=False) for name, total in totals]

    def __enter__(self) -> Self:
        self._shown.enter_context(_shown(self._progress))
        return self

    def __exit__(self, *_: object) -> None:
        self._shown.close()

    def advance(self, index: int) -> None:
        """One more of that thing is done."""
        self._progress.start_task(self._tasks[index])
        self._progress.advance(self._tasks[index])
        task = self._progress.tasks[index]
        if task.finished and not self._console.is_terminal:
            self._console.print(f"{task.description}: {task.completed:.0f}", highlight=False)


@contextmanager
def _shown(progress: Progress) -> Iterator[None]:
    """A signal that comes while it starts or stops waits for that: half started, it would go on and hide the cursor."""
    try:
        with shielded():
            progress.start()
        yield
    finally:
        with shielded():
            progress.stop()
