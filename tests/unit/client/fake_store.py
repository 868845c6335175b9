"""A store that clients upload to: HTTP on 127.0.0.1, held to size and digest as S3 holds them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.support.serving import QuietServer, serving


class FakeStore:
    """Takes what it is told of.

    Attributes:
        objects: what was uploaded, by its ref.
        media_types: of these, where one was said.
        faults: the next answers in place of its own; 0 cuts the connection.
        puts: how many there were.
    """

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.media_types: dict[str, str] = {}
        self.faults: list[int] = []
        self.puts = 0
        self.url = ""

    def tell(self, request: dict[str, Any]) -> dict[str, Any]:
        """The reply to `blob.create`."""
        ref = f"{request['sha256']}.{request['bytes']}"
        digest = base64.b64encode(bytes.fromhex(request["sha256"])).decode()
        headers = {"content-length": str(request["bytes"]), "x-amz-checksum-sha256": digest}
        headers |= {"content-type": request["media_type"]} if "media_type" in request else {}
        upload = {"ref": ref, "method": "PUT", "url": f"{self.url}/{ref}?signed=1", "headers": headers}
        return {"upload": upload | {"expires_at": "2026-11-29T12:15:00.000Z"}}

    def take(self, handler: BaseHTTPRequestHandler) -> int:
        """A PUT; the status of its answer, 0 for none."""
        self.puts += 1
        content = handler.rfile.read(int(handler.headers["content-length"]))
        if self.faults:
            return self.faults.pop(0)
        ref = handler.path.removeprefix("/").partition("?")[0]
        digest = base64.b64encode(hashlib.sha256(content).digest()).decode()
        if handler.headers["x-amz-checksum-sha256"] != digest or not ref.endswith(f".{len(content)}"):
            return HTTPStatus.BAD_REQUEST
        self.objects[ref] = content
        self.media_types[ref] = handler.headers.get("content-type", "")
        return HTTPStatus.OK


@contextmanager
def running_store() -> Iterator[FakeStore]:
    """A store that serves meanwhile."""
    store = FakeStore()

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            status = store.take(self)
            if status:
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Nothing: a test's output is the test's."""

    server = QuietServer(("127.0.0.1", 0), Handler)
    store.url = f"http://127.0.0.1:{server.server_port}"
    with serving(server):
        yield store
