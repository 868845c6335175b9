"""Start a program on a port of its own, and again with another if someone was quicker to take it; see it serve."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from typing import Final, TypeVar

from local.errors import LocalCloudError
from local.ports import HOST
from local.processes import ProcessGroup, ProcessTable

_STARTS_MAX: Final = 3
T = TypeVar("T")


def start_listening(
    table: ProcessTable,
    start: Callable[[], tuple[ProcessGroup, T]],
    wait: Callable[[ProcessGroup, T], None],
    *,
    grace_s: float,
) -> tuple[ProcessGroup, T]:
    """Start until it serves, at most three times.

    Args:
        table: where ``start`` writes the process group down.
        start: chooses ports and starts; returns the group and where it will listen.
        wait: waits until it serves there, or raises.
        grace_s: for stopping one that does not.

    Raises:
        LocalCloudError: what ``wait`` said the last time.
    """
    for _ in range(_STARTS_MAX - 1):
        group, place = start()
        try:
            wait(group, place)
        except LocalCloudError:
            table.stop(group, grace_s=grace_s)  # most likely another took the port between choice and start
        else:
            return group, place
    group, place = start()
    wait(group, place)
    return group, place


def answers(port: int, path: str) -> bool:
    """Whether a GET of that path on 127.0.0.1 is answered with 200."""
    connection = http.client.HTTPConnection(HOST, port, timeout=2.0)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
