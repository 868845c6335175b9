"""Reading page by page comes to an end, whatever a server answers."""

from __future__ import annotations

import asyncio
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


class Late(Repeating):
    """A connection to a region to which a message is on its way; it comes when it was asked for so many times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.asked: list[dict[str, Any]] = []
        self._times = times

    async def request(self, action: str, /, *, deadline_s: float | None = None, **fields: Any) -> dict[str, Any]:  # noqa: ARG002 -- as above
        self.asked.append(fields)
        if len(self.asked) <= self._times:
            page = {"messages": [{"id": "c"}] if len(self.asked) == 1 else [], "cursor": "c", "incomplete": True}
        else:
            page = {"messages": [{"id": "b"}, {"id": "a"}], "cursor": None}
        return {"type": f"{action}.ok", **page}


async def test_what_has_not_come_to_this_region_yet_is_waited_for(conversation: str) -> None:
    connection = Late(times=3)
    begun_at = asyncio.get_running_loop().time()
    found = [message["id"] async for message in read_path(connection, conversation, None)]
    assert found == ["c", "b", "a"]
    assert [fields.get("cursor") for fields in connection.asked] == [None, "c", "c", "c"]
    assert asyncio.get_running_loop().time() > begun_at


async def test_what_does_not_come_is_an_error_that_may_pass(conversation: str) -> None:
    connection = Late(times=1_000)
    with pytest.raises(UnavailableError, match="on their way") as caught:
        [message async for message in read_path(connection, conversation, None)]
    assert caught.value.retryable
    assert len(connection.asked) < 10


async def test_a_page_of_a_message_that_leads_to_itself_is_an_error(conversation: str) -> None:
    connection = Repeating(epoch=1, at=0, offset=0, ops=[], more=True)
    with pytest.raises(UnavailableError, match="do not fit together"):
        await read_parts(connection, conversation, "m")


async def test_live_streams_that_name_each_other_for_parents_lead_nowhere(conversation: str) -> None:
    viewer = Viewer(Repeating(), conversation)
    live = [{"stream": "a", "parent": "b"}, {"stream": "b", "parent": "a"}]
    viewer.receive({"type": "conversation.subscribe.ok", "leaf": "a", "live": live})
