"""Cases A58 to A60 and A77 to A83: exports of other services, imported. Each is a fault that others have had."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.exports import DATA, chatgpt, expected, listed, shown, write
from tests.support.house import START_MS, Device, House
from tests.support.served_house import HouseServer, in_virtual_time
from tests.unit.client.fake_server import FakeServer
from tests.unit.client.fake_store import running_store
from tests.unit.client.importing.test_command import token
from tests.unit.client.test_cli import served
from threadkeep_client import Client, text_of
from threadkeep_client.ids import id_at
from threadkeep_client.importing.building import Identity
from threadkeep_client.importing.report import ImportReport
from threadkeep_client.importing.running import ImportSettings, run_import
from threadkeep_client.wire import Message

__all__ = ["served"]

IMPORTER: Final = Device(connection="importer=", user="ann", scope="chat produce")
MB: Final = 1_000_000
MEMORY_KIB_MAX: Final = 300 * 1024
ONE_CONVERSATION_KIB_MAX: Final = 200 * 1024


async def bring(client: Client, path: Path) -> ImportReport:
    """Import a file into the service."""
    catalog = listed(path)
    report = ImportReport.of(catalog)
    settings = ImportSettings(identity=Identity("acme", "ann"), now_ms=START_MS, concurrency=1)
    await run_import(client, catalog, report, settings)
    return report


def ids(report: ImportReport) -> dict[str, str]:
    """The conversations here by their ids there."""
    return {row.entry.source: row.conversation for row in report.rows}


async def opened(client: Client, conversation: str) -> list[Message]:
    """The conversation as whoever opens it sees it: the branch at which its reader left it, nothing hidden."""
    head = await client.get_conversation(conversation)
    path = await client.history(conversation, leaf=head["metadata"].get("current_node"))
    return [one for one in path if not one["metadata"].get("hidden")]


def said(messages: list[Message], names: dict[str, str] | None = None) -> list[list[str]]:
    return [[(names or {}).get(one["role"], one["role"]), text_of(one["parts"])] for one in messages]


@in_virtual_time
async def test_a58_pointers_that_lead_nowhere_leave_conversations_that_open(house: House) -> None:
    """A chat whose pointer stood at a half-written node, or whose parents formed a ring, never opened."""
    async with HouseServer(house) as server, server.client(IMPORTER) as client:
        report = await bring(client, DATA / "import-bad-pointers.json")
        assert report.is_whole
        found = {source: await opened(client, name) for source, name in ids(report).items()}
        wanted = expected("import-bad-pointers")
        assert [text for _, text in said(found["c-dangling"])] == wanted["c-dangling"]
        assert [text for _, text in said(found["c-cycle"])] == ["ring a", "ring b"], "each at most once"
        assert said(found["c-noroles"]) == [["assistant", "partial"]], "kept, and reported"
        orphan = await client.history(ids(report)["c-orphan"], leaf="all")
        assert [text for _, text in said(orphan)] == ["kept", "floating"], "both are reachable"
        assert dict(report.notes) == {"current_node_missing": 1, "rings_cut": 1, "orphans": 1, "roles_unknown": 1}
        flags = {
            source: (await client.get_conversation(name))["metadata"]["imported"]["flags"]
            for source, name in ids(report).items()
        }
        assert flags == {
            "c-dangling": ["current_node_missing"],
            "c-cycle": ["rings_cut"],
            "c-orphan": ["orphans"],
            "c-noroles": ["roles_unknown"],
        }


@in_virtual_time
async def test_a59_half_a_surrogate_in_an_export_is_cleaned_at_the_door(house: House, tmp_path: Path) -> None:
    """A chat that held a lone surrogate was stored, and could never be opened again."""
    told = chatgpt("c", ["a \ud83d b"]) | {"title": "\udc00"}
    async with HouseServer(house) as server, server.client(IMPORTER) as client:
        for added in (1, 0):
            report = await bring(client, write(tmp_path / "f", [told]))
            assert sum(row.sent.added for row in report.rows) == added
        (name,) = ids(report).values()
        assert said(await opened(client, name)) == [["user", "a \ufffd b"]]
        assert (await client.get_conversation(name)).get("title") == "\ufffd"


@in_virtual_time
async def test_a60_a_nul_in_an_export_is_kept(house: House, tmp_path: Path) -> None:
    """A message with U+0000 was never stored, since the database refuses it."""
    async with HouseServer(house) as server, server.client(IMPORTER) as client:
        report = await bring(client, write(tmp_path / "f", [chatgpt("c", ["a\u0000b"])]))
        assert said(await opened(client, *ids(report).values())) == [["user", "a\u0000b"]]


@in_virtual_time
async def test_a77_nodes_without_children_a_bare_root_and_fractions_of_seconds_are_imported(house: House) -> None:
    """All conversations were dropped: the importer wanted `children`, a root with a message, and whole seconds."""
    async with HouseServer(house) as server, server.client(IMPORTER) as client:
        report = await bring(client, DATA / "import-slim-no-children.json")
        messages = await opened(client, ids(report)["c-slim"])
        assert said(messages) == expected("import-slim-no-children")["c-slim"]
        assert [one["created_at"] for one in messages[:2]] == ["2023-11-14T22:13:21.250Z", "2023-11-14T22:13:22.030Z"]


@in_virtual_time
async def test_a78_a_missing_field_fails_one_conversation_at_most_and_the_report_says_so(house: House) -> None:
    """Metadata absent from users' nodes killed the whole import, and the page said that all was imported."""
    async with HouseServer(house) as server, server.client(IMPORTER) as client:
        report = await bring(client, DATA / "import-missing-metadata.json")
        wanted = expected("import-missing-metadata")
        found = {source: said(await opened(client, name)) for source, name in ids(report).items()}
        assert found == wanted["imported"]
        assert [refusal.source for refusal in report.refused] == wanted["reported_failed"]
        counts = report.counts()["conversations"]
        assert (counts["imported"], counts["refused"]) == (2, 1)


