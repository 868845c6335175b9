"""`threadkeep delete`, against a server in a thread of its own."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tests.unit.client.fake_server import FakeServer
from tests.unit.client.test_cli import line_on_stderr, nowhere, served
from threadkeep_client.backoff import Backoff
from threadkeep_client.cli import deleting, main

__all__ = ["nowhere", "served"]

C: Final = "01900000-0000-7000-8000-000000000001"
TIME: Final = "2026-11-29T12:00:00.000Z"


class FakeErasure:
    """Answers `conversation.delete` and `erasure.get`: a first pass, the same again, the second."""

    def __init__(self, server: FakeServer) -> None:
        self.asked: list[Any] = []
        self._passes = iter([0, 1, 1, 2])
        server.service.conversations[C] = {"id": C}
        server.service._conversation_delete = self.answer  # type: ignore[attr-defined]
        server.service._erasure_get = self.answer  # type: ignore[attr-defined]

    async def answer(self, request: Any) -> Any:
        self.asked.append((request["action"], request.get("conversation") or request.get("erasure")))
        passes = next(self._passes)
        state = "done" if passes == 2 else "running"
        line = {"region": "eu-central-1", "store": "table", "found": 3 * passes, "removed": 3 * passes}
        line |= {"passes": passes, "state": state, "updated_at": TIME}
        told = {"id": C, "conversation": C, "reason": "owner", "state": state, "requested_at": TIME, "lines": [line]}
        return {"erasure": told | {"stays": [{"what": "backups", "until": TIME}]}}


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deleting, "_POLLS", Backoff(base_s=0.01, ceiling_s=0.01, floor_s=0.0))


def test_the_receipt_is_told_as_it_grows_until_nothing_is_left(
    served: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    fake = FakeErasure(served)
    assert main(["delete", C, "--url", served.url, "--token", "t"]) == 0
    assert fake.asked == [("conversation.delete", C)] + [("erasure.get", C)] * 3
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "table  eu-central-1  pass 0: 0 of 0 removed, running",
        "table  eu-central-1  pass 1: 3 of 3 removed, running",
        "table  eu-central-1  pass 2: 6 of 6 removed, done",
        "done: no store holds anything of it (deleted by its owner)",
        f"stays until {TIME}: backups",
    ]
    assert err.startswith("deleted: nobody can read it any more.")
    assert "at once and again after half an hour" in err
    assert "where the first pass begins only then, it is the last" in err, "a line may be done at pass 1"


def test_programs_are_given_the_receipt_whenever_it_has_changed(
    served: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    FakeErasure(served)
    assert main(["delete", C, "--json", "--url", served.url, "--token", "t"]) == 0
    receipts = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["state"], one["lines"][0]["passes"]) for one in receipts] == [
        ("running", 0),
        ("running", 1),
        ("done", 2),
    ]


def test_what_is_not_there_or_no_id_is_one_line(served: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--url", served.url, "--token", "t"]
    assert main(["delete", C, *where]) == 2
    assert line_on_stderr(capsys) == "not_found: a sentence (conversation.delete)"
    served.refuse("conversation.delete", "bad_request")
    assert main(["delete", "mine", *where]) == 2
    assert line_on_stderr(capsys) == "mine is no id: `threadkeep history` lists those of conversations"


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("owner", "deleted by its owner"),
        ("produce", "deleted by a server of its tenant, not by its owner"),
        ("retention", "its retention had run out"),
        ("a reason of a later version", "a reason of a later version"),
    ],
)
def test_the_receipt_says_who_ended_it(reason: str, said: str) -> None:
    receipt: Any = {"reason": reason, "state": "done", "lines": [], "stays": []}
    assert deleting._lines(receipt) == [f"done: no store holds anything of it ({said})"]
