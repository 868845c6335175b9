"""Uploads over HTTP into memory: a store that stands whatever becomes of the hot tier."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec

from tests.support.serving import serving
from threadkeep.domain.model import ConversationKey
from threadkeep.domain.uploads import Upload
from threadkeep.ports import PresignedPut
from threadkeep.stores.uploads_memory import UploadsMemory


class ServedUploads(UploadsMemory):
    """Gives URLs that a client can PUT to."""

    base = ""

    def presign(self, key: ConversationKey, upload: Upload, *, media_type: str | None, lives_s: int) -> PresignedPut:
        """See `UploadStore`."""
        put = super().presign(key, upload, media_type=media_type, lives_s=lives_s)
        return msgspec.structs.replace(put, url=f"{self.base}/{put.url}")

    def take(self, handler: BaseHTTPRequestHandler) -> HTTPStatus:
        """A PUT; the status of its answer."""
        headers = {name.lower(): value for name, value in handler.headers.items()}
        content = handler.rfile.read(int(headers["content-length"]))
        taken = self.put(handler.path.removeprefix("/"), headers, content)
        return HTTPStatus.OK if taken else HTTPStatus.BAD_REQUEST


@contextmanager
def served_uploads() -> Iterator[ServedUploads]:
    """A store that serves meanwhile."""
    store = ServedUploads()

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self.send_response(store.take(self))
            self.send_header("content-length", "0")
            self.end_headers()
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Nothing: a test's output is the test's."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    store.base = f"http://127.0.0.1:{server.server_port}"
    with serving(server):
        yield store
