"""The README's examples, run as they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.exporting import run_exports
from tests.support.house import PHONE, WORKER, House, house
from tests.support.served_house import HouseServer, in_virtual_time
from tests.unit.client.fake_server import FakeServer

__all__ = ["house"]

README = Path(__file__).parents[3] / "clients" / "python" / "README.md"


def examples() -> Iterator[dict[str, Any]]:
    """What each defines, in order."""
    for example in re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL):
        names: dict[str, Any] = {}
        exec(compile(example, str(README), "exec"), names)  # noqa: S102 -- our own README
        yield names


async def test_the_example_works(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    names, _ = examples()
    await names["main"](server.url, "user", "worker")
    assert capsys.readouterr().out == (
        "The Nile, says one. \n(complete)\nuser: Which is the longest?\nassistant: The Nile, says one. \n"
    )


@in_virtual_time
async def test_what_else_there_is_works_with_the_service_itself(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    _, names = examples()
    conversation = house.conversation(title="Rivers")
    house.message(conversation, text="Which is the longest?")
    made: list[str] = []
    async with HouseServer(house) as server, server.client(PHONE) as user, server.client(WORKER) as worker:
        server.spawn_later(3, lambda: made.extend(run_exports(house)))
        await names["what_else"](user, worker, conversation)
    assert made == ["done"]
    said = capsys.readouterr().out.splitlines()
    assert [line for line in said if not line.startswith("{")] == [  # metrics are printed too
        "conversations: ['Rivers']",
        "for the model: ['Which is the longest?', 'And the widest?']",
        "stopped: 0",
        "export: done 2 messages",
        "erasure: running ['hot', 'objects', 'table']",
    ]
