"""Text as a terminal may show it."""

from __future__ import annotations

from typing import Final

_KEPT: Final = "\n\t"
_CONTROLS: Final = {
    code: "\N{REPLACEMENT CHARACTER}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in _KEPT
}


def printable(text: str) -> str:
    """The text without control characters: whoever wrote it must not steer the terminal of whoever reads it."""
    return text.translate(_CONTROLS)


def counted(number: int, noun: str) -> str:
    """`1 message`, `2,000 messages`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
