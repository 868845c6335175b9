"""What a check can come to."""

from __future__ import annotations

from enum import StrEnum

import msgspec

Figure = float | int | str


class Verdict(StrEnum):
    """The six of them; docs/smoke.md says what each means."""

    SHOWN = "shown"
    READ_BACK = "only read back as configured"
    NEEDS_HOURS = "needs hours"
    NEEDS_SECOND = "needs a second deployment"
    NOT_APPLICABLE = "not applicable"
    FAILED = "FAILED"


class Outcome(msgspec.Struct, frozen=True):
    """What a check found: its verdict, one sentence of what was seen or why not, and figures with their unit last."""

    verdict: Verdict
    detail: str
    figures: dict[str, Figure] = {}


def shown(detail: str, **figures: Figure) -> Outcome:
    """It was seen to happen."""
    return Outcome(Verdict.SHOWN, detail, figures)


def read_back(detail: str, **figures: Figure) -> Outcome:
    """The account says it is set so; nobody saw it act."""
    return Outcome(Verdict.READ_BACK, detail, figures)


def needs_hours(reason: str) -> Outcome:
    """It cannot be seen yet."""
    return Outcome(Verdict.NEEDS_HOURS, reason)


def not_applicable(reason: str) -> Outcome:
    """This deployment, or this machine, has nothing to show it on."""
    return Outcome(Verdict.NOT_APPLICABLE, reason)


def failed(detail: str, **figures: Figure) -> Outcome:
    """It is otherwise than the line says."""
    return Outcome(Verdict.FAILED, detail, figures)


def held(what: str, faults: list[str], *, shows: bool) -> Outcome:
    """Failed with the faults, if there are any; else shown, or only read back."""
    if faults:
        return failed("; ".join(faults))
    return shown(what) if shows else read_back(what)