@pytest.mark.parametrize("form", ["array", "single object", "JSON lines"])
@in_virtual_time
async def test_a79_every_form_is_told_by_its_content(house: House, tmp_path: Path, form: str) -> None:
    """An array was not recognized, cut up as plain text, and counted as a success."""
    chats = [chatgpt(name, [f"said in {name}"]) for name in ("a", "b")]
    path = tmp_path / "whatever.txt"
    match form:
        case "array":
            path.write_text(json.dumps(chats))
        case "single object":
            chats = chats[:1]
            path.write_text(json.dumps(chats[0], indent=1))
        case _:
            path.write_text("\n".join(map(json.dumps, chats)))
    async with HouseServer(house) as server, server.client(IMPORTER) as client:
        report = await bring(client, path)
        assert list(ids(report)) == [chat["id"] for chat in chats]
        for source, name in ids(report).items():
            assert said(await opened(client, name)) == [["user", f"said in {source}"]]


def test_a79_json_that_is_no_chat_is_refused_with_the_reason(tmp_path: Path) -> None:
    """A JSON that held no chat was taken as one."""
    catalog = listed(write(tmp_path / "conversations.json", {"users": [{"name": "x"}]}))
    assert catalog.entries == []
    assert [each.reason for each in catalog.refusals] == [
        "holds neither `mapping` (ChatGPT) nor `chat_messages` (Claude), and is no line of Threadkeep's own form"
    ]


@in_virtual_time
async def test_a80_content_of_every_shape_is_kept_and_what_was_hidden_is_not_shown(house: House) -> None:
    """Lists were printed as they are, null content failed the import, turns by voice were lost."""
    async with HouseServer(house) as server, server.client(IMPORTER) as client:
        report = await bring(client, DATA / "import-multipart-mixed.json")
        wanted = expected("import-multipart-mixed")
        messages = await opened(client, ids(report)["c-multi"])
        assert [shown(one["role"], one["parts"]) for one in messages] == wanted["c-multi"]
        assert all(one["role"] != "system" for one in messages) is not wanted["hidden_system_shown"]
        assert report.notes["empty_messages"] == 1


