"""Frames kept in memory: the reference, and a fake for tests."""

from __future__ import annotations

from collections.abc import Sequence

from threadkeep.ports import Delivery


class PushMemory:
    """`threadkeep.ports.Push` that remembers what it was given.

    Attributes:
        frames: every connection and frame, in order.
        gone: connections that count as closed for good.
        unserved: connections that take nothing at present.
    """

    def __init__(self) -> None:
        self.frames: list[tuple[str, bytes]] = []
        self.gone: set[str] = set()
        self.unserved: set[str] = set()

    def send(self, connections: Sequence[str], frame: bytes) -> Delivery:
        """See `Push`."""
        served = [connection for connection in connections if connection not in self.gone | self.unserved]
        self.frames += [(connection, frame) for connection in served]
        return Delivery(
            gone=tuple(connection for connection in connections if connection in self.gone),
            late=tuple(connection for connection in connections if connection in self.unserved - self.gone),
        )

    def hint(self, connections: Sequence[str], frame: bytes) -> None:
        """See `Push`: it reaches even those that took nothing in time, a little later."""
        self.frames += [(connection, frame) for connection in connections if connection not in self.gone]

    def frames_of(self, connection: str) -> list[bytes]:
        """What one connection was sent."""
        return [frame for to, frame in self.frames if to == connection]
