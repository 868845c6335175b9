"""There and back: what was imported, exported and imported again is the same conversation, in either form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.conversations import ROUNDTRIP_VALUES
from tests.support.exporting import exported, lines_of
from tests.support.exports import DATA, listed
from tests.support.house import PHONE, START_MS, WORKER, Device, Frame, House, house, serving, text_part
from tests.support.served_house import HouseServer, in_virtual_time
from threadkeep_client.importing.building import Identity
from threadkeep_client.importing.report import ImportReport
from threadkeep_client.importing.running import ImportSettings, run_import

__all__ = ["house"]

ANN: Final = Device(connection="ann=", user="ann", scope="chat produce")
BOB: Final = Device(connection="bob=", user="bob", scope="chat produce")
FILES: Final = [
    path
    for pattern in ("import-*.json", "claude-export-*.json")
    for path in sorted(DATA.glob(pattern))
    if not path.name.endswith(".expected.json")
]
HOUR_MS: Final = 60 * 60_000
"""Longer than any test takes: what the importer holds to lie in the past."""
FORMS = pytest.mark.parametrize("form", ["jsonl", "chatgpt"])


async def bring(server: HouseServer, device: Device, path: Path, *, new_ids: bool = False) -> ImportReport:
    """Import a file as that user."""
    catalog = listed(path)
    report = ImportReport.of(catalog)
    settings = ImportSettings(
        identity=Identity(device.tenant, device.user),
        now_ms=START_MS + HOUR_MS,
        salt="another" if new_ids else "",
        concurrency=1,
    )
    async with server.client(device) as client:
        await run_import(client, catalog, report, settings)
    return report


def awkward(house: House) -> str:
    """A conversation with all that a file of another form has no word for."""
    values = json.loads(ROUNDTRIP_VALUES.read_bytes())
    conversation = house.conversation(title="Awkward 🎨", metadata=values, retention_days=400)
    root = house.message(conversation, parts=[text_part("a\0b"), {"type": "data", "values": values}])
    house.message(conversation, root, parts=[text_part("x" * 20_000)], metadata=values)
    asked, reply = house.new_id(), house.new_id()
    house.message(conversation, root, message=asked, fork=True, reply=reply)
    place = house.stream(conversation, asked, message=reply)
    house.ok(WORKER, "stream.close", **place, status="complete")
    house.message(conversation, parts=[{"type": "blob", "ref": "https://example.com/x.png"}], fork=True)
    for status, said in (("failed", {"error": {"code": "overloaded"}}), ("stopped", {})):
        place = house.stream(conversation, root, model="model-1", fork=True)
        house.ok(WORKER, "stream.append", **place, ops=[["text", 0, "half an answer"]])
        end = place | {"offset": 1, "status": status, "usage": {"output_tokens": 7, "x": 1.50}} | said
        house.ok(WORKER, "stream.close", **end)
    tool = {"type": "tool_call", "call_id": "c1", "name": "find", "arguments": "{", "state": "complete"}
    call = house.message(conversation, root, role="assistant", parts=[tool], by=WORKER, fork=True)
    result = [{"type": "tool_result", "call_id": "c1", "output": "found"}]
    house.message(conversation, call, role="tool", parts=result, by=WORKER, fork=True)
    house.message(conversation, call, role="tool", parts=[text_part("as text")], by=WORKER, fork=True)
    return conversation


class Tree:
    """What a conversation says, whatever the ids."""

    OWN: Final = {"id", "conversation", "parent", "type"}

    def __init__(self, head: Frame, messages: list[Frame]) -> None:
        self._below: dict[str | None, list[Frame]] = {}
        for message in messages:
            self._below.setdefault(message["parent"], []).append(message)
        names = head["metadata"].keys() - {"current_node", "newest_imported"}
        metadata = {name: head["metadata"][name] for name in names}
        self.head = {"title": head.get("title"), "metadata": metadata, "created_at": head["created_at"]}
        self.head["retention_days"] = head.get("retention_days")

    def _said(self, message: Frame) -> Frame:
        """All but its place; of the answer that was asked for, whether it is below."""
        told = {name: message[name] for name in message.keys() - self.OWN}
        if "reply" in told:
            told["reply"] = told["reply"] in {below["id"] for below in self._below.get(message["id"], [])}
        return told

    def canonical(self, parent: str | None = None) -> list[str]:
        """The branches under a message, with all that each says."""
        return sorted(
            json.dumps([self._said(said), self.canonical(said["id"])], sort_keys=True)
            for said in self._below.get(parent, [])
        )


def trees(content: bytes) -> list[str]:
    """The conversations of a file of JSON Lines, whatever their order and ids."""
    found: list[tuple[Frame, list[Frame]]] = []
    for line in lines_of(content):
        if line["type"] == "conversation":
            found.append((line, []))
        else:
            found[-1][1].append(line)
    made = [Tree(head, messages) for head, messages in found]
    return sorted(json.dumps([tree.head, tree.canonical()], sort_keys=True) for tree in made)


@pytest.fixture
def elsewhere() -> House:
    """Another deployment, not served yet."""
    return House()


def test_there_is_something_to_import() -> None:
    assert {"import-branches.json", "claude-export-same-timestamps.json"} < {path.name for path in FILES}


@FORMS
@in_virtual_time
async def test_what_one_user_exports_another_imports_as_the_same_trees(house: House, tmp_path: Path, form: str) -> None:
    async with HouseServer(house) as server:
        for path in FILES:
            await bring(server, ANN, path)
        awkward(house)
        file = tmp_path / "export"
        file.write_bytes(exported(house, PHONE, form=form))
        report = await bring(server, BOB, file, new_ids=True)
        assert report.is_whole, report
        wanted, found = trees(exported(house, PHONE)), trees(exported(house, BOB))
        assert len(found) == len(wanted) > len(FILES)
        assert b'"reply":' in exported(house, BOB)
        assert len(house.responder.requests) == 1  # when it was asked
        assert found == wanted


@FORMS
@in_virtual_time
async def test_exported_imported_elsewhere_and_exported_again_it_is_equal(
    house: House, elsewhere: House, tmp_path: Path, form: str
) -> None:
    async with HouseServer(house) as server:
        for path in FILES:
            await bring(server, ANN, path)
        awkward(house)
        file = tmp_path / "export"
        file.write_bytes(exported(house, PHONE, form=form))
        wanted = comparable(exported(house, PHONE))
    with serving(elsewhere):
        async with HouseServer(elsewhere) as server:
            assert (await bring(server, ANN, file)).is_whole
            again = await bring(server, ANN, file)
            assert sum(row.sent.added for row in again.rows) == 0
            assert comparable(exported(elsewhere, PHONE)) == wanted
    assert any("reply" in line for line in wanted)
    assert elsewhere.responder.requests == []


@FORMS
@in_virtual_time
async def test_what_could_not_be_read_loses_nothing_else_on_the_way(house: House, tmp_path: Path, form: str) -> None:
    """A segment is lost in every region: the file says so, and whoever imports it is told, and has all the rest."""
    async with HouseServer(house) as server:
        conversation = house.conversation()
        above: str | None = None
        texts = [f"message {number}" for number in range(9)]
        for text in texts:
            above = house.message(conversation, above, text=text)
        lose(house, conversation, slice(3, 6))
        file = tmp_path / "export"
        file.write_bytes(exported(house, PHONE, form=form))
        report = await bring(server, BOB, file, new_ids=True)
        assert report.is_whole, report
        assert report.notes["damaged"] == 3
        came = [line["parts"][0]["text"] for line in lines_of(exported(house, BOB)) if line["type"] == "message"]
        assert sorted(came) == texts[:3] + texts[6:]


def lose(house: House, conversation: str, which: slice) -> None:
    """Archive some of the messages, and lose the segment."""
    key = house.key(conversation)
    stored = sorted(house.warm.messages[key].values(), key=lambda one: one.message.id)[which]
    manifest = house.cold.write(key, stored, now_ms=house.clock.ms)
    house.manifests.put(key, manifest)
    house.manifests.remove_messages(key, [one.message.id for one in stored])
    for bucket in house.cold.buckets.values():
        del bucket.objects[manifest.object_key]


def comparable(content: bytes) -> list[Any]:
    """All lines but for the time of the last activity, in the order of their ids; numbers as they were written."""
    lines = [json.loads(line, parse_float=str, parse_int=str) for line in content.splitlines()]
    for line in lines:
        line.pop("active_at", None)
    return sorted(lines, key=lambda line: (line.get("conversation", line["id"]), line["id"]))
