"""A file that grows: whatever the pieces, its parts are whole, and it goes on from its mark."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import pytest

from threadkeep.domain import exports
from threadkeep.domain.exports import Growing
from threadkeep.stores.exports_memory import ExportFilesMemory
from threadkeep.usecases import export_file
from threadkeep.usecases.export_file import ExportFile

PART: Final = 10
PIECES: Final = [b"", b"abc", b"d" * 9, b"e" * 35, b"f", b"g" * 10, b"", b"h" * 12]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (exports, export_file):
        monkeypatch.setattr(module, "EXPORT_PART_BYTES", PART)


def begun(files: ExportFilesMemory) -> ExportFile:
    return ExportFile(files, "acme", "export", Growing(files.begin("acme", "export")))


@pytest.mark.parametrize("pieces", [[], [b""], [b"x" * PART], [b"x" * 3 * PART], PIECES], ids=str)
def test_all_parts_but_the_last_are_whole_and_there_is_one(pieces: list[bytes]) -> None:
    files = ExportFilesMemory()
    file = begun(files)
    file.add(pieces)
    (parts,) = files.uploads.values()
    content = b"".join(pieces)
    assert [part for _, part in parts.values()] == [
        content[start:end] for start, end in pairwise(range(0, len(content) + 1, PART))
    ]
    file.finish()
    assert files.files["acme", "export"] == content
    assert file.size_bytes == len(content)


@pytest.mark.parametrize("marked", range(len(PIECES) + 1))
@pytest.mark.parametrize("beyond", [0, 1, len(PIECES)])
def test_it_goes_on_from_its_mark_whatever_was_written_behind_it(marked: int, beyond: int) -> None:
    files = ExportFilesMemory()
    first = begun(files)
    first.add(PIECES[:marked])
    first.mark()
    first.add(b"what another run makes of it" for _ in range(beyond))
    left = first.marked()
    assert left.size_bytes == len(b"".join(PIECES[:marked]))
    assert len(left.held) < PART
    second = ExportFile(files, "acme", "export", left)
    assert second.marked() == left
    second.add(PIECES[marked:])
    second.finish()
    assert files.files["acme", "export"] == b"".join(PIECES)
    assert files.uploads == {}


def test_a_file_that_is_let_go_leaves_nothing() -> None:
    files = ExportFilesMemory()
    file = begun(files)
    file.add(PIECES)
    file.abort()
    assert (files.uploads, files.files) == ({}, {})
