"""What makes the pack refuse to begin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from smoke import __main__ as program
from tests.unit.smoke.test_target import AWS, TOKENS

KEYS = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "a secret"}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A deployment is named, and no credentials are anywhere."""
    for name in (*KEYS, "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN", "AWS_ROLE_ARN"):
        monkeypatch.delenv(name, raising=False)
    nowhere = str(tmp_path / "none")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, nowhere)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name, value in (TOKENS | {"URL": AWS}).items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The URLs of the runs that began."""
    urls: list[str] = []

    class Empty:
        exit_code = 0

        def print(self) -> None:
            """Nothing."""

    async def report(target: Any, *_: object) -> Empty:
        urls.append(target.url)
        return Empty()

    monkeypatch.setattr(program, "_report", report)
    return urls


def refusal(capsys: pytest.CaptureFixture[str], begun: list[str]) -> str:
    """The one line that it ended with, 2, before anything was begun."""
    assert program.main([]) == 2
    out, err = capsys.readouterr()
    assert (out, begun, err.count("\n")) == ("", [], 1)
    assert err.startswith("smoke: ")
    return err


def test_without_credentials_it_refuses_in_one_line(capsys: pytest.CaptureFixture[str], begun: list[str]) -> None:
    assert "no AWS credentials found" in refusal(capsys, begun)


def test_a_profile_that_is_not_there_is_named(
    capsys: pytest.CaptureFixture[str], begun: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobodys")
    assert "nobodys" in refusal(capsys, begun)


def test_with_credentials_it_begins(begun: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    assert program.main([]) == 0
    assert begun == [AWS]
