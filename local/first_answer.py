"""Whether a deployment answers: the first handshake and ping, which wait for the functions' cold start."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from threadkeep_client import Client, ConnectionSettings

PATIENCE_S: Final = 60.0
"""A cold start takes one to three seconds, and many times that on a machine with much else to do."""


async def first_answers(urls: Iterable[str], token: str) -> list[str]:
    """What each of the regions answers, asked at one time. Raises as `first_answer`."""
    return await asyncio.gather(*(first_answer(url, token) for url in urls))


async def first_answer(url: str, token: str) -> str:
    """Connect and ping.

    Returns:
        The server's clock.

    Raises:
        ThreadkeepError: it does not answer, or with an error.
    """
    async with Client(url, token, settings=ConnectionSettings(open_s=PATIENCE_S, deadline_s=PATIENCE_S)) as client:
        return await client.ping()
