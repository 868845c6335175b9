"""The AWS emulator (ministack) on 127.0.0.1, in a Python environment of its own."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

from local.errors import LocalCloudError
from local.listening import answers, start_listening
from local.ports import HOST, free_port
from local.processes import ProcessGroup, ProcessTable, wait_until
from local.state import ACCOUNT, REGION
from local.tools import NODE_FOLDER, ROOT

STOP_GRACE_S: Final = 1.0
"""It waits half a minute for a socket that a client left open, and has nothing to save."""
_READY_S: Final = 30.0
_PROGRAM: Final = ROOT / ".venv-emulator" / "bin" / "python"


def start_emulator(table: ProcessTable, folder: Path, *, log: Path) -> tuple[ProcessGroup, str]:
    """Start it and wait until it is healthy.

    Args:
        table: where the process group is written down.
        folder: for all that it writes (also a copy of the Lambda bundle for every worker), made anew.
        log: where its output goes.

    Returns:
        Its process group, and its endpoint, ``http://127.0.0.1:PORT``.

    Raises:
        LocalCloudError: it is not installed, or does not come up.
    """
    if not _PROGRAM.exists():
        raise LocalCloudError(f"the emulator is not installed ({_PROGRAM} is missing): run `make setup`")

    def start() -> tuple[ProcessGroup, int]:
        shutil.rmtree(folder, ignore_errors=True)
        port = free_port()
        environment = _environment(port, folder)
        group = table.start(
            "the AWS emulator", [str(_PROGRAM), "-m", "ministack"], environment=environment, log=log, cwd=folder
        )
        return group, port

    def wait(group: ProcessGroup, port: int) -> None:
        wait_until(lambda: answers(port, "/_ministack/health"), group, timeout_s=_READY_S)

    group, port = start_listening(table, start, wait, grace_s=STOP_GRACE_S)
    return group, f"http://{HOST}:{port}"


def _environment(port: int, folder: Path) -> dict[str, str]:
    """All of its environment: every function inherits every variable of it, so there is no more than it needs."""
    folders = {name: folder / name for name in ("tmp", "s3", "state", "home")}
    for path in folders.values():
        path.mkdir(parents=True)
    return {
        "PATH": os.pathsep.join((str(_PROGRAM.parent), str(NODE_FOLDER), os.defpath)),
        "LANG": "C.UTF-8",
        "HOME": str(folders["home"]),
        "TMPDIR": str(folders["tmp"]),
        "S3_DATA_DIR": str(folders["s3"]),
        "STATE_DIR": str(folders["state"]),
        "GATEWAY_PORT": str(port),
        "BIND_HOST": HOST,
        "AUTH": "true",  # functions are held to their roles, so that a missing grant fails here as it would on AWS
        "MINISTACK_REGION": REGION,
        "MINISTACK_ACCOUNT_ID": ACCOUNT,
        "IOT_MTLS_ENABLED": "0",  # else it listens on 8883, too
        "SFTP_ENABLED": "0",
        "DOCKER_HOST": f"unix://{folder / 'no-docker.sock'}",  # else it clears up containers of other instances
    }
