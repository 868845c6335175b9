"""dynalite on 127.0.0.1: a DynamoDB in memory that meters reads by size and writes as the real one does.

It meters no index, knows neither transactions nor expiry, and refuses a condition without returning the old item
(dynalite 4.0.0, looked at 2026-11-29).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from local.errors import LocalCloudError
from local.listening import answers, start_listening
from local.ports import HOST, free_port
from local.processes import ProcessGroup, ProcessTable, wait_until
from local.tools import NODE_FOLDER, ROOT

_PROGRAM: Final = ROOT / "node_modules" / "dynalite" / "cli.js"
_READY_S: Final = 15.0
_STOP_GRACE_S: Final = 1.0


@contextmanager
def running_dynalite(folder: Path) -> Iterator[str]:
    """One for the length of a block; its endpoint, ``http://127.0.0.1:PORT``. What it writes is deleted after.

    Raises:
        LocalCloudError: it is not installed, or does not come up.
    """
    if not _PROGRAM.exists():
        raise LocalCloudError(f"dynalite is not installed ({_PROGRAM} is missing): run `make setup`")
    table = ProcessTable(folder / "processes.json")

    def start() -> tuple[ProcessGroup, int]:
        port = free_port()
        command = [str(NODE_FOLDER / "node"), str(_PROGRAM), "--host", HOST, "--port", str(port)]
        command += ["--createTableMs", "0", "--deleteTableMs", "0"]  # else a new table takes half a second
        environment = {"PATH": os.defpath, "LANG": "C.UTF-8"}
        group = table.start("dynalite", command, environment=environment, log=folder / "dynalite.log", cwd=folder)
        return group, port

    def wait(group: ProcessGroup, port: int) -> None:
        wait_until(lambda: answers(port, "/"), group, timeout_s=_READY_S)

    try:
        _, port = start_listening(table, start, wait, grace_s=_STOP_GRACE_S)
        yield f"http://{HOST}:{port}"
    finally:
        for group in table.groups:
            table.stop(group, grace_s=_STOP_GRACE_S)
        shutil.rmtree(folder)
