"""Imports into the deployed service: by the command, over the socket, with what is large put into the store."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.conversations import noise
from tests.support.exports import DATA, chatgpt, write
from tests.support.services import DeployedCloud
from threadkeep_client import Client, new_id, text_of
from threadkeep_client.cli import main


class User:
    """Somebody whom no other test knows, at a command line."""

    def __init__(self, cloud: DeployedCloud, capsys: pytest.CaptureFixture[str]) -> None:
        self.token = cloud.mint_token(sub=f"user-{new_id()}")
        self.where = ["--url", cloud.state.url, "--token", self.token]
        self._capsys = capsys

    def brings(self, path: Path) -> dict[str, Any]:
        """The report of an import."""
        assert main(["import", str(path), "--json", *self.where]) in {0, 1}
        told: dict[str, Any] = json.loads(self._capsys.readouterr().out)
        return told


@pytest.fixture
def user(local_cloud: DeployedCloud, capsys: pytest.CaptureFixture[str]) -> User:
    return User(local_cloud, capsys)


@pytest.fixture
def exports(tmp_path: Path) -> Path:
    """A folder of exports, one message of which fits no frame and no item of the table."""
    folder = tmp_path / "exports"
    folder.mkdir()
    for path in [*DATA.glob("import-*.json"), *DATA.glob("claude-export-*.json")]:
        if ".expected" not in path.name:
            (folder / path.name).write_bytes(path.read_bytes())
    write(folder / "large.json", [chatgpt("large", ["short", noise(600_000)])])
    return folder


def test_exports_arrive_whole_and_a_second_import_adds_nothing(user: User, exports: Path) -> None:
    first = user.brings(exports)
    assert first["incomplete"] == []
    assert [refused["source"] for refused in first["refused"]] == ["c-broken"]
    assert first["conversations"]["imported"] == first["conversations"]["found"] - 1 == 11
    again = user.brings(exports)
    assert again["messages"] == {"added": 0, "already_there": first["messages"]["added"], "refused": 0}


async def test_what_arrived_reads_as_it_was_sent_with_its_dates(
    user: User, local_cloud: DeployedCloud, exports: Path
) -> None:
    report = await asyncio.to_thread(user.brings, exports)
    by_source = {row["source"]: row["conversation"] for row in report["imported"]}
    async with Client(local_cloud.state.url, user.token) as client:
        large = await client.history(by_source["large"])
        assert [text_of(one["parts"]) for one in large] == ["short", noise(600_000)]
        head = await client.get_conversation(by_source["c-branch"])
        assert head["created_at"] == "2023-11-14T22:13:20.000Z"
        left = await client.history(by_source["c-branch"], leaf=head["metadata"]["current_node"])
        assert text_of(left[-1]["parts"]) == "Slow Tuesday it is."


@pytest.mark.parametrize("form", ["jsonl", "chatgpt"])
def test_what_was_exported_is_met_again_when_it_is_imported(
    user: User, exports: Path, tmp_path: Path, form: str
) -> None:
    first = user.brings(exports)
    path = tmp_path / "export"
    assert main(["export", "--format", form, "-o", str(path), *user.where]) == 0
    again = user.brings(path)
    assert again["messages"] == {"added": 0, "already_there": first["messages"]["added"], "refused": 0}
    assert again["conversations"]["already_there"] == first["conversations"]["imported"]
