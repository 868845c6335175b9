"""The verdicts, for people and for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from smoke.outcome import Verdict
from smoke.runner import Result

_STYLES: Final = {Verdict.SHOWN: "green", Verdict.READ_BACK: "cyan", Verdict.FAILED: "bold red"}
_WIDTH_WHERE_NOBODY_SAYS: Final = 160


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """One run.

    Attributes:
        left_behind: conversations that could not be deleted, by id.
    """

    url: str
    stage: str
    region: str
    seconds: float
    results: Sequence[Result]
    left_behind: Sequence[str]

    @property
    def exit_code(self) -> int:
        """0 where nothing failed and nothing is left."""
        return int(bool(self.left_behind) or any(result.verdict is Verdict.FAILED for result in self.results))

    def to_json(self) -> str:
        """As one JSON object."""
        return msgspec.json.format(msgspec.json.encode(self)).decode()

    def print(self) -> None:
        """As a table, and a closing line with the counts."""
        console = Console(soft_wrap=False)
        if not console.is_terminal:
            console = Console(width=_WIDTH_WHERE_NOBODY_SAYS)
        table = Table("line", "verdict", "seen, or why not", show_lines=False, header_style="bold")
        area = ""
        for result in self.results:
            if result.area != area:
                area = result.area
                table.add_section()
                table.add_row(f"[bold]{escape(area)}[/]", "", "")
            style = _STYLES.get(result.verdict, "default")
            table.add_row(escape(result.line), f"[{style}]{result.verdict.value}[/]", escape(result.detail))
        console.print(table)
        counts = Counter(result.verdict for result in self.results)
        told = " · ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict])
        console.print(f"{len(self.results)} lines in {self.seconds:.0f} s: {told}", highlight=False)
        for conversation in self.left_behind:
            console.print(f"[red]left behind, delete it by hand: conversation {conversation}[/]", highlight=False)
