"""`threadkeep import`, against a server in a thread of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import zipfile
from pathlib import Path
from typing import Any

import jwt
import pytest

from tests.support.exports import DATA, chatgpt, write
from tests.unit.client.fake_server import FakeServer
from tests.unit.client.fake_store import running_store
from tests.unit.client.test_cli import line_on_stderr, nowhere, served, write_cloud
from threadkeep_client.cli import main
from threadkeep_client.wire import text_of

__all__ = ["nowhere", "served"]

KEY = "a key that nobody checks, of thirty-two bytes and more"


def token(**claims: Any) -> str:
    return jwt.encode({"sub": "ann", "tenant": "acme", "scope": "chat produce"} | claims, KEY)


def run(server: FakeServer, path: Path, *arguments: str) -> int:
    return main(["import", str(path), "--url", server.url, "--token", token(), *arguments])


def report(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    return told


def test_what_was_imported_and_what_was_refused_and_why_is_told_as_json(
    served: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(served, DATA / "import-missing-metadata.json", "--json") == 1
    told = report(capsys)
    assert told["conversations"] == {
        "found": 3,
        "imported": 2,
        "already_there": 0,
        "incomplete": 0,
        "refused": 1,
        "not_reached": 0,
    }
    assert told["messages"] == {"added": 3, "already_there": 0, "refused": 0}
    assert told["refused"] == [
        {
            "file": "import-missing-metadata.json",
            "place": 2,
            "source": "c-broken",
            "reason": "its `mapping`, which holds the messages, must be an object",
        }
    ]
    assert sorted((row["source"], row["added"]) for row in told["imported"]) == [("c-after", 1), ("c-meta", 2)]
    assert {row["conversation"] for row in told["imported"]} == set(served.service.conversations)
    assert told["notes"] == {"times_missing": 1}


def test_a_second_import_adds_nothing(served: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    path = DATA / "import-branches.json"
    assert run(served, path, "--json") == 0
    capsys.readouterr()
    before = dict(served.service.messages)
    assert run(served, path, "--json") == 0
    told = report(capsys)
    assert told["messages"] == {"added": 0, "already_there": 7, "refused": 0}
    assert told["conversations"]["already_there"] == 1
    assert "notes" not in told["already_there"][0]
    assert served.service.messages == before
    assert run(served, path, "--json", "--new-ids") == 0
    assert report(capsys)["messages"]["added"] == 7


def test_for_people_there_is_a_table_and_every_refusal_with_its_reason(
    served: FakeServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    write(tmp_path / "a", [chatgpt("good", ["x"]), {"id": "steer \x1b[2J", "mapping": None}, 7])
    write(tmp_path / "user.json", {"id": "u"})
    assert run(served, tmp_path) == 1
    out, err = capsys.readouterr()
    assert [line.split() for line in out.splitlines()][:3] == [
        ["conversations", "found", "3"],
        ["conversations", "imported", "1"],
        ["conversations", "refused", "2"],
    ]
    assert "refused: a, conversation steer \ufffd[2J: its `mapping`, which holds the messages, must be an object" in err
    assert "refused: a, value 3: is no JSON object, and each conversation is one" in err
    assert "\npassed over, no conversations in: user.json\n" in err
    assert "\x1b[2J" not in err


def test_what_was_imported_is_named_by_id_and_title(
    served: FakeServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    chats = [chatgpt(f"c{number:02}", ["x"], created_s=1e8 + number) for number in range(22)]
    chats[0]["title"] = "steer \x1b[2J\nme"
    path = write(tmp_path / "a", chats)
    assert run(served, path, "--concurrency", "1") == 0
    names = {head["title"]: name for name, head in served.service.conversations.items()}
    out = capsys.readouterr().out
    assert f"{names[chats[0]['title']]}  steer \ufffd[2J me\n{names['c01']}  c01\n" in out
    assert "  c19\n… and 2 more: `threadkeep history` lists them, --json tells all\n" in out
    assert run(served, path) == 0
    assert "  c01" not in capsys.readouterr().out, "the second time nothing is imported"
    assert run(served, path, "--new-ids", "--json") == 0
    assert [row["title"] for row in report(capsys)["imported"]].count("c01") == 1


def test_notes_are_told_in_words(served: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(served, DATA / "import-bad-pointers.json") == 0
    err = capsys.readouterr().err
    assert "1  messages whose parent is not in the export" in err
    assert "1  rings of messages" in err
    assert "1  messages without a known author" in err
    assert "1  conversations that were left at a message which is not in the export" in err


def test_progress_is_shown_on_stderr(served: FakeServer, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "e.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(50):
            archive.writestr(f"conversations-{number:03}.json", json.dumps([chatgpt(f"c{number}", ["x"])]))
    assert run(served, path, "--json") == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["conversations"]["imported"] == 50
    assert err.count("reading e.zip/conversations-") == 50
    lines = [line for line in err.splitlines() if line.endswith("of 50 conversations")]
    assert len(lines) == 10
    assert lines[-1] == "50 of 50 conversations"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "holds nothing"),
        ("hello", "value 1: is not JSON, or cut off"),
        ('{"name": "no chat"}', "value 1: holds neither `mapping` (ChatGPT) nor `chat_messages` (Claude)"),
        ("[1, 2]", "value 1: is no JSON object, and each conversation is one (and 1 more)"),
        (
            '{"type": "message", "id": "x", "conversation": "y"}',
            "conversation y: is a line that does not stand behind its conversation",
        ),
        ('{"messages": []}', "value 1: is no export: it holds `messages`, the form that `threadkeep replay` reads"),
    ],
)
def test_what_is_no_chat_is_refused_with_the_reason(
    served: FakeServer, capsys: pytest.CaptureFixture[str], tmp_path: Path, content: str, reason: str
) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(content)
    assert run(served, path, "--json") == 2
    out, err = capsys.readouterr()
    assert err.splitlines()[-1].startswith("threadkeep: no conversations found: conversations.json")
    assert reason in err
    told = json.loads(out)
    assert (told["refused"] or told["passed_over"])[0]["reason"].partition(" (")[0] in reason
    assert served.requests == []


def test_a_shard_that_cannot_be_read_is_refused_by_its_name_and_all_that_was_found_is_accounted_for(
    served: FakeServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    write(tmp_path / "conversations-000.json", [chatgpt("a", ["x"]), chatgpt("b", ["x"])])
    (tmp_path / "conversations-001.json").write_text(json.dumps([chatgpt("c", ["x"])])[:200])
    write(tmp_path / "user.json", {"id": "u"})
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    assert run(served, tmp_path) == 1
    out, err = capsys.readouterr()
    assert [line.split()[1:] for line in out.splitlines()[:3]] == [["found", "3"], ["imported", "2"], ["refused", "1"]]
    assert "refused: conversations-001.json, value 1: is not JSON, or cut off\n" in err
    assert "passed over, no conversations in: picture.png, user.json\n" in err
    assert run(served, tmp_path, "--json") == 1
    told = report(capsys)
    counts = told["conversations"]
    assert counts == {
        "found": 3,
        "imported": 0,
        "already_there": 2,
        "incomplete": 0,
        "refused": 1,
        "not_reached": 0,
    }
    assert [each["file"] for each in told["refused"]] == ["conversations-001.json"]
    assert [each["file"] for each in told["passed_over"]] == ["picture.png", "user.json"]


def test_what_cannot_be_unpacked_is_named_before_what_is_passed_over(
    served: FakeServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "e.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", json.dumps([chatgpt("a", ["x" * 50])]))
        archive.writestr("user.json", "{}")
        archive.writestr("a.png", "\x89PNG")
    data = bytearray(path.read_bytes())
    data[80] ^= 0xFF
    path.write_bytes(data)
    assert run(served, path) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("threadkeep: no conversations found: e.zip/conversations.json: cannot be unpacked: ")


def test_a_line_that_is_cut_off_counts_with_the_conversation_that_it_spoils(
    served: FakeServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "all.jsonl"
    head = {"type": "conversation", "id": "018bcfe5-6800-7000-8000-000000000001"}
    path.write_text(f'{json.dumps(chatgpt("a", ["x"]))}\n{json.dumps(head)}\n{{"type": "mess')
    assert run(served, path, "--json") == 1
    told = report(capsys)
    counts = told["conversations"]
    assert (counts["found"], counts["imported"], counts["refused"], counts["not_reached"]) == (2, 1, 1, 0)
    assert told["refused"][0]["reason"] == "value 3 of the file is not JSON, or cut off"


def test_what_says_something_else_is_named_with_both_beginnings_on_the_terminal_alone(
    served: FakeServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def kept(request: dict[str, Any]) -> None:
        if request["action"] == "message.create" and (known := served.service.messages.get(request["message"])):
            known.message["parts"] = [{"type": "text", "text": f"old\x1b\n{'x' * 100}"}]
            served.refuse("message.create", "conflict", reason="id_taken")

    path = write(tmp_path / "f", [chatgpt("c", ["as it was"]) | {"title": "A"}])
    assert run(served, path) == 0
    capsys.readouterr()
    served.on_request = kept
    write(path, [chatgpt("c", ["as it is now"]) | {"title": "B"}])
    assert run(served, path) == 1
    err = capsys.readouterr().err
    ((conversation, _),) = served.service.conversations.items()
    (message,) = served.service.messages
    assert (
        f"refused: f, conversation c, message n0: stands here already as {message} and says something else: its "
        f'content is another (here "old\ufffd {"x" * 55}…", in the export "as it is now"). It stays as it is here\n'
    ) in err
    assert (
        f'kept: f, conversation c: {conversation} stays as it is here: its title here is "A", in the export "B"\n'
    ) in err


def test_an_empty_folder_and_a_path_that_leads_nowhere(
    served: FakeServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    assert run(served, tmp_path / "empty") == 2
    assert "empty holds no JSON" in line_on_stderr(capsys)
    assert run(served, tmp_path / "none") == 2
    assert "none cannot be read: No such file" in line_on_stderr(capsys)


@pytest.mark.parametrize("given", ["opaque", token(scope="chat"), token(scope="produce"), token(tenant=None)])
def test_a_token_that_does_not_do_is_told_before_anything_is_read(
    served: FakeServer, capsys: pytest.CaptureFixture[str], given: str
) -> None:
    path = str(DATA / "import-branches.json")
    assert main(["import", path, "--url", served.url, "--token", given]) == 2
    assert "the scope `chat produce`" in line_on_stderr(capsys)
    assert served.tokens == []


def test_where_the_service_refuses_the_scope_it_is_told_the_same_way(
    served: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    served.refuse("message.create", "unauthorized", times=4)
    assert run(served, DATA / "import-branches.json", "--json") == 2
    out, err = capsys.readouterr()
    assert "the scope `chat produce`" in err
    assert json.loads(out)["incomplete"][0]["reason"].startswith("unauthorized: ")


def test_nobody_at_the_address_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(DATA / "import-branches.json")
    assert main(["import", path, "--url", "ws://127.0.0.1:1/", "--token", token()]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "threadkeep: nobody answers at ws://127.0.0.1:1/" in err


def test_with_the_local_cloud_a_token_is_minted(
    served: FakeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_cloud(tmp_path, served.url)
    assert main(["import", str(DATA / "import-branches.json"), "--json"]) == 0
    assert report(capsys)["messages"]["added"] == 7
    assert jwt.decode(served.tokens[0], options={"verify_signature": False})["scope"] == "chat produce"


def test_what_does_not_fit_a_frame_is_uploaded(
    served: FakeServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    large = "x" * 5_000_000
    path = write(tmp_path / "f", [chatgpt("c", [large, "small"])])
    with running_store() as store:
        served.service.store = store
        assert run(served, path, "--json") == 0
        assert run(served, path, "--json") == 0
        assert len(store.objects) == 1
    assert sorted(text_of(kept.message["parts"]) for kept in served.service.messages.values()) == ["small", large]
    assert json.loads(capsys.readouterr().out.splitlines()[1])["messages"]["already_there"] == 2


def test_history_does_not_show_people_what_was_hidden_but_says_so(
    served: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(served, DATA / "import-multipart-mixed.json", "--json") == 0
    (conversation,) = served.service.conversations
    capsys.readouterr()
    where = ["--url", served.url, "--token", token()]
    assert main(["history", conversation, *where]) == 0
    out = capsys.readouterr().out
    assert "system" not in out
    assert "1 more are hidden" in out
    assert main(["history", conversation, "--json", *where]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 10


def test_ctrl_c_says_how_far_it_came(served: FakeServer, tmp_path: Path) -> None:
    path = write(tmp_path / "f", [chatgpt("c", ["a", "b", "c"]), chatgpt("d", ["a"], created_s=1_800_000_000.0)])
    served.fail("message.create", "lose_request", times=100, skip=1)
    came = threading.Event()
    served.on_request = lambda _: came.set() if len(served.sent("message.create")) >= 2 else None
    command = [sys.executable, "-m", "threadkeep_client.cli", "import", str(path), "--json", "--concurrency", "1"]
    command += ["--url", served.url, "--token", token()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert came.wait(20)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, err.splitlines()[-1]) == (130, "threadkeep: interrupted")
    told = json.loads(out)
    assert [(row["source"], row["added"], row["reason"]) for row in told["incomplete"]] == [("c", 1, "interrupted")]
    assert told["conversations"]["not_reached"] == 1
