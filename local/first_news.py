"""Whether regions hear of each other: the first message of each, told in the others.

Until then no announcer and no herald has run. Were the first of many messages what starts them, as many of them as may
run at one time would start together, which can take a small machine longer than they have, again and again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from local.first_answer import PATIENCE_S
from threadkeep_client import Client, ConnectionSettings

NEWS_S: Final = 180.0
"""How long to wait for it: a queue gives a message out again half a minute later, should a start take too long."""


async def first_news(urls: Sequence[str], token: str) -> None:
    """Write a message in each region and wait until all others have told it.

    Raises:
        ThreadkeepError: a region does not answer, or with an error (in a group).
    """
    async with asyncio.TaskGroup() as tasks:
        for url in urls:
            for other in urls:
                if other != url:
                    tasks.create_task(_told(url, other, token))


async def _told(url: str, other: str, token: str) -> None:
    settings = ConnectionSettings(open_s=PATIENCE_S, deadline_s=PATIENCE_S)
    async with Client(url, token, settings=settings) as here, Client(other, token, settings=settings) as there:
        conversation = (await here.create_conversation(title="First news"))["id"]
        async with there.watch(conversation) as viewer:
            await here.create_message(conversation, "Hello.", parent=None)
            async for update in viewer:
                if update.kind == "created":
                    return
