"""Every line of the list has exactly one check or a fixed verdict, and what is written about them agrees."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import msgspec
import pytest

from smoke.ground import ERASE_SECONDS_MAX
from smoke.lines import Line, read_lines
from smoke.outcome import Verdict
from smoke.registry import all_checks, check
from smoke.runner import RUN_SECONDS_MAX

ROOT: Final = Path(__file__).parents[3]
LINES: Final = read_lines()
HOURS: Final = {line.id for line in LINES if line.hours}
DOCS: Final = (ROOT / "docs" / "smoke.md").read_text()


def test_every_line_has_exactly_one_check_or_a_fixed_verdict() -> None:
    checked = set(all_checks())
    fixed = {line.id for line in LINES if line.verdict is not None}
    assert checked | fixed == {line.id for line in LINES}
    assert checked & fixed == set()


def test_no_two_lines_have_the_same_name() -> None:
    assert len({line.id for line in LINES}) == len(LINES) >= 50


def test_a_second_check_of_a_line_is_refused() -> None:
    registered = all_checks()["frame-limit"]
    with pytest.raises(ValueError, match="has two checks"):
        check(registered.line)(registered.run)


@pytest.mark.parametrize(
    "fields",
    [
        {"verdict": Verdict.SHOWN},
        {"hours": True},
        {"reason": "for none"},
        {"verdict": Verdict.NOT_APPLICABLE, "hours": True, "reason": "both"},
    ],
)
def test_a_verdict_without_a_reason_and_a_reason_for_nothing_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"id": "x", "area": "y", "says": "z", **fields}, Line)


def test_no_line_is_fixed_as_shown_or_failed() -> None:
    fixed = {line.verdict for line in LINES} - {None}
    assert fixed == {Verdict.NOT_APPLICABLE, Verdict.NEEDS_SECOND}


def test_the_whole_of_it_ends_within_15_minutes() -> None:
    longest = max(each.seconds_max for line, each in all_checks().items() if line not in HOURS)
    assert longest < RUN_SECONDS_MAX
    assert RUN_SECONDS_MAX + ERASE_SECONDS_MAX < 15 * 60


def test_the_document_has_each_line_once_in_the_same_words() -> None:
    told = dict(re.findall(r"^\| `([a-z0-9-]+)` \| (.+?) \| [^|]+ \|$", DOCS, re.MULTILINE))
    assert told == {line.id: line.says for line in LINES}


@pytest.mark.parametrize("verdict", list(Verdict))
def test_the_document_says_what_a_verdict_means(verdict: Verdict) -> None:
    assert f"| `{verdict.value}` |" in DOCS
