"""What may hold conversations: a file, the files of a folder, those in a zip. Told by their beginning, not by names."""

from __future__ import annotations

import errno
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

ZIP_MEMBERS_MAX: Final = 100_000
ZIP_BYTES_MAX: Final = 8 * 1024 * 1024 * 1024
"""What is unpacked of one zip, in all: beyond it a small file could fill the disk."""
_BEGINNING_BYTES: Final = 4_096
_ZIP_MAGIC: Final = b"PK\x03\x04"
_EMPTY_ZIP_MAGIC: Final = b"PK\x05\x06"
_DAMAGE_ERRNOS: Final = frozenset({None, errno.EINVAL})
"""Of the `OSError` that damaged members raise: bzip2's has none, and a place before the file's beginning is invalid.
Members raise many kinds of exceptions, by their compression and by what of them is damaged."""
_BOM: Final = b"\xef\xbb\xbf"
_CONVERSATIONS: Final = re.compile(r"conversations([-_. (]*\d+\)?)?\.(json|jsonl)(\.|$)", re.IGNORECASE)
"""What services call the files that hold conversations, and what downloads and copies make of it."""


class UnreadableError(Exception):
    """What was given cannot be read; the message says why."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A file that begins as JSON does: where it lies, and what people call it."""

    path: Path
    name: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A part of what was given that could not be read, and why."""

    name: str
    reason: str


@dataclass(slots=True)
class Found:
    """What was found.

    Attributes:
        files: those that may hold conversations.
        unreadable: zips and members that are damaged, files called `conversations.json` or so that are no JSON.
        passed_over: files that neither begin as JSON does nor are called so.
    """

    files: list[Opened] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    passed_over: list[Unreadable] = field(default_factory=list)

    def is_taken(self, name: str, *, is_json: bool) -> bool:
        """Whether it may hold conversations; of whatever does not, it is noted why."""
        if not is_json:
            others = self.unreadable if is_called_conversations(name) else self.passed_over
            others.append(Unreadable(name, "is no JSON"))
        return is_json


@contextmanager
def opened(path: Path) -> Iterator[Found]:
    """Look through what was given; members of zips lie in a folder of their own until the block ends.

    Raises:
        UnreadableError: Nothing is there, or it may not be read.
    """
    with tempfile.TemporaryDirectory(prefix="threadkeep-import-") as scratch:
        found = Found()
        try:
            if path.is_dir():
                # Sorted, so that shards come in their order and a report is the same every time.
                for each in sorted(file for file in path.rglob("*") if file.is_file()):
                    _take(found, each, str(each.relative_to(path)), Path(scratch))
            else:
                _take(found, path, path.name, Path(scratch), always=True)
        except OSError as error:
            raise UnreadableError(f"{error.filename or path} cannot be read: {error.strerror or error}") from error
        yield found


def _take(found: Found, path: Path, name: str, scratch: Path, *, always: bool = False) -> None:
    if _is_zip(path):
        _unpack(found, path, name, Path(tempfile.mkdtemp(dir=scratch)))
    elif always or found.is_taken(name, is_json=_begins_as_json(path)):
        found.files.append(Opened(path, name))


def _is_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) in {_ZIP_MAGIC, _EMPTY_ZIP_MAGIC}


def _begins_as_json(path: Path) -> bool:
    with path.open("rb") as file:
        return looks_like_json(file)


def looks_like_json(file: IO[bytes]) -> bool:
    """Whether it begins with an array or an object."""
    return file.read(_BEGINNING_BYTES).removeprefix(_BOM).lstrip()[:1] in {b"[", b"{"}


def is_called_conversations(name: str) -> bool:
    """Whether a file has the name of those that hold conversations, in whatever folder or zip."""
    return _CONVERSATIONS.match(name.rpartition("/")[2]) is not None


def _unpack(found: Found, path: Path, name: str, folder: Path) -> None:
    """Copy out the members that may hold conversations, under numbers: a member's own name is nobody's path here."""
    left = ZIP_BYTES_MAX
    try:
        with zipfile.ZipFile(path) as archive:
            members = sorted((m for m in archive.infolist() if not m.is_dir()), key=lambda member: member.filename)
            if len(members) > ZIP_MEMBERS_MAX:
                found.unreadable.append(Unreadable(name, f"holds more than {ZIP_MEMBERS_MAX:,} files"))
                return
            for number, member in enumerate(members):
                told = f"{name}/{member.filename}"
                try:
                    copy = _unpack_member(archive, member, folder / str(number), left)
                except Exception as error:
                    if isinstance(error, OSError) and error.errno not in _DAMAGE_ERRNOS:
                        raise
                    found.unreadable.append(Unreadable(told, f"cannot be unpacked: {error}"))
                    continue
                if found.is_taken(told, is_json=copy is not None) and copy is not None:
                    left -= copy.stat().st_size
                    found.files.append(Opened(copy, told))
    except (zipfile.BadZipFile, UnicodeDecodeError) as error:  # the latter of a name, before any can be told
        found.unreadable.append(Unreadable(name, f"is a damaged zip: {error}"))


def _unpack_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, to: Path, bytes_max: int) -> Path | None:
    with archive.open(member) as packed:
        if not looks_like_json(packed):
            return None
    if member.file_size > bytes_max:  # zipfile itself reads no more than a member says of itself
        raise zipfile.BadZipFile(f"more than {ZIP_BYTES_MAX:,} bytes in one zip")
    with archive.open(member) as packed, to.open("wb") as file:
        shutil.copyfileobj(packed, file)
    return to
