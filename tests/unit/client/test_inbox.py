from __future__ import annotations

import asyncio

from threadkeep_client.inbox import Inbox


async def test_items_come_in_order_and_time_ends_the_waiting() -> None:
    inbox: Inbox[int] = Inbox(4)
    for item in range(3):
        inbox.put(item)
    clock = asyncio.get_running_loop().time
    assert [await inbox.get(None) for _ in range(3)] == [0, 1, 2]
    begin = clock()
    assert await inbox.get(begin + 5) is None
    assert clock() - begin >= 5
    waiting = asyncio.create_task(inbox.get(None))
    await asyncio.sleep(1)
    inbox.put(7)
    assert await waiting == 7


async def test_one_too_many_drops_all_and_says_so_once() -> None:
    inbox: Inbox[int] = Inbox(2)
    inbox.put(1)
    inbox.put(2)
    assert not inbox.overflown()
    inbox.put(3)
    assert inbox.overflown()
    assert not inbox.overflown()
    assert len(inbox) == 1
    assert await inbox.get(None) == 3
