"""The demo of two regions: conversations written in one and watched in the other, and one answered across both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from rich.console import Console
from rich.table import Table

from local.cloud import Cloud
from local.demo import connected, count_messages, play_all, recorded_chats, report_differences
from local.dialogue import Check, Dialogue, Party, Tally
from local.keys import SigningKey
from local.progress import Bars
from local.state import CloudState
from threadkeep_client import Client
from threadkeep_client.cli.chats import Chat
from threadkeep_client.cli.comparing import Sent, compare_messages

_BEGUN_S: Final = 60.0
"""An answer may be whole before the news of it has come to the other region, and then nobody there sees it grow."""


@dataclass(kw_only=True)
class Leg:
    """Some conversations, and where their parties are.

    Attributes:
        places: the region of each party.
        tally: what was done and found.
        hot: conversations that the caches of all regions had, each message of them, when they were first asked.
    """

    places: Mapping[Party, str]
    tally: Tally = field(default_factory=Tally)
    hot: int = 0


def play(cloud: Cloud, state: CloudState, console: Console) -> list[Leg]:
    """Play recorded conversations through both regions of a deployed cloud.

    Raises:
        LocalCloudError: part of the cloud died, or the deployment refused something.
        Interrupted: by a signal.
    """
    key = state.signing_key(cloud.folder)
    urls = {region.region: region.url for region in (state, *state.others)}
    home, other = state.region, state.others[0].region
    legs = [
        Leg(places={"user": other, "worker": other, "device": home}),
        Leg(places={"user": home, "worker": home, "device": other}),
        Leg(places={"user": home, "worker": other, "device": home}),
    ]
    # Without the longest, which alone takes as long as all the others.
    chats = sorted(recorded_chats(), key=lambda chat: sum(len(turn.text) for turn in chat.turns))[:-1]
    cast = [(legs[number % len(legs)], chat) for number, chat in enumerate(chats)]
    with Bars(console, [(chat.title, count_messages(chat)) for _, chat in cast]) as bars:
        dialogues = [
            _dialogue(leg, chat, urls, key, advance=partial(bars.advance, index))
            for index, (leg, chat) in enumerate(cast)
        ]
        play_all(dialogues, cloud)
    return legs


def report(legs: list[Leg], console: Console) -> int:
    """Print what was found, a line a leg.

    Returns:
        The exit code: 0 if everything was the same everywhere, else 1.
    """
    table = Table(box=None, padding=(0, 1))
    for name in ("asked", "answered", "watched"):
        table.add_column(name, no_wrap=True)
    for name in ("chats", "messages", "live", "hot", "differ"):
        table.add_column(name, justify="right", no_wrap=True)
    for leg in legs:
        tally = leg.tally
        places = (leg.places[party] for party in ("user", "worker", "device"))
        counts = (tally.conversations, tally.messages, len(tally.first_delta_s), leg.hot, len(tally.differences))
        table.add_row(*places, *(str(count) for count in counts))
    console.print()
    console.print(table)
    console.print("live: answers seen while they grew; hot: chats that both caches had whole")
    return report_differences([difference for leg in legs for difference in leg.tally.differences], console)


def _dialogue(
    leg: Leg, chat: Chat, urls: Mapping[str, str], key: SigningKey, *, advance: Callable[[], None]
) -> Dialogue:
    def connect(party: Party) -> Client:
        return connected(party, urls[leg.places[party]], key, leg.tally)

    check = _same_everywhere(leg, urls, key)
    return Dialogue(chat, connect=connect, tally=leg.tally, begun_s=_BEGUN_S, advance=advance, check=check)


def _same_everywhere(leg: Leg, urls: Mapping[str, str], key: SigningKey) -> Check:
    """Reads a conversation in every region: from its cache, and the history as a whole."""

    async def check(conversation: str, sent: list[Sent]) -> list[str]:
        path = [message for message in sent if not message.branch]
        differences: list[str] = []
        tiers: list[str] = []
        async with AsyncExitStack() as connections:
            for region, url in urls.items():
                client = await connections.enter_async_context(connected("user", url, key, leg.tally))
                context = await client.read_context(conversation, max_messages=len(path))
                tiers.append(context.tier)
                newest = [await client.whole(message) for message in context.messages]
                differences += compare_messages(f"context in {region}", path[-len(newest) :], newest)
                differences += compare_messages(f"path in {region}", path, await client.history(conversation))
        leg.hot += all(tier == "hot" for tier in tiers)
        return [*differences, *(f"a cache had not all of {conversation}" for tier in tiers if tier != "hot")]

    return check
