"""The runbook's commands, run as they stand: in a shell's environment, not in a test's."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.support.conversations import conversation, tombstone
from tests.support.metered import table
from tests.support.moto_table import TABLE, empty_table
from threadkeep.domain.model import ConversationKey
from threadkeep.stores.erasures_dynamodb import ErasuresDynamoDB

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

__all__ = ["table"]

ROOT: Final = Path(__file__).parents[2]
RUNBOOK: Final = (ROOT / "docs" / "runbook.md").read_text()
COMMANDS: Final = [
    line.strip()
    for block in re.findall(r"^ *```sh\n(.*?)^ *```", RUNBOOK, re.DOTALL | re.MULTILINE)
    for line in block.splitlines()
]
REGION: Final = "eu-central-1"


def run(command: str, endpoint: str, file: Path) -> str:
    """What a command of the page prints, its placeholders filled in; no path to modules is given to it."""
    for placeholder, value in {
        "threadkeep-STAGE": TABLE,
        "RESTORED": TABLE,
        "HOME": REGION,
        "tombstones.jsonl": str(file),
    }.items():
        command = command.replace(placeholder, value)
    environment = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "LANG": "C.UTF-8",
    }
    done = subprocess.run(  # noqa: S603 -- our own runbook
        shlex.split(command), cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_page_has_two_commands() -> None:
    assert [command.partition("operations.tombstones ")[2].split()[0] for command in COMMANDS] == ["save", "replay"]


def test_tombstones_are_saved_and_replayed_by_the_commands_of_the_page(
    table: DynamoDBClient, dynalite: str, tmp_path: Path
) -> None:
    empty_table(table)
    erasures, key = ErasuresDynamoDB(table, TABLE), ConversationKey("acme", conversation().id)
    erasures.put_tombstone(key, tombstone("ann"))
    file = tmp_path / "saved.jsonl"
    save, replay = COMMANDS
    assert run(save, dynalite, file) == f"1 tombstones of {TABLE} saved in {file}\n"
    empty_table(table)
    assert erasures.read(key)[0] is None
    assert run(replay, dynalite, file) == f"1 tombstones put into {TABLE}, 0 stood there already\n"
    assert erasures.read(key)[0] == tombstone("ann")
