"""An imported conversation opens where its reader had left it, until it goes on here."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tests.support.exports import DATA, expected
from tests.unit.client.fake_server import FakeServer
from tests.unit.client.importing.test_command import token
from tests.unit.client.test_cli import nowhere, served
from threadkeep_client.cli import main
from threadkeep_client.ids import new_id
from threadkeep_client.wire import text_of

__all__ = ["nowhere", "served"]

WANTED: Final = expected("import-branches")["c-branch"]["active_path"]
WANTED_ANSWERS: Final = 2


def where(server: FakeServer) -> list[str]:
    return ["--url", server.url, "--token", token()]


def imported(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> str:
    """A conversation whose newest message is on another branch than the one that its reader left open."""
    assert main(["import", str(DATA / "import-branches.json"), *where(server)]) == 0
    capsys.readouterr()
    (conversation,) = server.service.conversations
    return conversation


def shown(server: FakeServer, capsys: pytest.CaptureFixture[str], conversation: str, *options: str) -> list[Any]:
    assert main(["history", conversation, "--json", *options, *where(server)]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def texts(messages: list[Any]) -> list[str]:
    return [text_of(one["parts"]) for one in messages]


def test_history_shows_the_branch_that_was_left_open(served: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    conversation = imported(served, capsys)
    assert texts(shown(served, capsys, conversation)) == WANTED
    newest = served.service.leaf(conversation)
    assert newest is not None
    assert texts(shown(served, capsys, conversation, "--leaf", newest)) != WANTED


def test_of_all_branches_each_message_says_what_it_follows(
    served: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    conversation = imported(served, capsys)
    assert main(["history", conversation, "--leaf", "all", *where(served)]) == 0
    lines = capsys.readouterr().out.splitlines()
    for kept in served.service.messages.values():
        one = kept.message
        (headline,) = [line for line in lines if f"  {one['id']}  " in line]
        assert headline.endswith("begins anew" if one["parent"] is None else f"follows {one['parent']}")


def test_chat_goes_on_from_there_and_from_then_on_that_is_the_present_leaf(
    served: FakeServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = imported(served, capsys)
    monkeypatch.setattr("sys.stdin", iter(["go on\n", "and on\n"]))
    assert main(["chat", conversation, *where(served)]) == 0
    assert capsys.readouterr().out.count("\nassistant> ") == WANTED_ANSWERS
    assert texts(shown(served, capsys, conversation)) == [*WANTED, "go on", "and on"]
    asked = [request.get("fork", False) for request in served.sent("message.create")]
    assert asked[-2:] == [True, False], "the second is written at the present leaf"


def test_what_somebody_else_wrote_since_then_is_where_it_opens(
    served: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    conversation = imported(served, capsys)
    leaf = served.service.leaf(conversation)
    said = [{"type": "text", "text": "since then"}]
    served.service.put(new_id(after=leaf), conversation=conversation, parent=leaf, role="user", parts=said)
    assert texts(shown(served, capsys, conversation))[-1] == "since then"


def test_of_an_import_that_was_cut_off_before_it_the_newest_branch_opens(
    served: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    conversation = imported(served, capsys)
    metadata = served.service.conversations[conversation]["metadata"]
    served.service.conversations[conversation]["metadata"] = metadata | {"current_node": new_id()}
    assert texts(shown(served, capsys, conversation)) != WANTED
