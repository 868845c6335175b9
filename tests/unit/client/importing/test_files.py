from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from threadkeep_client.importing import files as module
from threadkeep_client.importing.files import UnreadableError, opened


def contents(path: Path) -> dict[str, bytes]:
    with opened(path) as found:
        return {file.name: file.path.read_bytes() for file in found.files}


def zip_of(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def test_a_plain_file_is_taken_whatever_it_is_called(tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    path.write_bytes(b"no JSON")
    assert contents(path) == {"picture.png": b"no JSON"}


def test_of_a_zip_what_begins_as_json_is_unpacked_whatever_it_is_called(tmp_path: Path) -> None:
    path = zip_of(
        tmp_path / "export.bin", {"b.txt": b" [1]", "a/x.dat": b"\xef\xbb\xbf{}", "c.json": b"<html>", "d": b""}
    )
    assert contents(path) == {"export.bin/a/x.dat": b"\xef\xbb\xbf{}", "export.bin/b.txt": b" [1]"}


def test_what_was_unpacked_is_gone_afterwards(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "e.zip", {"../../escaped.json": b"[]"})
    with opened(path) as found:
        unpacked = found.files[0].path
        assert unpacked.name == "0"
        assert unpacked.is_file()
    assert not unpacked.exists()
    assert sorted(tmp_path.iterdir()) == [path]


def test_of_a_folder_every_file_that_begins_as_json_is_taken_in_order_and_zips_are_unpacked(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "conversations-001.json").write_bytes(b"[2]")
    (tmp_path / "conversations-000.json").write_bytes(b"[1]")
    (tmp_path / "chat.html").write_bytes(b"<p>")
    zip_of(tmp_path / "in" / "z", {"m": b"{}"})
    assert list(contents(tmp_path)) == ["conversations-000.json", "conversations-001.json", "in/z/m"]


def test_a_damaged_member_is_told_and_loses_none_of_the_others(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "e.zip", {"a.json": b'[{"first": 1}]', "b.json": b'[{"second": 2}]'})
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        at = archive.getinfo("b.json").header_offset + 30 + len("b.json")
    data[at + 4] ^= 0xFF
    path.write_bytes(data)
    with opened(path) as found:
        assert [file.name for file in found.files] == ["e.zip/a.json"]
        assert [each.name for each in found.unreadable] == ["e.zip/b.json"]
        assert found.unreadable[0].reason.startswith("cannot be unpacked: ")


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_damaged_member_is_told_whatever_it_is_packed_with(tmp_path: Path, compression: int) -> None:
    path = tmp_path / "e.zip"
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("a.json", b'[{"first": 1}]' * 50)
        archive.writestr("b.json", b'[{"second": 2}]' * 50)
    data = bytearray(path.read_bytes())
    at = 30 + len("a.json")
    data[at + 14 : at + 28] = b"\xff" * 14
    path.write_bytes(data)
    with opened(path) as found:
        assert [file.name for file in found.files] == ["e.zip/b.json"]
        assert [each.name for each in found.unreadable] == ["e.zip/a.json"]


def test_a_zip_with_a_name_that_is_no_utf_8_is_told_and_stops_no_other(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "e.zip", {"é.json": b"[]"})
    path.write_bytes(path.read_bytes().replace("é".encode(), b"\xff\xfe"))
    (tmp_path / "other.json").write_bytes(b"[]")
    with opened(tmp_path) as found:
        assert [file.name for file in found.files] == ["other.json"]
        assert [each.name for each in found.unreadable] == ["e.zip"]


def test_a_zip_that_was_cut_off_is_told(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "e.zip", {"a.json": os.urandom(5_000)})
    path.write_bytes(path.read_bytes()[:2_000])
    with opened(path) as found:
        assert found.files == []
        assert [each.name for each in found.unreadable] == ["e.zip"]


def test_a_zip_that_would_fill_the_disk_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ZIP_BYTES_MAX", 1_000)
    path = zip_of(tmp_path / "e.zip", {"a.json": b"[" + b" " * 600 + b"]", "b.json": b"[" + b" " * 600 + b"]"})
    with opened(path) as found:
        assert [file.name for file in found.files] == ["e.zip/a.json"]
        assert "more than 1,000 bytes" in found.unreadable[0].reason
    monkeypatch.setattr(module, "ZIP_MEMBERS_MAX", 1)
    with opened(path) as found:
        assert found.files == []
        assert found.unreadable[0].reason == "holds more than 1 files"


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="none cannot be read: No such file"), opened(tmp_path / "none"):
        pass
