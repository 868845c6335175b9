"""Which function proves which line."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, Literal

import msgspec

from smoke.ground import Ground
from smoke.outcome import Outcome

Function = Callable[[Ground], Coroutine[Any, Any, Outcome]]
Turn = Literal["alone", "together", "last"]

_CHECKS: Final[dict[str, Check]] = {}


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """A function, and how it is run.

    Attributes:
        line: the id of the one line that it proves.
        run: the function.
        seconds_max: after which it has failed.
        turn: `alone` where others would falsify what it measures; `last` where it disturbs them; else `together`.
    """

    line: str
    run: Function
    seconds_max: float
    turn: Turn


def check(line: str, *, seconds_max: float = 60, turn: Turn = "together") -> Callable[[Function], Function]:
    """Register the function as the check of a line.

    Raises:
        ValueError: the line has one already.
    """

    def register(function: Function) -> Function:
        if line in _CHECKS:
            raise ValueError(f"the line {line} has two checks")
        _CHECKS[line] = Check(line=line, run=function, seconds_max=seconds_max, turn=turn)
        return function

    return register


def all_checks() -> Mapping[str, Check]:
    """Every check of `smoke.checks`, by its line."""
    package = importlib.import_module("smoke.checks")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"smoke.checks.{module.name}")
    return _CHECKS
