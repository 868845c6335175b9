"""A real HTTP server on 127.0.0.1 that streams what a test tells it to, cut as the test wants it cut."""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from tests.support.serving import server_tls, serving

Pause = float
"""Seconds between two writes."""


class ModelServer:
    """What it says next, and what it was asked.

    Attributes:
        url: where it is asked, as a base URL.
        script: bytes to be written one by one, each as a chunk of its own, with pauses between.
        status, headers: of the answer.
        is_cut: whether the connection is closed without the end of the body.
        requests: path, headers and body of what came in.
        left: set once a client was seen to leave, at ``left_s`` (monotonic seconds).
    """

    def __init__(self) -> None:
        self.url = ""
        self.script: Sequence[bytes | Pause] = ()
        self.status = 200
        self.headers = {"Content-Type": "text/event-stream"}
        self.is_cut = False
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.left_s = 0.0
        self.left = threading.Event()

    def note_left(self) -> None:
        """A client has left."""
        self.left_s = time.monotonic()
        self.left.set()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    told: ClassVar[ModelServer]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.told.requests.append((self.path, dict(self.headers.items()), json.loads(body)))
        try:
            self._answer()
        except OSError:
            self.told.note_left()
        self.close_connection = True  # a client that keeps it would keep this thread

    def _answer(self) -> None:
        self.send_response(self.told.status)
        for name, value in self.told.headers.items():
            self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for step in self.told.script:
            if isinstance(step, bytes):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(step), step))
            else:
                self._wait(step)
        if not self.told.is_cut:
            self.wfile.write(b"0\r\n\r\n")

    def _wait(self, seconds: float) -> None:
        """Wait; notice a client that leaves meanwhile."""
        self.connection.settimeout(seconds)
        try:
            if self.connection.recv(1) == b"":
                raise ConnectionResetError
        except TimeoutError:
            self.connection.settimeout(None)

    def log_message(self, *_arguments: Any) -> None:
        """Nothing."""


@contextmanager
def model_server(tls: Path | None = None) -> Iterator[ModelServer]:
    """One, while the block runs; over TLS with the key and certificate in a file, if one is given."""
    told = ModelServer()
    handler = type("Handler", (_Handler,), {"told": told})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = False
    if tls is not None:
        server.socket = server_tls(tls).wrap_socket(server.socket, server_side=True)
    told.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}/v1"
    with serving(server):
        yield told
