"""Free ports on 127.0.0.1."""

from __future__ import annotations

import random
import socket
from typing import Final

HOST: Final = "127.0.0.1"
_PORTS: Final = range(20_000, 30_000)
"""Below the range from which systems give ports to outgoing connections (32768 on Linux, 49152 on macOS and by
RFC 6335), or one of those could take a port between its choice and its use."""
_TRIES_MAX: Final = 100


def free_port() -> int:
    """A port that nobody listens on now.

    Chosen at random, so that two clouds that start at one time rarely choose the same; the loser tries again.

    Raises:
        OSError: none was found.
    """
    for port in random.SystemRandom().sample(_PORTS, _TRIES_MAX):
        if is_free(port):
            return port
    raise OSError(f"no free port on {HOST} among {_TRIES_MAX} tried between {_PORTS.start} and {_PORTS.stop}")


def is_free(port: int) -> bool:
    """Whether one can listen on the port of 127.0.0.1."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True
