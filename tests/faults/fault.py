"""A breakage, and where the table of them is read from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec

ROOT: Final = Path(__file__).parents[2]
TABLE: Final = Path(__file__).parent / "table"
_TOUCHED_S: Final = 10


class StaleFaultError(Exception):
    """The code has moved on from under an entry of the table."""


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A breakage: one text of one file, and what comes to stand there instead.

    Attributes:
        name: what is broken, in a few words.
        says: what then goes wrong, in a sentence.
        file: from the project's root.
        text: as it stands there, exactly once.
        instead: what takes its place.
        caught_by: the tests (pytest's node ids) of which one must fail then.
    """

    name: str
    says: str
    file: str
    text: str
    instead: str
    caught_by: tuple[str, ...]

    def check(self, root: Path) -> str:
        """The file as it is broken.

        Raises:
            StaleFaultError: the text does not stand there exactly once, or a test is not there.
        """
        path = root / self.file
        source = path.read_text(encoding="utf-8") if path.is_file() else ""
        found = source.count(self.text)
        if found != 1 or not self.text:
            raise StaleFaultError(f"{self.name}: its text stands {found} times in {self.file}; write the entry anew")
        for test in self.caught_by:
            file, _, name = test.partition("::")
            function = f"def {name.rpartition('::')[2].partition('[')[0]}("
            if not (root / file).is_file() or function not in (root / file).read_text(encoding="utf-8"):
                raise StaleFaultError(f"{self.name}: there is no test {test}; name the one that catches it")
        if not self.caught_by:
            raise StaleFaultError(f"{self.name}: no test is named that catches it")
        return source.replace(self.text, self.instead)

    def plant(self, root: Path) -> None:
        """Break the file.

        Raises:
            StaleFaultError: see `check`.
        """
        broken, path = self.check(root), root / self.file
        written_s = path.stat().st_mtime
        path.write_text(broken, encoding="utf-8")
        # Python knows a changed file by its size and its second: a byte for a byte would go unnoticed.
        os.utime(path, (written_s + _TOUCHED_S, written_s + _TOUCHED_S))


class _Entries(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    fault: list[Fault]


def load_table(folder: Path = TABLE) -> list[Fault]:
    """All entries, file by file."""
    files = sorted(folder.glob("*.toml"))
    return [fault for file in files for fault in msgspec.toml.decode(file.read_bytes(), type=_Entries).fault]
