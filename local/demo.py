"""The demo: real conversations through the deployed WebSocket API, every code point compared."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Sequence
from functools import partial
from typing import Final

from rich.console import Console
from rich.markup import escape

from local.attending import attended
from local.cloud import Cloud
from local.dialogue import Cut, Dialogue, Party, Tally
from local.errors import LocalCloudError
from local.keys import SigningKey
from local.progress import Bars
from local.state import CloudState
from local.tools import ROOT
from threadkeep_client import Client, ConnectionSettings
from threadkeep_client.cli.chats import Chat, read_chats
from threadkeep_client.cli.errors import CommandError

CHATS_FILE: Final = ROOT / "tests" / "data" / "chats-demo.jsonl"
_AT_ONCE: Final = 3
"""Conversations at one time: the emulator runs the calls of one function one after the other."""
_DEMO_S: Final = 240.0
_SETTINGS: Final = ConnectionSettings(open_s=30.0)
"""Patient, since a busy machine may start another process for a handshake."""
_SHOWN_MAX: Final = 20
_CUTS: Final[tuple[Cut, ...]] = ("watcher", "producer")


def play(cloud: Cloud, state: CloudState, console: Console) -> Tally:
    """Play the recorded conversations through a deployed cloud.

    Raises:
        LocalCloudError: part of the cloud died, or the deployment refused something.
        Interrupted: by a signal.
    """
    tally = Tally()
    # The longest first: it decides when all are done.
    chats = sorted(recorded_chats(), key=lambda chat: -sum(len(turn.text) for turn in chat.turns))
    with Bars(console, [(chat.title, count_messages(chat)) for chat in chats]) as bars:
        play_all(_dialogues(chats, state.signing_key(cloud.folder), state.url, tally, bars), cloud)
    return tally


def report(tally: Tally, console: Console) -> int:
    """Print what was found, one quantity a line.

    Returns:
        The exit code: 0 if everything came back as it was sent, else 1.
    """
    first_delta = f"{statistics.median(tally.first_delta_s) * 1000:.0f} ms (median)" if tally.first_delta_s else "never"
    quantities = {
        "conversations": f"{tally.conversations}",
        "messages": f"{tally.messages}",
        "pieces": f"{tally.pieces}",
        "frames": f"{tally.frames}",
        "sockets cut and resumed": f"{tally.reconnects}",
        "time to first delta": first_delta,
    }
    console.print()
    for name, quantity in quantities.items():
        console.print(f"{name}: [bold]{quantity}[/]", highlight=False)
    return report_differences(tally.differences, console)


def report_differences(differences: Sequence[str], console: Console) -> int:
    """Print how many there are, and the first of them.

    Returns:
        The exit code: 0 if there are none, else 1.
    """
    console.print(f"differences: [bold]{len(differences)}[/]", highlight=False)
    for difference in differences[:_SHOWN_MAX]:
        console.print(f"[red]{escape(difference)}[/]", highlight=False)
    return 1 if differences else 0


def count_messages(chat: Chat) -> int:
    """Messages on all branches."""
    return sum(1 + len(turn.alternates) for turn in chat.turns)


def recorded_chats() -> list[Chat]:
    """What is said in the demo.

    Raises:
        LocalCloudError: it cannot be read.
    """
    try:
        return read_chats(CHATS_FILE)
    except CommandError as error:
        raise LocalCloudError(str(error)) from error


def _dialogues(chats: Sequence[Chat], key: SigningKey, url: str, tally: Tally, bars: Bars) -> list[Dialogue]:
    """A dialogue a conversation; in the two with the longest first answers a socket is cut."""

    def connect(party: Party) -> Client:
        return connected(party, url, key, tally)

    longest = sorted(range(len(chats)), key=lambda index: -len(chats[index].turns[1].text))
    cuts = dict(zip(longest, _CUTS, strict=False))
    return [
        Dialogue(chat, connect=connect, tally=tally, cut=cuts.get(index), advance=partial(bars.advance, index))
        for index, chat in enumerate(chats)
    ]


def connected(party: Party, url: str, key: SigningKey, tally: Tally) -> Client:
    """A party's client, not connected yet."""
    token = partial(key.mint_token, sub="ada", tenant="demo", scope=["produce" if party == "worker" else "chat"])
    return Client(url, token, settings=_SETTINGS, observe=tally.observe)


def play_all(dialogues: Sequence[Dialogue], cloud: Cloud) -> None:
    """Play them, a few at a time, for as long as the cloud lives.

    Raises:
        LocalCloudError: part of the cloud died, the deployment refused something, or it took too long.
        Interrupted: by a signal.
    """
    asyncio.run(
        attended(
            "the demo",
            _play_all(dialogues),
            check=cloud.require_alive,
            timeout_s=_DEMO_S,
            release=partial(_hang_up, dialogues),
        )
    )


async def _play_all(dialogues: Sequence[Dialogue]) -> None:
    free = asyncio.Semaphore(_AT_ONCE)

    async def play(dialogue: Dialogue) -> None:
        async with free:
            await dialogue.play()

    async with asyncio.TaskGroup() as tasks:
        for dialogue in dialogues:
            tasks.create_task(play(dialogue))


async def _hang_up(dialogues: Sequence[Dialogue]) -> None:
    """End all connections: then nobody waits for replies that will not come."""
    closing = [client.connection.close() for dialogue in dialogues for client in dialogue.clients]
    await asyncio.gather(*closing, return_exceptions=True)
