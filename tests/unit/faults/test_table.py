"""The table of planted faults keeps up with the code."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.faults.fault import ROOT, Fault, load_table

FAULTS = load_table()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_fault_can_be_planted_and_its_tests_are_there(fault: Fault) -> None:
    assert fault.check(ROOT) != (ROOT / fault.file).read_text(encoding="utf-8")


def test_every_fault_has_a_name_of_its_own() -> None:
    assert {name: count for name, count in Counter(fault.name for fault in FAULTS).items() if count > 1} == {}
