"""`threadkeep delete`: the end of a conversation, and its receipt until nothing is left of it."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Final

from threadkeep_client.backoff import Backoff
from threadkeep_client.cli.errors import naming_wrong_ids
from threadkeep_client.cli.target import Target
from threadkeep_client.cli.terminal import printable
from threadkeep_client.keeping import Erasure

_POLLS: Final = Backoff(base_s=1.0, ceiling_s=15.0, floor_s=1.0)
_ENDED_BY: Final = {
    "owner": "deleted by its owner",
    "produce": "deleted by a server of its tenant, not by its owner",
    "retention": "its retention had run out",
}


async def delete(target: Target, conversation: str, *, as_json: bool) -> int:
    """Delete a conversation, and tell what every store has removed, whenever that changes, until all is done.

    Raises:
        CommandError: It is no id.
        ThreadkeepError: As any request: `not_found` where it is not the token's user's.
    """
    async with target.client("chat") as client:
        with naming_wrong_ids(conversation):
            erasure = await client.delete_conversation(conversation)
        if erasure["state"] != "done":
            print(
                "deleted: nobody can read it any more. Every store is gone through at once and again after half an "
                "hour, if not set otherwise (where the first pass begins only then, it is the last). That goes on "
                "without this command; called again, it tells the rest.",
                file=sys.stderr,
            )
        told: list[str] = []
        for pause_s in _POLLS.pauses():
            told = _tell(erasure, told, as_json=as_json)
            if erasure["state"] == "done":
                return 0
            await asyncio.sleep(pause_s)
            erasure = await client.get_erasure(erasure["id"])
    raise AssertionError("pauses never end")


def _tell(erasure: Erasure, told: list[str], *, as_json: bool) -> list[str]:
    """Print what has not been told yet; all that has been by then."""
    lines = [json.dumps(erasure, ensure_ascii=False)] if as_json else _lines(erasure)
    for line in lines:
        if line not in told:
            print(line, flush=True)
    return lines


def _lines(erasure: Erasure) -> list[str]:
    lines = [
        f"{line['store']}  {line.get('region', '')}  pass {line['passes']}: {line['removed']:,} of {line['found']:,} "
        f"removed, {line['state']}"
        for line in erasure["lines"]
    ]
    if erasure["state"] == "done":
        reason = _ENDED_BY.get(erasure["reason"], erasure["reason"])
        lines.append(f"done: no store holds anything of it ({reason})")
        lines += [f"stays until {one['until']}: {one['what']}" for one in erasure["stays"]]
    return [printable(line) for line in lines]
