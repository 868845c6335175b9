from __future__ import annotations

from typing import Any

import pytest

from threadkeep_client.importing.building import Message
from threadkeep_client.importing.draft import Content, Node
from threadkeep_client.importing.meeting import differences

LONG = "a" * 200


@pytest.mark.parametrize(
    ("here", "told", "words"),
    [
        ("old", "new", '(here "old", in the export "new")'),
        ("x\ny", "", '(here "x y", in the export "")'),
        (LONG + "b", LONG + "c", f'(here "…{"a" * 15}b", in the export "…{"a" * 15}c")'),
        (LONG, LONG + LONG, f'(here "…{"a" * 15}", in the export "…{"a" * 60}…")'),
        ("b" + LONG, LONG, f'(here "b{"a" * 59}…", in the export "{"a" * 60}…")'),
    ],
)
def test_both_beginnings_are_quoted_or_what_stands_around_a_late_difference(here: str, told: str, words: str) -> None:
    stored: Any = {"parent": None, "role": "user", "status": "complete", "parts": [{"type": "text", "text": here}]}
    content = Content(role="user", parts=[{"type": "text", "text": told}])
    message = Message(id="m", parent=None, reply=None, node=Node(source="n", parent=None))
    assert differences(stored | {"metadata": {}}, message, content) == [f"its content is another {words}"]


def test_where_both_texts_are_equal_the_parts_themselves_are_quoted() -> None:
    stored: Any = {"parent": None, "role": "user", "status": "complete", "parts": [{"type": "data", "value": 1}]}
    content = Content(role="user", parts=[{"type": "data", "value": 2}])
    message = Message(id="m", parent=None, reply=None, node=Node(source="n", parent=None))
    (told,) = differences(stored | {"metadata": {}}, message, content)
    assert '"value": 1' in told
    assert '"value": 2' in told
