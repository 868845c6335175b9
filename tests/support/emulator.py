"""The AWS emulator without an app in it, for what it meters or does by itself."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local.emulator import STOP_GRACE_S, start_emulator
from local.processes import ProcessTable


@contextmanager
def running_emulator(folder: Path) -> Iterator[str]:
    """One for the length of a block; its endpoint, ``http://127.0.0.1:PORT``. What it writes is deleted after."""
    table = ProcessTable(folder / "processes.json")
    try:
        _, endpoint = start_emulator(table, folder / "emulator", log=folder / "emulator.log")
        yield endpoint
    finally:
        for group in table.groups:
            table.stop(group, grace_s=STOP_GRACE_S)
        shutil.rmtree(folder)