@in_virtual_time
async def test_a81_the_branch_left_open_is_the_one_that_opens_and_no_other_is_lost(house: House) -> None:
    """The last or the longest path was shown, not the one left open; the first branch and all times were lost."""
    async with HouseServer(house) as server, server.client(IMPORTER) as client:
        report = await bring(client, DATA / "import-branches.json")
        (name,) = ids(report).values()
        wanted = expected("import-branches")["c-branch"]
        active = await opened(client, name)
        assert [text for _, text in said(active)] == wanted["active_path"]
        every = await client.history(name, leaf="all")
        others = [one for one in every if one["id"] not in {kept["id"] for kept in active}]
        assert [text for _, text in said(others)] == wanted["other_branches_kept"]
        assert every[0]["created_at"] == "2023-11-14T22:13:21.000Z"
        assert (await client.get_conversation(name))["created_at"] == "2023-11-14T22:13:20.000Z"


@in_virtual_time
async def test_a82_of_question_and_answer_with_one_time_the_question_comes_first(house: House) -> None:
    """Question and answer share one time: two questions came in a row, and answers were displaced."""
    async with HouseServer(house) as server, server.client(IMPORTER) as client:
        report = await bring(client, DATA / "claude-export-same-timestamps.json")
        messages = await opened(client, ids(report)["k-1"])
        assert said(messages, {"user": "human"}) == expected("claude-export-same-timestamps")["k-1"]


# --- A83 -------------------------------------------------------------------------------------------------------------


def chats(count: int, *, prefix: str = "c") -> Iterator[dict[str, Any]]:
    """Conversations of more than 100 kB: letters of one, two and four bytes, as people write them."""
    for number in range(count):
        said = [f"{number}.{turn} " + "Wörter und mehr 🙂 " * 800 for turn in range(6)]
        yield chatgpt(f"{prefix}{number}", said, created_s=1_700_000_000.0 + number)


def write_array(path: Path, count: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write("[")
        for number, chat in enumerate(chats(count)):
            file.write(("," if number else "") + json.dumps(chat, ensure_ascii=False))
        file.write("]")


def write_zip(path: Path, parts: int, count: int) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for part in range(parts):
            content = json.dumps(list(chats(count, prefix=f"p{part}.")), ensure_ascii=False)
            archive.writestr(f"conversations-{part:03}.json", content)
        archive.writestr("user.json", '{"id": "u"}')
        archive.writestr("file-abc.png", os.urandom(100_000))


def imported_apart(server: FakeServer, path: Path, *, code: int = 0) -> tuple[dict[str, Any], str, int]:
    """Import in a process of its own: the report, what went to stderr, and the most memory that it held, in KiB."""
    # VmHWM is of this process image alone; `getrusage` would count what it was forked from.
    program = (
        "import re, sys; from threadkeep_client.cli import main; code = main(sys.argv[1:]); "
        "status = open('/proc/self/status').read(); "
        "print('peak', re.search(r'VmHWM:\\s+(\\d+)', status)[1], file=sys.stderr); sys.exit(code)"
    )
    command = [sys.executable, "-c", program, "import", str(path), "--json", "--url", server.url, "--token", token()]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)  # noqa: S603
    assert done.returncode == code, done.stderr
    *lines, peak = done.stderr.splitlines()
    return json.loads(done.stdout), "\n".join(lines), int(peak.removeprefix("peak "))


