"""The command line, against a server in a thread of its own: the commands run their own event loops, in real time."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tests.unit.client.fake_server import FakeServer
from threadkeep_client.cli import main
from threadkeep_client.ops import fold
from threadkeep_client.wire import text_of

CHATS: list[dict[str, Any]] = [
    {
        "title": "Rivers 🏞️",
        "messages": [
            {"role": "user", "text": "Which is the longest?\n\u0000 あ"},
            {
                "role": "assistant",
                "text": "The Nile. " * 40,
                "model": "m",
                "alternates": [{"text": "The Amazon. 😀" * 30}, {"text": ""}],
            },
            {"role": "user", "text": "Sure?"},
            {"role": "assistant", "text": "\ud83d No."},
        ],
    },
    {"messages": [{"role": "user", "text": "Alone"}]},
]


@pytest.fixture
def served() -> Iterator[FakeServer]:
    """A server that runs beside the test."""
    ready = threading.Event()
    running: list[tuple[FakeServer, asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def serve() -> None:
        async with FakeServer() as server:
            stop = asyncio.Event()
            running.append((server, asyncio.get_running_loop(), stop))
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(10)
    server, loop, stop = running[0]
    yield server
    loop.call_soon_threadsafe(stop.set)
    thread.join(10)
    assert not thread.is_alive()


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    path = tmp_path / "chats.jsonl"
    path.write_text("\n".join(json.dumps(chat) for chat in CHATS) + "\n\n")
    return path


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No local cloud and no environment, unless a test makes them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("THREADKEEP_URL", raising=False)
    monkeypatch.delenv("THREADKEEP_TOKEN", raising=False)


def line_on_stderr(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line; nothing went to stdout."""
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("threadkeep: ")
    return err.removeprefix("threadkeep: ").rstrip()


# --- replay ----------------------------------------------------------------------------------------------------------


def test_a_file_is_sent_watched_read_back_and_equal(
    served: FakeServer, chats: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(chats), "--check", "--json", "--url", served.url, "--token", "t"]) == 0
    report = json.loads(capsys.readouterr().out)
    counts = {name: report[name] for name in ("conversations", "messages", "branches", "frames", "differences")}
    assert counts == {
        "conversations": 2,
        "messages": 5,
        "branches": 2,
        "frames": len(served.sent("stream.append")),
        "differences": 0,
    }
    assert all(report[name]["p50"] <= report[name]["p95"] for name in ("first_delta_ms", "append_ms", "read_ms"))
    texts = {text_of(kept.message["parts"]) for kept in served.service.messages.values()}
    assert texts == {
        "Which is the longest?\n\u0000 あ",
        "The Nile. " * 40,
        "The Amazon. 😀" * 30,
        "",
        "Sure?",
        "\ufffd No.",
        "Alone",
    }


def test_branches_are_siblings_and_the_main_answer_goes_on(
    served: FakeServer, chats: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(chats), "--check", "--limit", "1", "--url", served.url, "--token", "t"]) == 0
    by_text = {text_of(kept.message["parts"]): kept.message for kept in served.service.messages.values()}
    question, main_answer = by_text["Which is the longest?\n\u0000 あ"], by_text["The Nile. " * 40]
    assert {by_text[text]["parent"] for text in ("The Amazon. 😀" * 30, "", "The Nile. " * 40)} == {question["id"]}
    assert by_text["Sure?"]["parent"] == main_answer["id"]
    assert [opened.get("fork", False) for opened in served.sent("stream.open")] == [False, True, True, False]
    shown = capsys.readouterr().out
    assert "differences" in shown
    assert "branches" in shown


