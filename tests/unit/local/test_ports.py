from __future__ import annotations

import socket

import pytest

from local import ports
from local.ports import HOST, free_port, is_free


def test_a_free_port_can_be_listened_on() -> None:
    port = free_port()
    with socket.create_server((HOST, port)):
        assert not is_free(port)
    assert is_free(port)


def test_a_port_that_somebody_listens_on_is_never_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    monkeypatch.setattr(ports, "_PORTS", range(port, port + 1))
    monkeypatch.setattr(ports, "_TRIES_MAX", 1)
    assert free_port() == port
    with socket.create_server((HOST, port)), pytest.raises(OSError, match="no free port"):
        free_port()


def test_ports_lie_below_those_of_outgoing_connections() -> None:
    assert all(20_000 <= free_port() < 30_000 for _ in range(50))
