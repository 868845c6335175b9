from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.exports import ANN, NOW_MS, chatgpt, listed, write
from tests.unit.client.fake_server import FakeServer
from threadkeep_client import Client, RateLimitedError, UnavailableError
from threadkeep_client.importing import running as module
from threadkeep_client.importing.building import Built, Identity, build
from threadkeep_client.importing.draft import Draft
from threadkeep_client.importing.report import ImportReport
from threadkeep_client.importing.running import ImportSettings, run_import

SETTINGS = ImportSettings(identity=ANN, now_ms=NOW_MS, concurrency=1)


async def bring(server: FakeServer, path: Path, report: ImportReport | None = None) -> ImportReport:
    catalog = listed(path)
    report = report or ImportReport.of(catalog)
    async with Client(server.url, "t") as client:
        await run_import(client, catalog, report, SETTINGS)
    return report


def three(tmp_path: Path) -> Path:
    chats = [chatgpt(name, ["x", "y"], created_s=number * 1e8) for number, name in enumerate("abc", start=1)]
    return write(tmp_path / "f", chats)


@pytest.mark.parametrize(("code", "error"), [("unavailable", UnavailableError), ("rate_limited", RateLimitedError)])
async def test_where_the_service_is_away_for_good_the_import_ends_and_the_report_says_how_far_it_came(
    server: FakeServer, tmp_path: Path, code: str, error: type[Exception]
) -> None:
    path = three(tmp_path)

    def refuse_from_the_fourth_message_on(request: dict[str, object]) -> None:
        if request["action"] == "message.create" and len(server.service.messages) >= 3:
            server.refuse("message.create", code, retryable=True)

    server.on_request = refuse_from_the_fourth_message_on
    report = ImportReport.of(listed(path))
    with pytest.raises(ExceptionGroup) as raised:
        await bring(server, path, report)
    assert raised.group_contains(error)
    assert [row.entry.source for row in report.imported] == ["a"]
    assert [(row.entry.source, row.sent.added) for row in report.incomplete] == [("b", 1)]
    assert str(report.incomplete[0].reason).startswith(f"{code}: ")
    assert (report.not_reached, report.is_whole) == (1, False)
    server.on_request = lambda _: None
    server.heal()
    completed = await bring(server, path)
    assert [(row.entry.source, row.sent.added) for row in completed.imported] == [("b", 1), ("c", 2)]
    assert completed.is_whole


async def test_a_conversation_whose_reading_fails_unforeseen_stops_no_other(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(draft: Draft, identity: Identity, *, now_ms: int, salt: str) -> Built:
        if draft.source == "b":
            raise TypeError("said in b")
        return build(draft, identity, now_ms=now_ms, salt=salt)

    monkeypatch.setattr(module, "build", failing)
    report = await bring(server, three(tmp_path))
    assert [row.entry.source for row in report.imported] == ["a", "c"]
    assert [(one.source, one.reason) for one in report.refused] == [("b", "cannot be read (TypeError)")]


async def test_a_pause_of_the_service_is_waited_out(server: FakeServer, tmp_path: Path) -> None:
    server.refuse("message.create", "rate_limited", times=3, retryable=True, retry_after_ms=5_000)
    server.fail("conversation.create", "cut", times=2)
    server.fail("message.create", "lose_reply", skip=1)
    report = await bring(server, three(tmp_path))
    assert sum(row.sent.added + row.sent.present for row in report.rows) == 6
    assert len(server.service.messages) == 6
    assert report.is_whole


@pytest.mark.parametrize("code", ["bad_request", "too_large", "not_found", "conflict"])
async def test_what_is_refused_of_one_conversation_stops_no_other(
    server: FakeServer, tmp_path: Path, code: str
) -> None:
    server.refuse("message.create", code)
    report = await bring(server, three(tmp_path))
    assert [row.entry.source for row in report.imported] == ["b", "c"]
    assert [row.entry.source for row in report.incomplete] == ["a"]
    assert report.not_reached == 0


async def test_a_conversation_whose_head_is_refused_was_not_begun(server: FakeServer, tmp_path: Path) -> None:
    server.refuse("conversation.create", "bad_request")
    report = await bring(server, three(tmp_path))
    assert [(refusal.source, refusal.reason[:11]) for refusal in report.refused] == [("a", "bad_request")]
    assert [row.entry.source for row in report.imported] == ["b", "c"]
    assert report.incomplete == []


async def test_a_large_conversation_has_the_room_for_itself_and_is_not_overtaken_for_ever() -> None:
    room, inside, log = module._Room(10), 0, []

    async def enter(name: str, length: int) -> None:
        nonlocal inside
        async with room.of(length):
            inside += min(length, 10)
            assert inside <= 10
            log.append(name)
            await asyncio.sleep(1)
            inside -= min(length, 10)

    asked = [("a", 4), ("b", 4), ("large", 50), ("c", 4), ("d", 4)]
    async with asyncio.TaskGroup() as tasks:
        for name, length in asked:
            tasks.create_task(enter(name, length))
    assert log == ["a", "b", "large", "c", "d"]


async def test_who_gives_up_waiting_for_room_takes_none() -> None:
    room = module._Room(10)
    async with room.of(10):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1), room.of(5):
                pass
    async with asyncio.timeout(1), room.of(10):
        pass