def test_what_was_changed_on_the_way_is_found(
    served: FakeServer, chats: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = served.service.put

    def spoil(name: str, **fields: Any) -> dict[str, Any]:
        parts = json.loads(json.dumps(fields["parts"]).replace("Amazon. ", "Amazon, "))
        return kept(name, **{**fields, "parts": parts})

    monkeypatch.setattr(served.service, "put", spoil)
    assert main(["replay", str(chats), "--check", "--json", "--url", served.url, "--token", "t"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["differences"] == 2
    assert err.count("its text differs from code point 10 on") == 2
    assert "Amazon" not in err


@pytest.mark.parametrize("change", ["lose", "add", "title"])
def test_what_is_missing_or_too_much_is_found(
    served: FakeServer, chats: Path, capsys: pytest.CaptureFixture[str], change: str
) -> None:
    service = served.service

    def tamper(request: dict[str, Any]) -> None:
        if request["action"] != "message.list" or request.get("leaf") != "all" or len(service.messages) < 5:
            return
        newest = max(service.messages)
        if change == "lose":
            del service.messages[newest]
        elif change == "add":
            service.put("f" * 8, **{**service.messages[newest].message, "id": "f" * 8})
        else:
            service.conversations[request["conversation"]]["title"] = "another"

    served.on_request = tamper
    arguments = ["--check", "--limit", "1", "--json", "--url", served.url, "--token", "t"]
    assert main(["replay", str(chats), *arguments]) == 1
    assert json.loads(capsys.readouterr().out)["differences"] == 1


def test_what_the_watcher_saw_is_compared_too(
    served: FakeServer, chats: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def spoil(event: dict[str, Any]) -> list[dict[str, Any]]:
        if event["type"] == "stream.delta" and event["at"] == 1:
            return [event | {"ops": [["text", 0, "?"]]}]
        return [event]

    served.mangle = spoil
    assert main(["replay", str(chats), "--check", "--json", "--url", served.url, "--token", "t"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["differences"] == 2
    assert err.count("the text assembled") == 2


def test_without_check_nothing_is_read_back(
    served: FakeServer, chats: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(chats), "--json", "--url", served.url, "--token", "t"]) == 0
    assert json.loads(capsys.readouterr().out)["differences"] is None
    assert served.sent("message.list") == []


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "not JSON"),
        ("[]", "must be an object with a list of `messages`"),
        ('{"messages": []}', "must be an object with a list of `messages`"),
        ('{"title": 1, "messages": [{"role": "user", "text": ""}]}', "`title` must be"),
        ('{"messages": [1]}', "whose `role` is"),
        ('{"messages": [{"role": "system", "text": ""}]}', "whose `role` is"),
        ('{"messages": [{"role": "user"}]}', "`text` must be a string"),
        ('{"messages": [{"role": "user", "text": "", "model": 1}]}', "`model` must be a string"),
        ('{"messages": [{"role": "assistant", "text": "", "alternates": [1]}]}', "`alternates` must be a list"),
        ('{"messages": [{"role": "user", "text": "", "alternates": [{"text": ""}]}]}', "stand at answers"),
        ('{"messages": [{"role": "user", "text": "' + "あ" * 8_000 + '"}]}', "must fit a frame"),
        ("[" * 100_000, "nested too deeply"),
        ("\udcff", "not UTF-8"),
    ],
)
def test_a_malformed_line_is_named(chats: Path, capsys: pytest.CaptureFixture[str], line: str, complaint: str) -> None:
    with chats.open("ab") as file:
        file.write(line.encode("utf-8", "surrogateescape"))
    assert main(["replay", str(chats), "--url", "ws://127.0.0.1:1/", "--token", "t"]) == 2
    told = line_on_stderr(capsys)
    assert f"{chats}, line 4: " in told
    assert complaint in told


def test_a_file_that_is_missing_or_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--url", "ws://127.0.0.1:1/", "--token", "t"]
    assert main(["replay", str(tmp_path / "none"), *arguments]) == 2
    assert "none cannot be read: No such file" in line_on_stderr(capsys)
    assert main(["replay", str(tmp_path), *arguments]) == 2
    assert "cannot be read: Is a directory" in line_on_stderr(capsys)
    (tmp_path / "empty").write_text("\n")
    assert main(["replay", str(tmp_path / "empty"), *arguments]) == 2
    assert "holds no conversations" in line_on_stderr(capsys)


def test_a_refusal_under_way_is_one_line(served: FakeServer, chats: Path, capsys: pytest.CaptureFixture[str]) -> None:
    served.refuse("stream.open", "unauthorized")
    assert main(["replay", str(chats), "--check", "--url", served.url, "--token", "t"]) == 2
    assert line_on_stderr(capsys) == "unauthorized: a sentence (stream.open)"


def test_ctrl_c_is_one_line_and_130(served: FakeServer, chats: Path) -> None:
    served.fail("stream.append", "lose_request", times=100)
    command = [sys.executable, "-m", "threadkeep_client.cli", "replay", str(chats), "--url", served.url, "--token", "t"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603
        deadline = time.monotonic() + 20
        while not served.sent("stream.append") and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (130, "", "threadkeep: interrupted\n")


# --- where, and with what --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [["chat"], ["history", "c"], ["token"]])
def test_without_a_deployment_the_way_to_one_is_told(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command) == 2
    assert "no local cloud is up" in line_on_stderr(capsys)


def test_an_address_needs_a_token(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "c", "--url", "ws://127.0.0.1:1/"]) == 2
    assert "which token opens ws://127.0.0.1:1/?" in line_on_stderr(capsys)


def test_nobody_at_the_address(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"ws://127.0.0.1:{taken.getsockname()[1]}/"
    assert main(["history", "c", "--url", url, "--token", "t"]) == 2
    assert line_on_stderr(capsys).startswith(f"nobody answers at {url} (")


def test_a_refused_token(served: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    served.refused_tokens = {"t"}
    assert main(["history", "c", "--url", served.url, "--token", "t"]) == 2
    assert line_on_stderr(capsys) == f"the token was refused at {served.url} (HTTP 401)"


def test_the_environment_names_a_deployment(
    served: FakeServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THREADKEEP_URL", served.url)
    monkeypatch.setenv("THREADKEEP_TOKEN", "from the environment")
    assert main(["history", "--json"]) == 0
    assert capsys.readouterr() == ("", "")
    assert served.tokens == ["from the environment"]


def write_cloud(folder: Path, url: str) -> ec.EllipticCurvePrivateKey:
    private = ec.generate_private_key(ec.SECP256R1())
    (folder / ".local").mkdir()
    (folder / ".local" / "key.pem").write_bytes(
        private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
    state = {"url": url, "issuer": "https://issuer/", "audience": "threadkeep", "kid": "k", "key_file": "key.pem"}
    (folder / ".local" / "cloud.json").write_text(json.dumps(state))
    return private


def test_the_local_cloud_is_found_from_folders_below_and_mints_tokens(
    served: FakeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    private = write_cloud(tmp_path, served.url)
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a" / "b")
    assert main(["token", "--sub", "s", "--tenant", "t", "--scope", "chat", "--minutes", "5"]) == 0
    token = capsys.readouterr().out.strip()
    public = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    claims = jwt.decode(token, public, algorithms=["ES256"], audience="threadkeep", issuer="https://issuer/")
    assert {name: claims[name] for name in ("sub", "tenant", "scope")} == {"sub": "s", "tenant": "t", "scope": "chat"}
    assert claims["exp"] - claims["iat"] == 300
    assert jwt.get_unverified_header(token)["kid"] == "k"
    assert main(["history"]) == 0
    scope = jwt.decode(served.tokens[-1], public, algorithms=["ES256"], audience="threadkeep")["scope"]
    assert scope == "chat"


@pytest.mark.parametrize("state", ["{", "[]", "{}", '{"url": "u"}'])
def test_a_damaged_state_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], state: str) -> None:
    write_cloud(tmp_path, "ws://127.0.0.1:1/")
    (tmp_path / ".local" / "cloud.json").write_text(state)
    assert main(["token"]) == 2
    assert "cloud.json cannot be read" in line_on_stderr(capsys)


def test_a_damaged_key_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_cloud(tmp_path, "ws://127.0.0.1:1/")
    (tmp_path / ".local" / "key.pem").write_text("no key")
    assert main(["token"]) == 2
    assert "key cannot be used" in line_on_stderr(capsys)


@pytest.mark.parametrize(
    "arguments", [[], ["sing"], ["replay"], ["replay", "f", "--limit", "0"], ["token", "--minutes", "x"]]
)
def test_wrong_arguments_are_two(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2


# --- reading and talking ---------------------------------------------------------------------------------------------


def test_history_for_people_and_for_programs(
    served: FakeServer, chats: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--url", served.url, "--token", "t"]
    assert main(["replay", str(chats), "--limit", "1", *where]) == 0
    (conversation,) = served.service.conversations
    capsys.readouterr()
    assert main(["history", conversation, "--json", *where]) == 0
    messages = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "assistant"]
    assert main(["history", conversation, "--json", "--leaf", "all", *where]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 6
    assert main(["history", conversation, *where]) == 0
    shown = capsys.readouterr().out
    assert "The Nile." in shown
    assert messages[0]["id"] in shown
    assert "\0" not in shown
    assert main(["history", *where]) == 0
    assert "Rivers" in capsys.readouterr().out
    assert main(["history", "none", *where]) == 2
    assert line_on_stderr(capsys) == "not_found: a sentence (conversation.get)"


@pytest.mark.parametrize(
    ("action", "command", "told"),
    [
        ("conversation.get", ["history", "mine"], "mine is no id: `threadkeep history` lists those of conversations"),
        (
            "message.list",
            ["history", "01890a5d-ac96-774b-bcce-b302099a8057", "--leaf", "mine"],
            "--leaf mine is no id of a message, nor `all`: with --leaf all, `threadkeep history` shows them",
        ),
        (
            "conversation.subscribe",
            ["chat", "mine"],
            "mine is no id: `threadkeep history` lists those of conversations",
        ),
    ],
)
def test_an_id_that_is_none_is_named(
    served: FakeServer, capsys: pytest.CaptureFixture[str], action: str, command: list[str], told: str
) -> None:
    served.refuse(action, "bad_request")
    assert main([*command, "--url", served.url, "--token", "t"]) == 2
    assert line_on_stderr(capsys) == told


def test_a_branch_of_no_conversation_is_told(served: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "--leaf", "all", "--url", served.url, "--token", "t"]) == 2
    assert line_on_stderr(capsys).startswith("--leaf ends a branch of a conversation: say which one")
    assert served.requests == []


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    declared = tomllib.loads((Path(__file__).parents[3] / "clients" / "python" / "pyproject.toml").read_text())
    assert capsys.readouterr().out == f"threadkeep {declared['project']['version']}\n"


def test_the_help_of_an_import_says_what_counts_as_its_activity(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["import", "--help"])
    assert "count as active from the import on" in " ".join(capsys.readouterr().out.split())


def test_no_conversations(served: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "--url", served.url, "--token", "t"]) == 0
    assert capsys.readouterr().out == "no conversations yet\n"


def test_chat_sends_lines_and_shows_what_is_answered(
    served: FakeServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", iter(["Hello, world\n", "\n", "steer \x1b[2J me 😀\n"]))
    assert main(["chat", "--echo", "--url", served.url, "--token", "t"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "assistant> Hello, world" in out
    assert "assistant> steer \ufffd[2J me 😀" in out
    roles = [kept.message["role"] for _, kept in sorted(served.service.messages.items())]
    assert roles == ["user", "assistant", "user", "assistant"]
    assert fold(op for append in served.sent("stream.append")[:2] for op in append["ops"])[0]["type"] == "text"


class FakeResponder:
    """Answers in the server's own loop, a while after it was asked for the last time it needs."""

    def __init__(self, server: FakeServer, text: str, *, asked_times: int = 1) -> None:
        self.asked: list[dict[str, Any]] = []
        self._service, self._text, self._asked_times = server.service, text, asked_times
        self._tasks: set[asyncio.Task[None]] = set()
        server.service.responder = self

    def __call__(self, request: dict[str, Any]) -> None:
        self.asked.append(request)
        if len(self.asked) == self._asked_times:
            self._tasks.add(asyncio.get_running_loop().create_task(self._answer(request)))

    async def _answer(self, request: dict[str, Any]) -> None:
        where = {"conversation": request["conversation"]}
        parent = request["parent" if request["action"] == "message.respond" else "message"]
        opening = {"message": request["reply"], "parent": parent, "role": "assistant", "producer": "r"}
        epoch = (await self._service.carry_out({"action": "stream.open", **where, **opening}))["epoch"]
        stream = {**where, "stream": request["reply"], "epoch": epoch}
        for offset, ops in enumerate([["text", 0, piece]] for piece in (self._text[:3], self._text[3:])):
            await self._service.carry_out({"action": "stream.append", **stream, "offset": offset, "ops": ops})
        await self._service.carry_out({"action": "stream.close", **stream, "offset": 2, "status": "complete"})


@pytest.mark.parametrize("asked_times", [1, 2])
def test_chat_asks_for_an_answer_and_shows_it(
    served: FakeServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, asked_times: int
) -> None:
    monkeypatch.setattr("threadkeep_client.cli.chat._SOON_S", 20.0 if asked_times == 1 else 0.05)
    responder = FakeResponder(served, "The Nile.", asked_times=asked_times)
    monkeypatch.setattr("sys.stdin", iter(["Which?\n"]))
    assert main(["chat", "--url", served.url, "--token", "t"]) == 0
    assert "assistant> The Nile." in capsys.readouterr().out
    question, answer = (kept.message for _, kept in sorted(served.service.messages.items()))
    assert (answer["parent"], question["reply"]) == (question["id"], answer["id"])
    assert {asked["reply"] for asked in responder.asked} == {answer["id"]}
    assert len(served.sent("message.respond")) == asked_times - 1


def test_chat_says_once_where_nobody_answers(
    served: FakeServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("threadkeep_client.cli.chat._SOON_S", 0.05)
    monkeypatch.setattr("sys.stdin", iter(["Which?\n", "And?\n"]))
    assert main(["chat", "--url", served.url, "--token", "t"]) == 0
    out = capsys.readouterr().out
    assert out.count("nobody answers here") == 1
    assert "`threadkeep chat --echo`" in out
    assert ["reply" in request for request in served.sent("message.create")] == [True, False]


def test_chat_says_where_an_answer_does_not_come(
    served: FakeServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_SOON_S", "_LATE_S"):
        monkeypatch.setattr(f"threadkeep_client.cli.chat.{name}", 0.05)
    FakeResponder(served, "", asked_times=3)
    monkeypatch.setattr("sys.stdin", iter(["Which?\n"]))
    assert main(["chat", "--url", served.url, "--token", "t"]) == 0
    out = capsys.readouterr().out
    assert out.count("no answer yet") == 1
    assert "`threadkeep chat --echo`" in out


def test_chat_goes_on_with_a_conversation(
    served: FakeServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("threadkeep_client.cli.chat._SOON_S", 0.05)
    where = ["--url", served.url, "--token", "t"]
    monkeypatch.setattr("sys.stdin", iter(["first\n"]))
    assert main(["chat", *where]) == 0
    (conversation,) = served.service.conversations
    capsys.readouterr()
    monkeypatch.setattr("sys.stdin", iter(["second\n"]))
    assert main(["chat", conversation, *where]) == 0
    assert "user> first\n" in capsys.readouterr().out
    first, second = (kept.message for _, kept in sorted(served.service.messages.items()))
    assert second["parent"] == first["id"]


def test_a_reader_that_goes_away_is_no_error(served: FakeServer, chats: Path) -> None:
    where = ["--url", served.url, "--token", "t"]
    assert main(["replay", str(chats), *where]) == 0
    command = [sys.executable, "-m", "threadkeep_client.cli", "history", "--json", *where]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
        assert process.wait(20) == 141
