"""A TCP relay in front of a service: cuts, silences, and speaks TLS in its place."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress
from typing import Final, Self

from local.state import Address

HOST: Final = "127.0.0.1"
_CHUNK_BYTES: Final = 65_536


class Relay:
    """Listens on a free port and passes bytes on, each connection by two threads.

    Attributes:
        accepted: connections taken so far.
        silent: while set, what the service answers is thrown away.
        received: everything that clients have sent.
    """

    def __init__(self, target: Address, *, tls: ssl.SSLContext | None = None) -> None:
        self._target = target
        self._tls = tls
        self._listener = socket.create_server((HOST, 0))
        self._sockets: list[socket.socket] = []
        self.accepted = 0
        self.silent = False
        self.received = b""
        self.address = Address(host=HOST, port=self._listener.getsockname()[1])

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept()
        self._listener.close()
        self._thread.join()
        self.cut()

    def cut(self) -> None:
        """Close every connection that there is now, both ways; not those that come while it does."""
        sockets, self._sockets = self._sockets, []
        for each in sockets:
            _close(each)

    def _accept(self) -> None:
        threads: list[threading.Thread] = []
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                break
            self.accepted += 1
            threads.append(threading.Thread(target=self._serve, args=(client,)))
            threads[-1].start()
        self.cut()
        for thread in threads:
            thread.join()

    def _serve(self, client: socket.socket) -> None:
        try:
            if self._tls is not None:
                client = self._tls.wrap_socket(client, server_side=True)
            service = socket.create_connection((self._target.host, self._target.port))
        except OSError:  # refused our certificate, most likely
            client.close()
            return
        self._sockets += [client, service]
        answers = threading.Thread(target=self._pass, args=(service, client), kwargs={"is_answer": True})
        answers.start()
        self._pass(client, service, is_answer=False)
        answers.join()
        client.close()
        service.close()

    def _pass(self, source: socket.socket, sink: socket.socket, *, is_answer: bool) -> None:
        with suppress(OSError):
            while data := source.recv(_CHUNK_BYTES):
                if not is_answer:
                    self.received += data
                if not (is_answer and self.silent):
                    sink.sendall(data)
        _close(sink)


def _close(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
