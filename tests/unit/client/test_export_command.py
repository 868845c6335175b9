"""`threadkeep export`, against a server in a thread of its own and a store that hands out files."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support.serving import QuietServer, serving
from tests.unit.client.fake_server import FakeServer
from tests.unit.client.fake_service import Json, Refused
from tests.unit.client.test_cli import line_on_stderr, nowhere, served
from threadkeep_client.backoff import Backoff
from threadkeep_client.cli import downloading, exporting, main

__all__ = ["nowhere", "served"]

CONTENT = b'{"type": "conversation"}\n' * 40_000


@contextmanager
def files(
    content: bytes,
    *,
    status: int = 200,
    told: int | None = None,
    breaks_at: int | None = None,
    knows_ranges: bool = True,
    asked: list[str | None] | None = None,
) -> Iterator[str]:
    """A store with one file; its address.

    Args:
        content: of the file.
        status: of every answer.
        told: the length that it tells.
        breaks_at: no answer brings more than that.
        knows_ranges: whether it gives a part where one is asked for.
        asked: takes the range of each request.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked_for = self.headers.get("range")
            if asked is not None:
                asked.append(asked_for)
            start = int(asked_for.removeprefix("bytes=").removesuffix("-")) if asked_for and knows_ranges else 0
            self.send_response(206 if start else status)
            self.send_header("content-length", str(len(content) - start if told is None else told))
            self.end_headers()
            end = len(content) if breaks_at is None else start + breaks_at * (1 if knows_ranges else len(asked or [0]))
            self.wfile.write(content[start:end])
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Nothing: a test's output is the test's."""

    server = QuietServer(("127.0.0.1", 0), Handler)
    with serving(server):
        yield f"http://127.0.0.1:{server.server_port}/exports/e?signed=1"


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
    for module, name in ((exporting, "_POLLS"), (downloading, "_PAUSES")):
        monkeypatch.setattr(module, name, Backoff(base_s=0.01, ceiling_s=0.01, floor_s=0.0))


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
        "exporting: 1 conversation, 2 messages",
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


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("too_large", "too_large: it takes longer than an export may: export single conversations"),
        ("lost", "lost: nobody finished it: ask again"),
        ("of a later version", "of a later version"),
    ],
)
def test_a_failed_export_is_told_by_its_code_and_in_words(
    served: FakeServer, capsys: pytest.CaptureFixture[str], code: str, words: str
) -> None:
    FakeExports(served, state="failed", error=code)
    assert run(served) == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"threadkeep: the export failed: {words}"


def test_every_code_of_the_protocol_has_words() -> None:
    text = (Path(__file__).parents[3] / "docs" / "protocol.md").read_text()
    (codes,) = re.findall(r"`failed` \(`error`: ([^)]*)\)", text)
    assert set(re.findall(r"`(\w+)`", codes)) == set(exporting._REASONS)


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


@pytest.mark.parametrize("knows_ranges", [True, False])
@pytest.mark.parametrize("to_file", [True, False])
def test_a_download_that_breaks_off_goes_on_where_it_was(
    served: FakeServer, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], *, knows_ranges: bool, to_file: bool
) -> None:
    path, asked = tmp_path / "f", list[str | None]()
    with files(CONTENT, breaks_at=300_000, knows_ranges=knows_ranges, asked=asked) as url:
        FakeExports(served, url=url)
        assert run(served, *(["-o", str(path)] if to_file else [])) == 0
    assert (path.read_bytes() if to_file else capfdbinary.readouterr().out) == CONTENT
    assert asked == [None, "bytes=300000-", "bytes=600000-", "bytes=900000-"]


def test_a_link_that_has_run_out_meanwhile_is_asked_for_anew(served: FakeServer, tmp_path: Path) -> None:
    path = tmp_path / "f"
    with files(CONTENT, breaks_at=600_000) as url, files(b"", status=403) as old:
        exports = FakeExports(served, url=url)
        exports._done = _Links(exports._done, iter([url, old, url]))
        assert run(served, "-o", str(path)) == 0
    assert path.read_bytes() == CONTENT


class _Links(dict[str, Any]):
    """What is told of an export that is done: another link each time."""

    def __init__(self, done: dict[str, Any], links: Iterator[str]) -> None:
        super().__init__(done)
        self._links = links

    def keys(self) -> Any:
        self["url"] = next(self._links)
        return super().keys()


def test_progress_of_a_large_download_is_told(
    served: FakeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "_LINE_BYTES", 400_000)
    with files(CONTENT) as url:
        FakeExports(served, url=url)
        assert run(served, "-o", str(tmp_path / "f")) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("downloading: ")]
    assert len(lines) == 2
    assert all(line.endswith(" of 1,000,000 bytes") for line in lines)


def test_where_the_file_cannot_be_written_it_is_said_at_once(
    served: FakeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, asked = tmp_path / "none" / "f", list[str | None]()
    with files(CONTENT, asked=asked) as url:
        FakeExports(served, url=url)
        assert run(served, "-o", str(path)) == 2
    assert (
        capsys.readouterr().err.splitlines()[-1] == f"threadkeep: {path} cannot be written: No such file or directory"
    )
    assert asked == []


def test_ctrl_c_ends_a_download_at_its_next_piece_and_leaves_no_file(served: FakeServer, tmp_path: Path) -> None:
    path, came, go_on = tmp_path / "f", threading.Event(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(CONTENT)
            came.set()
            go_on.wait(20)
            with contextlib.suppress(OSError):
                self.wfile.write(CONTENT)
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with serving(server):
        FakeExports(served, url=f"http://127.0.0.1:{server.server_port}/")
        command = [sys.executable, "-m", "threadkeep_client.cli", "export", "-o", str(path)]
        command += ["--url", served.url, "--token", "t"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603
            assert came.wait(30)
            process.send_signal(signal.SIGINT)
            go_on.set()
            _, err = process.communicate(timeout=30)
    assert (process.returncode, err.splitlines()[-1]) == (130, "threadkeep: interrupted")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("place", "why"), [("nonexist/x", "No such file or directory"), (".", "it is a folder"), ("f/x", "Not a directory")]
)
def test_a_place_where_nothing_can_be_written_is_told_before_the_export_is_made(
    served: FakeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str, why: str
) -> None:
    (tmp_path / "f").touch()
    path = tmp_path / place
    assert run(served, "-o", str(path)) == 2
    assert line_on_stderr(capsys) == f"{path} cannot be written: {why}"
    assert served.requests == []
    assert [each.name for each in tmp_path.iterdir()] == ["f"]


def test_programs_are_told_what_the_file_holds_without_its_link(
    served: FakeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "all.jsonl"
    with files(CONTENT) as url:
        FakeExports(served, url=url, url_expires_at="2026-11-29T12:15:00.000Z")
        assert run(served, "-o", str(path), "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert {name: told[name] for name in ("id", "state", "format", "conversations", "messages", "bytes", "file")} == {
        "id": "e",
        "state": "done",
        "format": "jsonl",
        "conversations": 3,
        "messages": 7,
        "bytes": len(CONTENT),
        "file": str(path),
    }
    assert not [name for name in told if name.startswith("url")], "whoever has the link has the file"


def test_json_beside_the_export_itself_would_be_neither(served: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(served, "--json") == 2
    assert line_on_stderr(capsys).startswith("--json needs --output")
    assert served.requests == []
