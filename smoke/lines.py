"""The lines: what is to be shown, kept as data in `lines.toml`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

import msgspec

from smoke.outcome import Verdict

FILE: Final = Path(__file__).with_name("lines.toml")


class Line(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that the stand-ins cannot prove.

    Attributes:
        id: names it, in reports and for `--only`.
        area: what it belongs to.
        says: what has to hold, one sentence.
        verdict: fixed, where no check can tell; then there is a `reason` and no check.
        reason: of a fixed verdict, or why the check takes hours.
        hours: its check runs in `make smoke-long` alone.
        local: why the local cloud cannot hold it. Where there is nothing here, a failure on the local cloud is one.
    """

    id: str
    area: str
    says: str
    verdict: Verdict | None = None
    reason: str = ""
    hours: bool = False
    local: str = ""

    def __post_init__(self) -> None:
        """Refuse what nobody could report."""
        if (self.verdict is not None or self.hours) != bool(self.reason):
            raise ValueError(f"{self.id}: a reason goes with a fixed verdict or with `hours`, and with nothing else")
        if self.verdict is not None and self.hours:
            raise ValueError(f"{self.id}: a line with a fixed verdict has no check that takes hours")


class _File(msgspec.Struct, forbid_unknown_fields=True):
    line: list[Line]


def read_lines(path: Path = FILE) -> list[Line]:
    """All lines, in the file's order.

    Raises:
        msgspec.ValidationError: the file is not as `Line` has it.
    """
    return msgspec.convert(tomllib.loads(path.read_text()), _File).line
