"""Server-sent events, read as they come (WHATWG HTML, section 9.2.6, recalled 2026-11-29), as far as ``data`` goes.

Lines are found in bytes and decoded whole, so a character may be cut anywhere between two reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

EVENT_BYTES_MAX: Final = 4 * 1024 * 1024
_BOM: Final = b"\xef\xbb\xbf"


class EventTooLarge(Exception):  # noqa: N818 -- the other side's fault
    """One event takes more than `EVENT_BYTES_MAX`."""


class EventReader:
    """Takes bytes as the network cuts them, gives the data of whole events."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._is_first_line = True

    def feed(self, read: bytes) -> Iterator[str]:
        """The data of every event that ends in what has been read.

        Raises:
            EventTooLarge: see there.
        """
        self._rest += read
        if len(self._rest) + sum(map(len, self._data)) > EVENT_BYTES_MAX:
            raise EventTooLarge
        if b"\n" not in read and b"\r" not in read:
            return
        *lines, self._rest = self._rest.splitlines(keepends=True)
        if self._rest.endswith(b"\n"):  # a last "\r" may yet be followed by its "\n"
            lines.append(self._rest)
            self._rest = b""
        for line in lines:
            yield from self._take(line.rstrip(b"\r\n"))

    def _take(self, line: bytes) -> Iterator[str]:
        if self._is_first_line:
            line = line.removeprefix(_BOM)
            self._is_first_line = False
        field, _, value = line.partition(b":")
        if field == b"data":
            self._data.append(value.removeprefix(b" "))
        elif not line and self._data:
            data, self._data = b"\n".join(self._data), []
            yield data.decode("utf-8", "replace")
