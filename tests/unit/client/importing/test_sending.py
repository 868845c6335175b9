"""Sending, to the real use cases in memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from tests.support.exports import (
    DATA,
    chatgpt,
    conversation,
    listed,
    message,
    path_of,
    read_one,
    texts,
    write,
)
from tests.support.house import LAPTOP, PHONE, START_MS, Device, House, house, message_event
from tests.support.served_house import HouseServer
from tests.unit.client.importing.test_threadkeep import CONVERSATION, HEAD, MESSAGES, lines
from threadkeep_client import Client, UnauthorizedError
from threadkeep_client.importing.building import Built, Identity, build
from threadkeep_client.importing.draft import RefusedError
from threadkeep_client.importing.report import ImportReport
from threadkeep_client.importing.running import ImportSettings, run_import
from threadkeep_client.importing.sending import Sent, send
from threadkeep_client.wire import Message, text_of

__all__ = ["house"]

IMPORTER: Final = Device(connection="importer=", user="ann", scope="chat produce")
OTHER: Final = Device(connection="other=", user="bob", scope="chat produce")
BRANCHES: Final = DATA / "import-branches.json"
NEW: Final = CONVERSATION[:-1] + "9"


@pytest_asyncio.fixture
async def server(house: House) -> AsyncIterator[HouseServer]:
    async with HouseServer(house) as running:
        yield running


@pytest_asyncio.fixture
async def client(server: HouseServer) -> AsyncIterator[Client]:
    async with server.client(IMPORTER) as connected:
        yield connected


async def sent(client: Client, built: Built) -> Sent:
    so_far = Sent()
    await send(client, built, so_far)
    return so_far


def counts(so_far: Sent) -> tuple[bool, int, int, int]:
    return so_far.is_new, so_far.added, so_far.present, so_far.refused


async def stored(client: Client, built: Built) -> list[Message]:
    return await client.history(built.id, leaf="all")


async def test_a_conversation_arrives_as_it_was_with_its_branches_and_dates(client: Client) -> None:
    built = read_one(BRANCHES, "c-branch")
    assert counts(await sent(client, built)) == (True, 7, 0, 0)
    kept = await stored(client, built)
    assert [(one["id"], one["parent"], one["role"], one["parts"], one["metadata"]) for one in kept] == [
        (one.id, one.parent, one.role, one.parts, one.metadata) for one in built.messages
    ]
    assert kept[0]["created_at"] == "2023-11-14T22:13:21.000Z"
    head = await client.get_conversation(built.id)
    active = await client.history(built.id, leaf=head["metadata"]["current_node"])
    assert [text_of(one["parts"]) for one in active] == texts(path_of(built))


async def test_a_second_import_adds_nothing(client: Client) -> None:
    built = read_one(BRANCHES, "c-branch")
    await sent(client, built)
    before = await stored(client, built)
    assert counts(await sent(client, built)) == (False, 0, 7, 0)
    assert await stored(client, built) == before


async def test_only_what_does_not_follow_a_single_line_is_a_fork(client: Client, server: HouseServer) -> None:
    await sent(client, read_one(BRANCHES, "c-branch"))
    forks = [request["fork"] for request in server.asked("message.create")]
    assert forks == [False, False, True, False, False, True, False]


async def test_an_import_that_was_cut_off_is_completed_by_the_next(client: Client) -> None:
    built = read_one(BRANCHES, "c-branch")
    cut_off = Sent()
    sending = asyncio.create_task(send(client, built, cut_off))

    def observe(_: str, __: float) -> None:
        if cut_off.added == 3:
            sending.cancel()

    client.connection._observe = observe
    await asyncio.gather(sending, return_exceptions=True)
    assert cut_off.added == 4, "the fourth was durable when it was cut off"
    completed = await sent(client, built)
    assert not completed.is_new
    assert completed.present >= 4
    assert completed.added == 7 - completed.present
    assert len(await stored(client, built)) == 7


async def test_a_later_export_adds_what_is_new_also_where_the_conversation_went_on_here(
    client: Client, server: HouseServer, tmp_path: Path
) -> None:
    early = read_one(write(tmp_path / "f", [chatgpt("c", ["one", "two"])]), "c")
    await sent(client, early)
    async with server.client(PHONE) as owner:
        here = await owner.create_message(early.id, "said here", parent=early.messages[-1].id)
    late = read_one(write(tmp_path / "g", [chatgpt("c", ["one", "two", "three", "four"])]), "c")
    assert counts(await sent(client, late)) == (False, 2, 2, 0)
    kept = {text_of(one["parts"]): one for one in await stored(client, late)}
    assert kept["three"]["parent"] == kept["two"]["id"] == here["parent"]
    assert kept["four"]["parent"] == kept["three"]["id"]


async def test_a_later_export_moves_where_its_reader_left_it(client: Client, tmp_path: Path) -> None:
    nodes = {"a": (None, message("a", "user", "a", 1.0)), "b": ("a", message("b", "assistant", "b", 2.0))}
    more = {**nodes, "c": ("a", message("c", "assistant", "c", 3.0))}
    early = read_one(write(tmp_path / "f", [conversation(nodes, current_node="b")]), "c")
    await sent(client, early)
    assert "current_node" not in (await client.get_conversation(early.id))["metadata"]
    await client.update_conversation(early.id, metadata=early.metadata | {"mine": 1})
    late = read_one(write(tmp_path / "g", [conversation(more, current_node="b")]), "c")
    await sent(client, late)
    metadata = (await client.get_conversation(early.id))["metadata"]
    assert metadata == early.metadata | {
        "mine": 1,
        "current_node": early.messages[1].id,
        "newest_imported": late.messages[2].id,
    }
    last = {**more, "d": ("c", message("d", "user", "d", 4.0))}
    await sent(client, read_one(write(tmp_path / "h", [conversation(last, current_node="d")]), "c"))
    assert (await client.get_conversation(early.id))["metadata"] == early.metadata | {"mine": 1}


async def test_what_says_something_else_under_its_id_stays_and_is_counted(client: Client, tmp_path: Path) -> None:
    told = chatgpt("c", ["one", "two", "three"])
    await sent(client, read_one(write(tmp_path / "f", [told]), "c"))
    told["mapping"]["n1"]["message"]["metadata"] = {"changed": True}
    changed = read_one(write(tmp_path / "g", [told]), "c")
    again = await sent(client, changed)
    assert counts(again) == (False, 0, 2, 1)
    reason = STANDS.format(changed.messages[1].id, "its metadata are others")
    assert again.refusals == [("n1", reason)]
    assert all("metadata" not in one["metadata"]["imported"] for one in await stored(client, changed))


async def test_two_users_import_the_same_file(client: Client, server: HouseServer) -> None:
    mine = read_one(BRANCHES, "c-branch")
    theirs = read_one(BRANCHES, "c-branch", identity=Identity("acme", "bob"))
    async with server.client(OTHER) as other:
        assert counts(await sent(client, mine)) == counts(await sent(other, theirs)) == (True, 7, 0, 0)


# --- our own form ----------------------------------------------------------------------------------------------------


async def test_our_own_form_comes_back_equal_with_usage_and_error(client: Client, tmp_path: Path) -> None:
    built = read_one(lines(tmp_path, HEAD, *MESSAGES), CONVERSATION)
    assert counts(await sent(client, built)) == (True, 2, 0, 0)
    kept = await stored(client, built)
    for one, told in zip(kept, MESSAGES, strict=True):
        wanted = {name: value for name, value in told.items() if name not in {"type", "tokens", "created_at"}}
        found = {name: value for name, value in one.items() if name not in {"tokens", "created_at"}}
        assert json.dumps(found, sort_keys=True) == json.dumps(wanted, sort_keys=True)
    assert kept[1]["tokens"] == {"count": 3}
    head = await client.get_conversation(CONVERSATION)
    assert (head["title"], head["metadata"], head["retention_days"]) == ("Rivers", HEAD["metadata"], 30)


async def test_our_own_form_imported_again_adds_nothing(client: Client, tmp_path: Path) -> None:
    built = read_one(lines(tmp_path, HEAD, *MESSAGES), CONVERSATION)
    await sent(client, built)
    before = await stored(client, built)
    assert counts(await sent(client, built)) == (False, 0, 2, 0)
    assert await stored(client, built) == before


async def test_no_question_asks_again_for_an_answer(client: Client, house: House, tmp_path: Path) -> None:
    await sent(client, read_one(lines(tmp_path, HEAD, *MESSAGES), CONVERSATION))
    assert house.responder.requests == []


async def test_ids_that_are_another_users_are_refused_and_new_ones_are_a_way_out(
    client: Client, server: HouseServer, tmp_path: Path
) -> None:
    path = lines(tmp_path, HEAD, *MESSAGES)
    await sent(client, read_one(path, CONVERSATION))
    async with server.client(OTHER) as other:
        with pytest.raises(RefusedError, match=r"another user's here.*--new-ids"):
            await sent(other, read_one(path, CONVERSATION))
        fresh = read_one(path, CONVERSATION, salt="s")
        assert counts(await sent(other, fresh)) == (True, 2, 0, 0)
        assert [one["usage"] for one in await stored(other, fresh) if "usage" in one] == [{"output_tokens": 3}]


async def test_a_file_that_stayed_elsewhere_is_told_and_what_is_known_of_it_is_kept(
    client: Client, tmp_path: Path
) -> None:
    blob = {"type": "blob", "media_type": "image/png", "bytes": 12, "sha256": "ab" * 32, "ref": f"{'ab' * 32}.12"}
    told = MESSAGES[0] | {"parts": [{"type": "text", "text": "see"}, blob]}
    for number in range(2):
        built = read_one(lines(tmp_path, HEAD, told), CONVERSATION)
        assert counts(await sent(client, built)) == (number == 0, 1 - number, number, 0)
        assert built.notes["files_missing"] == 1
    (kept,) = await stored(client, built)
    assert kept["parts"] == [
        {"type": "text", "text": "see"},
        {"type": "data", "kind": "blob", "value": blob},
    ]


# --- several ---------------------------------------------------------------------------------------------------------


async def run(client: Client, path: Path, **options: Any) -> ImportReport:
    catalog = listed(path)
    report = ImportReport.of(catalog)
    settings = ImportSettings(identity=Identity("acme", "ann"), now_ms=START_MS, **options)
    await run_import(client, catalog, report, settings)
    return report


async def test_one_conversation_that_fails_midway_is_told_and_a_second_import_completes_it(
    client: Client, house: House, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = write(tmp_path / "f", [chatgpt(name, ["x", f"{name} two", "three"]) for name in ("a", "b", "c")])
    put = house.warm.put_message

    def refuse(tenant: str, one: Any) -> Any:
        if b"b two" in bytes(one.message.parts[0]["text"]):
            raise ValueError("the store has a fault of its own")
        return put(tenant, one)

    with monkeypatch.context() as patch:
        patch.setattr("tests.support.served_house.HouseServer._carry_out", _carry_out_faults)
        patch.setattr(house.warm, "put_message", refuse)
        report = await run(client, path, concurrency=1)
    assert [row.entry.source for row in report.imported] == ["a", "c"]
    assert [(row.entry.source, row.sent.added) for row in report.incomplete] == [("b", 1)]
    assert str(report.incomplete[0].reason).startswith("internal: ")
    assert not report.is_whole
    again = await run(client, path, concurrency=1)
    assert [(row.entry.source, row.sent.added, row.sent.present) for row in again.imported] == [("b", 2, 1)]
    assert len(again.already_there) == 2
    assert again.is_whole


def _carry_out_faults(server: HouseServer, device: Device, text: str) -> None:
    """As the server does, but an `internal` is an answer as any."""
    server.requests.append((0.0, device.connection, json.loads(text)))
    server._put(device.connection, json.loads(server._invoke(message_event(device, text))["body"]))


async def test_several_go_at_once_and_each_arrives_whole(client: Client, server: HouseServer, tmp_path: Path) -> None:
    path = write(tmp_path / "f", [chatgpt(f"c{number}", ["a", "b", "c"]) for number in range(12)])
    report = await run(client, path, concurrency=5)
    assert (len(report.imported), sum(row.sent.added for row in report.rows)) == (12, 36)
    ids = [request["conversation"] for request in server.asked("message.create")]
    assert any(one != other for one, other in pairwise(ids))


async def test_the_oldest_activity_is_sent_first(client: Client, server: HouseServer, tmp_path: Path) -> None:
    chats = [chatgpt(name, ["x"], created_s=at_s) for name, at_s in (("new", 3e8), ("old", 1e8), ("middle", 2e8))]
    await run(client, write(tmp_path / "f", chats), concurrency=1)
    assert [request["title"] for request in server.asked("conversation.create")] == ["old", "middle", "new"]


async def test_a_conversation_in_two_files_is_imported_from_one_after_the_other(client: Client, tmp_path: Path) -> None:
    write(tmp_path / "a", [chatgpt("c", ["one", "two"])])
    write(tmp_path / "b", [chatgpt("c", ["one", "two", "three"])])
    report = await run(client, tmp_path, concurrency=4)
    assert [(row.sent.added, row.sent.present) for row in report.imported] == [(2, 0), (1, 2)]


async def test_without_the_scope_the_import_ends_and_says_how_far_it_came(server: HouseServer, tmp_path: Path) -> None:
    path = write(tmp_path / "f", [chatgpt(name, ["x", "y"]) for name in ("a", "b")])
    catalog = listed(path)
    report = ImportReport.of(catalog)
    settings = ImportSettings(identity=Identity("acme", "ann"), now_ms=START_MS, concurrency=1)
    async with server.client(LAPTOP) as reader:
        with pytest.raises(ExceptionGroup) as raised:
            await run_import(reader, catalog, report, settings)
    assert raised.group_contains(UnauthorizedError)
    assert [(row.entry.source, row.sent.added) for row in report.incomplete] == [("a", 0)]
    assert report.not_reached == 1
    assert not report.is_whole


# --- imported again, changed at its source ---------------------------------------------------------------------------

STANDS = "stands here already as {} and says something else: {}. It stays as it is here"


@pytest.mark.parametrize(
    ("number", "change", "words"),
    [
        (
            0,
            {"parts": [{"type": "text", "text": "edited"}]},
            f'its content is another (here "{text_of(MESSAGES[0]["parts"])}", in the export "edited")',
        ),
        (0, {"role": "system"}, "its author is another"),
        (0, {"metadata": {}}, "its metadata are others"),
        (
            1,
            {"parts": [{"type": "data", "kind": "k", "value": 1}]},
            'its content is another (here "the Nile", in the export "")',
        ),
        (1, {"usage": {"output_tokens": 4}}, "its usage is another"),
        (
            1,
            {"usage": None, "error": None, "status": "complete"},
            "it ended otherwise, its usage is another, its error is another",
        ),
        (1, {"parent": None}, "it follows another message"),
    ],
)
async def test_what_was_changed_under_its_id_is_refused_and_told_and_nothing_of_it_is_there(
    client: Client, tmp_path: Path, number: int, change: dict[str, Any], words: str
) -> None:
    path = lines(tmp_path, HEAD, *MESSAGES)
    await run(client, path)
    before = await client.history(CONVERSATION, leaf="all")
    changed = [MESSAGES[0], MESSAGES[1]]
    changed[number] = changed[number] | change
    more = MESSAGES[0] | {"id": NEW, "parent": None, "parts": [{"type": "text", "text": "another branch"}]}
    report = await run(client, lines(tmp_path, HEAD, *changed, more))
    (row,) = report.imported
    assert (row.sent.added, row.sent.present, row.sent.refused) == (1, 1, 1)
    ((source, reason),) = row.sent.refusals
    assert source == MESSAGES[number]["id"]
    assert reason == STANDS.format(source, words)
    assert not report.is_whole
    kept = {one["id"]: one for one in await client.history(CONVERSATION, leaf="all")}
    assert [kept[one["id"]] for one in before] == before
    assert kept.keys() == {one["id"] for one in before} | {NEW}
    told = json.loads(report.to_json())
    assert told["messages"] == {"added": 1, "already_there": 1, "refused": 1}
    assert told["imported"][0]["refused"] == [{"message": source, "reason": reason}]


async def test_a_new_branch_at_the_source_is_added_and_nothing_else_is_told(client: Client, tmp_path: Path) -> None:
    await run(client, lines(tmp_path, HEAD, *MESSAGES))
    more = MESSAGES[0] | {"id": NEW, "parent": MESSAGES[0]["id"], "parts": [], "role": "assistant"}
    report = await run(client, lines(tmp_path, HEAD, *MESSAGES, more))
    assert [(row.sent.added, row.sent.present, row.sent.refused) for row in report.imported] == [(1, 2, 0)]
    assert report.is_whole
    assert report.notes == {}
    assert len(await client.history(CONVERSATION, leaf="all")) == 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"title": "Lakes"}, 'its title here is "Rivers", in the export "Lakes"'),
        ({"metadata": {"mine": 2}}, "its metadata are others"),
        ({"retention_days": 31}, "its retention days here is 30, in the export 31"),
    ],
)
async def test_another_title_or_metadata_at_the_source_is_told_and_changes_nothing(
    client: Client, tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    await run(client, lines(tmp_path, HEAD, *MESSAGES))
    before = await client.get_conversation(CONVERSATION)
    report = await run(client, lines(tmp_path, HEAD | change, *MESSAGES))
    assert report.notes == {"heads_kept": 1}
    (row,) = report.already_there
    assert row.sent.kept == row.to_json()["kept"] == f"{CONVERSATION} stays as it is here: {words}"
    assert await client.get_conversation(CONVERSATION) == before


async def test_a_file_that_changes_while_it_is_imported_leaves_what_is_there_and_says_so(
    client: Client, tmp_path: Path
) -> None:
    path = write(tmp_path / "f", [chatgpt("c", ["one", "two"])])
    catalog = listed(path)
    report = ImportReport.of(catalog)
    built = build(catalog.entries[0].read(), Identity("acme", "ann"), now_ms=START_MS)
    path.write_text("gone")
    so_far = Sent()
    with pytest.raises(RefusedError, match="is not JSON, or cut off"):
        await send(client, built, so_far)
    assert counts(so_far) == (True, 0, 0, 0)
    assert report.found == 1
