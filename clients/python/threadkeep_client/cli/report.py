"""What a replay found: as a table for people, or as one line of JSON."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

_SHOWN_MAX: Final = 20


def percentile(values: list[float], share: float) -> float | None:
    """The nearest-rank percentile; None of nothing."""
    if not values:
        return None
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


@dataclass(slots=True)
class Report:
    """Counts, differences and latencies (seconds) of a replay.

    Attributes:
        messages: of the paths that the conversations go on along.
        branches: answers beside those.
        frames: appends that were accepted.
    """

    conversations: int = 0
    messages: int = 0
    branches: int = 0
    frames: int = 0
    seconds: float = 0.0
    checked: bool = False
    differences: list[str] = field(default_factory=list)
    first_delta_s: list[float] = field(default_factory=list)
    append_s: list[float] = field(default_factory=list)
    read_s: list[float] = field(default_factory=list)

    def observe(self, action: str, seconds: float) -> None:
        """Take how long a request took."""
        if action == "stream.append":
            self.frames += 1
            self.append_s.append(seconds)
        elif action == "message.list":
            self.read_s.append(seconds)

    def to_json(self) -> str:
        """One line. Latencies in ms; `differences` is null where nothing was compared."""
        fields: dict[str, Any] = {
            "conversations": self.conversations,
            "messages": self.messages,
            "branches": self.branches,
            "frames": self.frames,
            "differences": len(self.differences) if self.checked else None,
            "seconds": round(self.seconds, 3),
        }
        for name, values in self._latencies():
            fields[name] = {"p50": _ms(percentile(values, 0.5)), "p95": _ms(percentile(values, 0.95))}
        return json.dumps(fields)

    def print(self, console: Console) -> None:
        """A quantity a line, and the first differences."""
        table = Table(box=None, show_header=False, pad_edge=False)
        table.add_column()
        table.add_column(justify="right")
        for name in ("conversations", "messages", "branches", "frames"):
            table.add_row(name, f"{getattr(self, name):,}")
        table.add_row("seconds", f"{self.seconds:.1f}")
        for name, values in self._latencies():
            if values:
                p50, p95 = _ms(percentile(values, 0.5)), _ms(percentile(values, 0.95))
                table.add_row(f"{name.removesuffix('_ms').replace('_', ' ')}, p50 / p95 ms", f"{p50} / {p95}")
        if self.checked:
            style = "bold red" if self.differences else "bold green"
            table.add_row("differences", Text(f"{len(self.differences):,}", style=style))
        console.print(table)

    def print_differences(self, console: Console) -> None:
        """The first of them, a line each."""
        for difference in self.differences[:_SHOWN_MAX]:
            console.print(Text(difference))
        if len(self.differences) > _SHOWN_MAX:
            console.print(Text(f"… and {len(self.differences) - _SHOWN_MAX:,} more"))

    def _latencies(self) -> tuple[tuple[str, list[float]], ...]:
        return (("first_delta_ms", self.first_delta_s), ("append_ms", self.append_s), ("read_ms", self.read_s))


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 1)
