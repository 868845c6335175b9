"""The table of cases names tests that there are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
ROWS: Final = re.findall(r"^\| A(\d+) \| `(.+)::(.+)` \|$", (FOLDER / "README.md").read_text(), re.MULTILINE)


def test_every_case_of_live_answers_has_a_row() -> None:
    assert {int(case) for case, _, _ in ROWS} >= {*range(1, 31), *range(64, 72)}


def test_every_case_of_the_store_has_a_row() -> None:
    # A56 is about exports of tables, which nobody reads here.
    assert {int(case) for case, _, _ in ROWS} >= {*range(31, 56), *range(57, 64)}


def test_every_case_of_imports_has_a_row() -> None:
    assert {int(case) for case, _, _ in ROWS} >= {58, *range(77, 84)}


def test_every_test_that_is_named_is_there() -> None:
    missing = [
        name
        for _, file, name in ROWS
        if not re.search(rf"^(async )?def {name}\(", (FOLDER / file).read_text(), re.MULTILINE)
    ]
    assert missing == []
