"""Stopping answers, in whichever region they are streamed (protocol, section 3.3)."""

from __future__ import annotations

from typing import cast

from threadkeep_client.errors import ConnectionFailedError, UnavailableError, WireError
from threadkeep_client.place import Place
from threadkeep_client.regions import Regions
from threadkeep_client.wire import Frame, Message
from threadkeep_client.writing import ProducerSettings


async def cancel(regions: Regions, conversation: str, stream: str | None) -> list[Message]:
    """Stop one answer, or all that are live; the messages that became of them, as far as they were told.

    Raises:
        WireError: It was refused; `UnavailableError` also where a region that streams one cannot be reached. All others
            are stopped by then.
    """
    if stream is not None:
        return await _stop_one(regions, conversation, stream)
    reply = await regions.home.request("stream.cancel", conversation=conversation)
    stopped = _messages(reply)
    failed: WireError | None = None
    for told in reply.get("elsewhere") or ():
        try:
            async with regions.connected(told["endpoint"]) as connection:
                stopped += _messages(
                    await connection.request("stream.cancel", conversation=conversation, stream=told["stream"])
                )
        except ConnectionFailedError as error:
            failed = UnavailableError(f"the region of a stream is away: {error}", reason="away", retryable=True)
        except WireError as error:
            failed = error
    if failed is not None:
        raise failed
    return stopped


async def _stop_one(regions: Regions, conversation: str, stream: str) -> list[Message]:
    place = Place(regions, settings=ProducerSettings())
    try:
        return _messages(
            await place.request("stream.cancel", deadline_s=None, conversation=conversation, stream=stream)
        )
    finally:
        await place.return_home()


def _messages(reply: Frame) -> list[Message]:
    return cast("list[Message]", reply.get("messages") or [])
