from __future__ import annotations

from typing import Any

import pytest

from threadkeep_client.importing.times import to_ms


@pytest.mark.parametrize(
    ("said", "at_ms"),
    [
        (1_700_000_002.030285, 1_700_000_002_030),
        (1_700_000_002, 1_700_000_002_000),
        (1_700_000_002_030, 1_700_000_002_030),
        ("2024-03-09T07:00:01.000000Z", 1_709_967_601_000),
        ("2024-03-09T07:00:01+02:00", 1_709_960_401_000),
        ("2024-03-09T07:00:01.250", 1_709_967_601_250),
    ],
)
def test_a_time_is_read_as_it_is_meant(said: Any, at_ms: int) -> None:
    assert to_ms(said) == at_ms


@pytest.mark.parametrize(
    "said", [None, "", "yesterday", True, [], {}, 0, -1.0, float("nan"), float("inf"), 1e300, "0001-01-01T00:00:00Z"]
)
def test_what_names_no_time_is_none(said: Any) -> None:
    assert to_ms(said) is None
