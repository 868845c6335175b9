"""The README's example, run as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.unit.client.fake_server import FakeServer

README = Path(__file__).parents[3] / "clients" / "python" / "README.md"


async def test_the_example_works(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(example, str(README), "exec"), names)  # noqa: S102 -- our own README
    await names["main"](server.url, "user", "worker")
    assert capsys.readouterr().out == (
        "The Nile, says one. \n(complete)\nuser: Which is the longest?\nassistant: The Nile, says one. \n"
    )
