"""Times on the wire."""

from __future__ import annotations

import pytest

from threadkeep.domain import times


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (999, "1970-01-01T00:00:00.999Z"),
        (1_709_164_800_001, "2024-02-29T00:00:00.001Z"),
        (1_790_000_000_000, "2026-09-21T14:13:20.000Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    ],
)
def test_milliseconds_become_rfc3339_and_come_back(ms: int, text: str) -> None:
    assert times.to_rfc3339(ms) == text
    assert times.from_rfc3339(text) == ms


def test_texts_sort_as_their_times_do() -> None:
    moments = [0, 1, 999, 1_000, 86_400_000, 1_709_164_800_001, 1_790_000_000_000]
    texts = [times.to_rfc3339(ms) for ms in moments]
    assert sorted(texts) == texts
