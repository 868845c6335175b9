"""The search for secrets is not blind: what is planted is found, and what was looked at is told apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Self

import pytest

from tests import secrets
from tests.secrets import BASELINE, Finding, complaints, search

AWS_KEY = "AKIA" + "Z7QK4M2XW9TB6RJP"  # in two pieces, so that this file has none
PEM = "-----BEGIN " + "RSA PRIVATE KEY-----"


@pytest.fixture
def baseline() -> dict[str, Any]:
    """The project's own plugins and filters, and no findings."""
    known: dict[str, Any] = json.loads(BASELINE.read_text("utf-8"))
    return known | {"results": {}}


def found_in(folder: Path, baseline: dict[str, Any]) -> set[Finding]:
    return search(sorted(folder.glob("*.py")), baseline, root=folder, seen=folder / "seen" / "seen.json")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (f'key = "{AWS_KEY}"', "AWS Access Key"),
        (PEM, "Private Key"),
        ("pass" + 'word = "hunter2-but-longer"', "Secret Keyword"),
        ("https://ann:" + "hunter2@example.com/", "Basic Auth Credentials"),
    ],
)
def test_what_is_planted_is_found_and_named_by_its_file(
    tmp_path: Path, baseline: dict[str, Any], text: str, kind: str
) -> None:
    (tmp_path / "leaky.py").write_text(f"{text}\n", "utf-8")
    found = found_in(tmp_path, baseline)
    assert {(one.file, one.kind) for one in found} == {("leaky.py", kind)}
    assert complaints(found, baseline) == [f"leaky.py: looks like a secret ({kind})"]


def test_a_line_that_moves_is_still_the_same_finding(tmp_path: Path, baseline: dict[str, Any]) -> None:
    leaky = tmp_path / "leaky.py"
    leaky.write_text(f'key = "{AWS_KEY}"\n', "utf-8")
    before = found_in(tmp_path, baseline)
    leaky.write_text(f'\n\n"""Moved."""\nkey = "{AWS_KEY}"\n', "utf-8")
    assert found_in(tmp_path, baseline) == before


def test_what_was_seen_is_remembered_for_as_long_as_the_file_stays_as_it_is(
    tmp_path: Path, baseline: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    leaky, tidy = tmp_path / "leaky.py", tmp_path / "tidy.py"
    leaky.write_text(f'key = "{AWS_KEY}"\n', "utf-8")
    tidy.write_text("key = read()\n", "utf-8")
    before = found_in(tmp_path, baseline)
    scanned: list[Path] = []

    class Pool:
        """Notes what there is to scan."""

        def __init__(self, _processes: int) -> None:
            pass

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def map(self, _scan: object, paths: list[Path], _settings: object, chunksize: int) -> list[list[Any]]:
            assert chunksize
            scanned.extend(paths)
            return [[] for _ in paths]

    monkeypatch.setattr(secrets, "ProcessPoolExecutor", Pool)
    assert found_in(tmp_path, baseline) == before
    assert scanned == []
    tidy.write_text("key = read(1)\n", "utf-8")
    found_in(tmp_path, baseline)
    assert scanned == [tidy]
    found_in(tmp_path, baseline | {"plugins_used": [{"name": "PrivateKeyDetector"}]})
    assert scanned == [tidy, leaky, tidy]


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ({}, ["leaky.py: nobody has looked at this yet (AWS Access Key): detect-secrets audit .secrets.baseline"]),
        ({"is_secret": True}, ["leaky.py: a secret (AWS Access Key); take it out and replace it where it was valid"]),
        ({"is_secret": False}, []),
    ],
)
def test_a_known_finding_has_been_looked_at_and_is_none(label: dict[str, bool], said: list[str]) -> None:
    known = {"results": {"leaky.py": [{"type": "AWS Access Key", "hashed_secret": "abc", **label}]}}
    assert complaints([Finding("leaky.py", "AWS Access Key", "abc")], known) == said


def test_a_known_finding_that_is_no_more_is_taken_out() -> None:
    known = {"results": {"leaky.py": [{"type": "AWS Access Key", "hashed_secret": "abc", "is_secret": False}]}}
    (said,) = complaints([], known)
    assert said.startswith("leaky.py: a finding of .secrets.baseline (AWS Access Key) is no more")