@pytest.mark.parametrize("kind", ["array of 40 MB", "zip of 50 parts"])
def test_a83_a_large_export_takes_little_memory_shows_progress_and_adds_nothing_twice(
    served: FakeServer, tmp_path: Path, kind: str
) -> None:
    """An export of 36 MB failed as one job, and of a zip with 50 files one was read."""
    path, count = tmp_path / "export", 400
    if kind == "array of 40 MB":
        write_array(path, count)
        assert path.stat().st_size > 40 * MB
    else:
        write_zip(path, 50, count // 50)
    first, told, peak_kib = imported_apart(served, path)
    assert peak_kib < MEMORY_KIB_MAX
    assert first["conversations"]["imported"] == count
    assert first["messages"]["added"] == count * 6
    assert f"{count} of {count} conversations" in told
    assert told.count("of 400 conversations") == 10
    assert len(served.service.messages) == count * 6
    second, _, peak_kib = imported_apart(served, path)
    assert peak_kib < MEMORY_KIB_MAX
    assert second["messages"] == {"added": 0, "already_there": count * 6, "refused": 0}
    assert len(served.service.messages) == count * 6


def write_chatgpt(path: Path, texts: list[str]) -> None:
    write_text(path, [chatgpt("c", texts)])


def write_claude(path: Path, texts: list[str]) -> None:
    """As Claude writes it: the text of a message stands there twice."""
    time = "2024-01-01T00:00:00Z"
    messages = [
        {"uuid": f"m{number}", "sender": ("human", "assistant")[number % 2], "created_at": time, "text": text}
        | {"content": [{"type": "text", "text": text}]}
        for number, text in enumerate(texts)
    ]
    write_text(path, [{"uuid": "k", "name": "k", "created_at": time, "chat_messages": messages}])


def write_own(path: Path, texts: list[str]) -> None:
    ids = [id_at(1_700_000_000_000 + number, bytes(10)) for number in range(len(texts) + 1)]
    lines: list[dict[str, Any]] = [{"type": "conversation", "id": ids[0], "title": "o", "metadata": {}}]
    for number, text in enumerate(texts):
        said = {
            "type": "message",
            "id": ids[number + 1],
            "conversation": ids[0],
            "role": ("user", "assistant")[number % 2],
        }
        parent = ids[number] if number else None
        lines.append(said | {"parent": parent, "parts": [{"type": "text", "text": text}], "metadata": {}})
    path.write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in lines), encoding="utf-8")


def write_text(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


WRITERS: Final = {"chatgpt": write_chatgpt, "claude": write_claude, "own": write_own}
PIECE: Final = "Wörter und mehr 🙂 "
PIECE_BYTES: Final = len(PIECE.encode())
FORMS: Final = pytest.mark.parametrize("form", WRITERS)


@FORMS
@pytest.mark.parametrize("count", [2_000, 6])
def test_a83_one_conversation_of_40_mb_takes_little_memory_of_many_messages_or_of_few(
    served: FakeServer, tmp_path: Path, form: str, count: int
) -> None:
    """An export of 36 MB failed as one job; a chat with one reader's whole year in it was held many times over."""
    path, size = tmp_path / "export", 42 * MB // count // (2 if form == "claude" else 1)
    texts = [f"{number} {PIECE * (size // PIECE_BYTES)}" for number in range(count)]
    WRITERS[form](path, texts)
    assert path.stat().st_size > 40 * MB
    with running_store() as store:
        served.service.store = store
        told, _, peak_kib = imported_apart(served, path)
    assert told["messages"] == {"added": count, "already_there": 0, "refused": 0}
    assert told["notes"] == {}
    kept = sorted((kept.message for kept in served.service.messages.values()), key=lambda one: str(one["id"]))
    assert [text_of(one["parts"]) for one in kept] == texts
    assert peak_kib < ONE_CONVERSATION_KIB_MAX


@FORMS
def test_a83_a_message_larger_than_any_is_kept_costs_the_others_nothing(
    served: FakeServer, tmp_path: Path, form: str
) -> None:
    """A conversation over a limit was refused as a whole, for one message that nobody could have kept."""
    path = tmp_path / "export"
    WRITERS[form](path, ["before", PIECE * (41 * MB // PIECE_BYTES), "after"])
    if form == "own":
        # What is ours is refused, not repaired: nobody exported it so.
        told, _, peak_kib = imported_apart(served, path, code=1)
        (refused,) = told["refused"]
        assert refused["reason"].endswith("take more than 8,388,608 bytes")
        assert served.service.conversations == {}
    else:
        told, _, peak_kib = imported_apart(served, path)
        assert told["messages"]["added"] == 3
        assert told["notes"]["contents_dropped"] > 0
        texts = sorted(text_of(kept.message["parts"]) for kept in served.service.messages.values())
        assert texts == ["", "after", "before"]
    assert peak_kib < ONE_CONVERSATION_KIB_MAX
