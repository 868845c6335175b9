"""`threadkeep export`, against a server in a thread of its own and a store that hands out files."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.unit.client.fake_server import FakeServer
from tests.unit.client.fake_service import Json, Refused
from tests.unit.client.test_cli import line_on_stderr, nowhere, served
from threadkeep_client.backoff import Backoff
from threadkeep_client.cli import exporting, main

__all__ = ["nowhere", "served"]

CONTENT = b'{"type": "conversation"}\n' * 40_000


@contextmanager
def files(content: bytes, *, status: int = 200, told: int | None = None) -> Iterator[str]:
    """A store with one file; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("content-length", str(len(content) if told is None else told))
            self.end_headers()
            self.wfile.write(content)
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Nothing: a test's output is the test's."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """A client that leaves midway is nothing to print between its own words."""

    with Server(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/exports/e?signed=1"
        finally:
            server.shutdown()
            thread.join()


class FakeExports:
    """Answers `export.create` and `export.get`: running a few times, then done."""

    def __init__(self, server: FakeServer, **done: Any) -> None:
        self.asked: list[Json] = []
        self._answers = iter([{"conversations": 1, "messages": 2}, {"conversations": 2, "messages": 5}, {}])
        self._done = {"state": "done", "conversations": 3, "messages": 7, "bytes": len(CONTENT)} | done
        server.service._export_create = self.create  # type: ignore[attr-defined]
        server.service._export_get = self.get  # type: ignore[attr-defined]

    async def create(self, request: Json) -> Json:
        self.asked.append(request)
        return {"export": self._export(state="running")}

    async def get(self, request: Json) -> Json:
        if request["export"] != "e":
            raise Refused("not_found")
        so_far = next(self._answers, None)
        return {"export": self._export(**(self._done if not so_far else {"state": "running"} | so_far))}

    def _export(self, **fields: Any) -> Json:
        times = {"created_at": "2026-11-29T12:00:00.000Z", "expires_at": "2026-11-30T12:00:00.000Z"}
        return {"id": "e", "format": self.asked[-1]["format"], **times, **fields}


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporting, "_POLLS", Backoff(base_s=0.01, ceiling_s=0.01, floor_s=0.0))


def run(server: FakeServer, *arguments: str) -> int:
    return main(["export", *arguments, "--url", server.url, "--token", "t"])


def test_an_export_is_asked_for_waited_for_and_downloaded(
    served: FakeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "all.jsonl"
    with files(CONTENT) as url:
        exports = FakeExports(served, url=url)
        assert run(served, "-o", str(path)) == 0
    assert path.read_bytes() == CONTENT
    assert [(asked["format"], asked.get("conversation")) for asked in exports.asked] == [("jsonl", None)]
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "exporting: 0 conversations, 0 messages",
        "exporting: 1 conversations, 2 messages",
        "exporting: 2 conversations, 5 messages",
        f"3 conversations, 7 messages, 1,000,000 bytes in {path}",
    ]
    assert list(tmp_path.iterdir()) == [path]


def test_one_conversation_in_another_form_to_standard_output(
    served: FakeServer, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    with files(CONTENT) as url:
        exports = FakeExports(served, url=url)
        served.service.conversations["mine"] = {}
        assert run(served, "mine", "--format", "markdown") == 0
    assert capfdbinary.readouterr().out == CONTENT
    assert [(asked["format"], asked["conversation"]) for asked in exports.asked] == [("markdown", "mine")]


def test_a_failed_export_is_told_by_its_code(served: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    FakeExports(served, state="failed", error="too_large")
    assert run(served) == 2
    assert capsys.readouterr().err.splitlines()[-1] == "threadkeep: the export failed: too_large"


def test_messages_that_no_store_could_give_are_told(
    served: FakeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with files(CONTENT) as url:
        FakeExports(served, url=url, skipped=2)
        assert run(served, "-o", str(tmp_path / "f")) == 1
    assert "2 messages could not be read" in capsys.readouterr().err


@pytest.mark.parametrize("fault", ["refused", "cut off", "nobody", "no link of HTTP"])
def test_a_file_that_does_not_come_whole_leaves_none(
    served: FakeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], fault: str
) -> None:
    path = tmp_path / "f"
    path.write_text("what was there")
    refused = fault == "refused"
    with files(CONTENT, status=403 if refused else 200, told=None if refused else len(CONTENT) + 1) as url:
        elsewhere = {"nobody": "http://127.0.0.1:1/", "no link of HTTP": "file:///etc/hostname"}
        FakeExports(served, url=elsewhere.get(fault, url))
        assert run(served, "-o", str(path)) == 2
    told = capsys.readouterr().err.splitlines()[-1]
    assert told.startswith("threadkeep: the ")
    assert "signed" not in told
    assert path.read_text() == "what was there"
    assert list(tmp_path.iterdir()) == [path]


def test_an_id_that_is_none_is_named(served: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    FakeExports(served)
    served.service.conversations["mine"] = {}
    served.refuse("export.create", "bad_request")
    assert run(served, "mine") == 2
    assert line_on_stderr(capsys) == "mine is no id: `threadkeep history` lists those of conversations"


def test_a_form_that_there_is_not_is_two(served: FakeServer) -> None:
    with pytest.raises(SystemExit) as ended:
        run(served, "--format", "pdf")
    assert ended.value.code == 2
