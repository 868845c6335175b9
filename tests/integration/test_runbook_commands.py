"""The runbook's commands, run as they stand: in a shell's environment, not in a test's."""

from __future__ import annotations

import re
import shlex
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Final

from local.interrupts import interruptible
from tests.support.conversations import conversation, tombstone
from tests.support.dynalite import running_dynalite
from tests.support.metered import table_client
from tests.support.moto_table import TABLE
from threadkeep.domain.model import ConversationKey
from threadkeep.schema import PARTITION_KEY, SORT_KEY
from threadkeep.stores.erasures_dynamodb import ErasuresDynamoDB

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


def test_tombstones_are_saved_and_replayed_by_the_commands_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "dynalite").mkdir()
    with interruptible(), running_dynalite(tmp_path / "dynalite") as endpoint, closing(table_client(endpoint)) as table:
        erasures, key = ErasuresDynamoDB(table, TABLE), ConversationKey("acme", conversation().id)
        erasures.put_tombstone(key, tombstone("ann"))
        file = tmp_path / "saved.jsonl"
        save, replay = COMMANDS
        assert run(save, endpoint, file) == f"1 tombstones of {TABLE} saved in {file}\n"
        (stands,) = table.scan(TableName=TABLE)["Items"]
        table.delete_item(TableName=TABLE, Key={name: stands[name] for name in (PARTITION_KEY, SORT_KEY)})
        assert erasures.read(key)[0] is None
        assert run(replay, endpoint, file) == f"1 tombstones put into {TABLE}, 0 stood there already\n"
        assert erasures.read(key)[0] == tombstone("ann")
