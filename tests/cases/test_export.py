"""Cases A51, A59, A60 and A80, as far as they are about exports. Each is a fault that others have had."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cases.test_import import IMPORTER, bring
from tests.support.exporting import exported, lines_of
from tests.support.exports import DATA
from tests.support.house import PHONE, House, text_part
from tests.support.served_house import HouseServer, in_virtual_time

DAY_MS = 24 * 60 * 60_000
FORMS = pytest.mark.parametrize("form", ["jsonl", "chatgpt", "markdown"])


@FORMS
def test_a51_what_has_expired_is_in_no_export(house: House, form: str) -> None:
    """Expired items were served until the store's own clock took them away, days later."""
    house.message(house.conversation(retention_days=1), text="expired")
    house.clock.ms += DAY_MS + 60_000
    house.message(house.conversation(retention_days=1), text="kept")
    content = exported(house, form=form)
    assert b"kept" in content
    assert b"expired" not in content


def send(house: House, conversation: str, parts: Any) -> None:
    """Send as a client does that escapes what it should not."""
    said = {"action": "message.create", "conversation": conversation, "parent": None, "role": "user", "parts": parts}
    assert house.post(PHONE, json.dumps(said))["type"] == "message.create.ok"


@FORMS
def test_a59_a_chat_with_half_a_surrogate_is_exported(house: House, form: str) -> None:
    """A chat that held a lone surrogate could be neither opened nor exported."""
    send(house, house.conversation(title="b\udc00"), [text_part("a\ud83d")])
    content = exported(house, form=form).decode().replace("\\ufffd", "\ufffd")  # JSON may spell it so
    assert "a\ufffd" in content
    assert "b\ufffd" in content


@pytest.mark.parametrize("form", ["jsonl", "chatgpt"])
def test_a60_a_nul_is_the_same_in_an_export(house: House, form: str) -> None:
    """U+0000 was stored here and lost there: what is read back as JSON has it still."""
    send(house, house.conversation(), [text_part("a\0b")])
    assert "a\\u0000b" in exported(house, form=form).decode()


@in_virtual_time
async def test_a80_content_of_every_shape_is_exported_as_text(house: House, tmp_path: Path) -> None:
    """An export of chats with pictures, voices and empty turns failed, or printed lists as a program has them."""
    async with HouseServer(house) as server, server.client(IMPORTER) as client:
        await bring(client, DATA / "import-multipart-mixed.json")
        text = exported(house, PHONE, form="markdown").decode()
        texts = [
            part["text"]
            for line in lines_of(exported(house, PHONE))
            for part in line.get("parts", [])
            if part["type"] == "text"
        ]
        assert texts
        assert [one for one in texts if one not in text] == []
        assert "['" not in text
        assert "None" not in text
        (tmp_path / "again.json").write_bytes(exported(house, PHONE, form="chatgpt"))
        assert (await bring(client, tmp_path / "again.json")).is_whole
