"""A producer's program: streams an answer by the Python client and tells each piece once it is acknowledged.

    python -m tests.support.killing.producing URL CONVERSATION QUESTION ANSWER < token

Its output is JSON, a line each, written at once: first the epoch, then the pieces in order. It has far more to say than
anybody waits for: it is there to be killed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Final

from threadkeep_client.client import Client

PIECES: Final = 10_000


def piece(number: int) -> str:
    """What it says: no piece like another, letters of one to four bytes."""
    return f"[dead {number}]" + "aé€😀" * (number * 7 % 23)


async def produce(url: str, token: str, conversation: str, question: str, answer: str) -> None:
    """Say piece by piece, each acknowledged before the next."""
    async with (
        Client(url, token) as worker,
        worker.produce(conversation, parent=question, message=answer) as writing,
    ):
        _tell(writing.epoch)
        for number in range(PIECES):
            await writing.text(piece(number))
            await writing.flush()
            _tell(piece(number))


def _tell(said: int | str) -> None:
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _url, _conversation, _question, _answer = sys.argv[1:]
    asyncio.run(produce(_url, sys.stdin.read(), _conversation, _question, _answer))
