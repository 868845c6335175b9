"""The gateway's ``@connections`` API, played by a real HTTP server on 127.0.0.1."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import boto3
from botocore.config import Config

from tests.support.serving import serving
from threadkeep.stores.aws_config import PUSH

if TYPE_CHECKING:
    from mypy_boto3_apigatewaymanagementapi import ApiGatewayManagementApiClient

STAGE: Final = "test"
PREFIX: Final = f"/{STAGE}/@connections/"
STATUSES: Final = {"gone": (410, "GoneException"), "throttled": (429, "LimitExceededException"), "broken": (500, "")}


class ConnectionsServer(ThreadingHTTPServer):
    """Answers by a connection's name: ``gone…``, ``throttled…``, ``broken…``, ``cut…``, ``slow…``; others take it.

    Attributes:
        frames: what each connection that takes frames was sent.
        asked: how often each connection was posted to.
        released: slow connections wait for this.
        busiest: the most requests at one time.
    """

    daemon_threads = True
    request_queue_size = 128  # else the kernel lets some of many simultaneous connections try again a second later

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.frames: list[tuple[str, bytes]] = []
        self.asked: Counter[str] = Counter()
        self.released = threading.Event()
        self.busiest = 0
        self.lock = threading.Lock()
        self.busy = 0

    @property
    def url(self) -> str:
        """The base of ``@connections``."""
        return f"http://127.0.0.1:{self.server_port}/{STAGE}"


class _Handler(BaseHTTPRequestHandler):
    server: ConnectionsServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        frame = self.rfile.read(int(self.headers["Content-Length"]))
        connection = unquote(self.path).removeprefix(PREFIX)
        with self.server.lock:
            self.server.asked[connection] += 1
            self.server.busy += 1
            self.server.busiest = max(self.server.busiest, self.server.busy)
        if connection.startswith("slow"):
            self.server.released.wait(20)
        with self.server.lock:
            self.server.busy -= 1
        self._answer(connection, frame)

    def _answer(self, connection: str, frame: bytes) -> None:
        if connection.startswith("cut"):
            self.close_connection = True
            return
        status, code = next((found for name, found in STATUSES.items() if connection.startswith(name)), (200, ""))
        if status == 200:
            with self.server.lock:
                self.server.frames.append((connection, frame))
        self.send_response(status)
        self.send_header("Content-Length", "0")
        if code:
            self.send_header("x-amzn-ErrorType", code)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the base class's name
        """Say nothing: pytest would show it."""


@contextmanager
def connections_server() -> Iterator[ConnectionsServer]:
    """A running server, on a free port."""
    server = ConnectionsServer()
    with serving(server):
        try:
            yield server
        finally:
            server.released.set()


def push_client(url: str, **changes: Any) -> ApiGatewayManagementApiClient:
    """A client of it, with the timeouts and retries of the product but for what is changed."""
    return boto3.client(
        "apigatewaymanagementapi",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
        config=PUSH.merge(Config(**changes)),
    )
