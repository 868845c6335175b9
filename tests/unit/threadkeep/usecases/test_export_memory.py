"""An export holds little of a conversation, however long it is."""

from __future__ import annotations

import tracemalloc
from bisect import bisect_left
from typing import Final

import msgspec
import pytest

from tests.support.conversations import message, text_parts
from tests.support.exporting import asked, run_exports, shown
from tests.support.house import START_MS, House
from threadkeep.domain.bounds import EXPORT_HELD_BYTES_MAX, EXPORT_PART_BYTES
from threadkeep.domain.json_values import encode
from threadkeep.domain.model import ConversationKey, StoredMessage
from threadkeep.ports import MessagePage
from threadkeep.stores.exports_memory import ExportFilesMemory
from threadkeep.stores.warm_memory import WarmMemory

MESSAGES: Final = 10_000
TEXT: Final = "0123456789abcdef" * 400
FILE_BYTES_MIN: Final = MESSAGES * len(TEXT)
PEAK_BYTES_MAX: Final = 12 * EXPORT_HELD_BYTES_MAX
"""What is held of messages, as JSON and as objects of half a dozen fields each, and two parts of a file."""
_STORED: Final = msgspec.json.Decoder(StoredMessage)


class LongWarm(WarmMemory):
    """A conversation of many messages, each made anew whenever it is read, as a real store does."""

    def fill(self, key: ConversationKey) -> None:
        """Let the conversation have them: one line, each the answer to the last."""
        self.key = key
        self.ids = sorted(message(key, now_ms=START_MS + number).id for number in range(MESSAGES))

    def read_messages(
        self,
        key: ConversationKey,
        *,
        before: str | None = None,
        after: str | None = None,
        limit: int,
        consistent: bool = True,  # noqa: ARG002 -- there are no replicas
    ) -> MessagePage:
        """See `WarmStore`."""
        assert key == self.key
        end = MESSAGES if before is None else bisect_left(self.ids, before)
        start = 0 if after is None else bisect_left(self.ids, after)
        found = range(end - 1, max(start, end - limit) - 1, -1)
        return MessagePage(tuple(self._message(number) for number in found), more=end - limit > start)

    def _message(self, number: int) -> StoredMessage:
        parent = self.ids[number - 1] if number else None
        made = message(self.key, text_parts(TEXT), id=self.ids[number], parent=parent)
        return _STORED.decode(encode(StoredMessage(made)))


class Forgetting(ExportFilesMemory):
    """Keeps nothing of its parts."""

    def add(self, tenant: str, export: str, upload: str, *, number: int, content: bytes) -> str:
        """See `ExportFiles`."""
        assert len(content) <= EXPORT_PART_BYTES
        return super().add(tenant, export, upload, number=number, content=b"")


@pytest.mark.parametrize("form", ["jsonl", "chatgpt", "markdown"])
def test_ten_thousand_messages_are_exported_in_the_memory_of_a_few(house: House, form: str) -> None:
    warm = LongWarm()
    house.warm = warm
    house.replace(warm=warm, export_files=Forgetting())
    conversation = house.conversation()
    warm.fill(house.key(conversation))
    export = asked(house, form=form, conversation=conversation)
    tracemalloc.start()
    try:
        assert run_exports(house) == ["done"]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    told = shown(house, export)
    assert told["messages"] == MESSAGES
    assert told["bytes"] > FILE_BYTES_MIN > PEAK_BYTES_MAX
    assert peak < PEAK_BYTES_MAX, f"{peak:,} bytes at the peak"
