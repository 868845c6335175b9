"""Reading page by page comes to an end, whatever a server answers."""

from __future__ import annotations

from typing import Any

import pytest

from threadkeep_client import Connection, Viewer
from threadkeep_client.errors import UnavailableError
from threadkeep_client.reading import read_parts, read_path


class Repeating(Connection):
    """A connection to a server that has one reply."""

    def __init__(self, **reply: Any) -> None:
        super().__init__("ws://127.0.0.1:1", "t")
        self._reply = reply

    async def request(self, action: str, /, *, deadline_s: float | None = None, **fields: Any) -> dict[str, Any]:  # noqa: ARG002 -- whatever is asked
        return {"type": f"{action}.ok", **self._reply}


async def test_a_page_of_messages_that_leads_to_itself_is_an_error(conversation: str) -> None:
    connection = Repeating(messages=[], cursor="here")
    with pytest.raises(UnavailableError, match="leads to itself"):
        [message async for message in read_path(connection, conversation, None)]


async def test_a_page_of_a_message_that_leads_to_itself_is_an_error(conversation: str) -> None:
    connection = Repeating(epoch=1, at=0, offset=0, ops=[], more=True)
    with pytest.raises(UnavailableError, match="do not fit together"):
        await read_parts(connection, conversation, "m")


async def test_live_streams_that_name_each_other_for_parents_lead_nowhere(conversation: str) -> None:
    viewer = Viewer(Repeating(), conversation)
    live = [{"stream": "a", "parent": "b"}, {"stream": "b", "parent": "a"}]
    viewer.receive({"type": "conversation.subscribe.ok", "leaf": "a", "live": live})
