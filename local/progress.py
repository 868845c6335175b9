"""The steps of a command as they go: a spinner with its time on a terminal, a line for each when done."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


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
