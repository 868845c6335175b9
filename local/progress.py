"""The steps of a command as they go: a spinner with its time on a terminal, a line for each when done."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


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
        try:
            with Progress(
                *columns, console=self.console, transient=True, disable=not self.console.is_terminal
            ) as progress:
                progress.add_task(escape(name))
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
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=console, disable=not console.is_terminal)
        self._tasks = [self._progress.add_task(escape(name), total=total, start=False) for name, total in totals]

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def advance(self, index: int) -> None:
        """One more of that thing is done."""
        self._progress.start_task(self._tasks[index])
        self._progress.advance(self._tasks[index])
        task = self._progress.tasks[index]
        if task.finished and not self._console.is_terminal:
            self._console.print(f"{task.description}: {task.completed:.0f}", highlight=False)
