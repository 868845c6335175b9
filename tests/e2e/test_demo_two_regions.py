"""`make demo REGIONS=2` as a program: two regions over one table, and nothing differs between them."""

from __future__ import annotations

from pathlib import Path

from local.state import REGIONS
from tests.support.commands import Command, left_behind, run


def legs(command: Command) -> list[list[str]]:
    """The rows of the table it ends with: three regions, then counts."""
    lines = [line.split() for line in command.output.read_text().splitlines()]
    return [words for words in lines if words and words[0] in REGIONS]


def test_conversations_are_the_same_in_both_regions_and_answers_grow_in_both(tmp_path: Path) -> None:
    folder = tmp_path / "cloud"
    demo = run(folder, "demo", "--regions", "2")
    assert demo.process.returncode == 0, demo.said()
    found = legs(demo)
    home, other = REGIONS
    assert [words[:3] for words in found] == [[other, other, home], [home, home, other], [home, other, home]]
    for words in found:
        conversations, messages, live, hot, differences = map(int, words[3:])
        assert conversations > 0
        assert messages >= 2 * conversations
        assert live > 0, "no answer was seen while it was written"
        assert hot == conversations
        assert differences == 0
    assert "differences: 0" in demo.said()
    assert demo.errors.read_text() == ""
    assert left_behind(folder) == []
