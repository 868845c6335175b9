"""Two thousand histories of two regions, each from a seed, each judged. A failing one replays by its number."""

from __future__ import annotations

from collections import Counter
from typing import Final

import pytest

from tests.simulation.regions.judging import judge
from tests.simulation.regions.world import World

SEEDS: Final = 2_000
CHUNK: Final = 500


def live(seed: int) -> World:
    """Live through one seed; a failure names it, and how to see it again."""
    world = World(seed)
    try:
        world.live()
        judge(world)
    except AssertionError as error:
        last = "\n".join(world.scheduler.trace[-40:])
        replay = f"python -m tests.simulation.regions {seed}"
        pytest.fail(f"seed {seed} ({world.kind.value}): {error}\nreplay: {replay}\n{world.weather}\n{last}")
    return world


def counted(world: World) -> Counter[str]:
    """What there was in it of what such a history is about."""
    return Counter(
        {
            "times that the regions lost sight of each other": world.trouble.cuts,
            "evacuations": world.trouble.evacuations,
            "writes held up": world.table.held_up,
            "writes that came too late to count": world.table.superseded,
            "losses of a hot tier": sum(region.losses for region in world.regions.values()),
            "streams begun in two regions": sum(len(regions) > 1 for regions in world.table.opened.values()),
            "streams followed elsewhere": sum(len(viewer.followed) for viewer in world.viewers),
            "producers sent elsewhere": sum(worker.led for worker in world.workers),
            "clients whose region served nobody": sum(client.moved for client in world.clients),
            "gaps spoken of": sum(reader.incomplete for reader in world.readers),
            "messages acknowledged": len(world.accepted),
            "answers complete": sum(
                run.outcome == "complete" for answer in world.answers.values() for run in answer.runs
            ),
            "conversations deleted": int(world.deleted),
            "ids that two users asked for": int(bool(world.contention.contenders)),
            "users told that an id is theirs": sum(one.is_told for one in world.contention.contenders),
            "heads put back": sum(region.counts["HeadsPutBack"] for region in world.regions.values()),
            "messages put back": sum(region.counts["MessagesPutBack"] for region in world.regions.values()),
            "segments": sum(len(found) for found in world.regions[world.home].warm.manifests.values()),
        }
    )


LEAST: Final = {
    "times that the regions lost sight of each other": 1_500,
    "evacuations": 500,
    "writes held up": 4_000,
    "writes that came too late to count": 1_000,
    "losses of a hot tier": 1_000,
    "streams begun in two regions": 40,
    "streams followed elsewhere": 700,
    "producers sent elsewhere": 40,
    "clients whose region served nobody": 200,
    "gaps spoken of": 60,
    "messages acknowledged": 2_000,
    "answers complete": 1_000,
    "conversations deleted": 350,
    "ids that two users asked for": 700,
    "users told that an id is theirs": 500,
    "heads put back": 20,
    "segments": 250,
}
"""In all seeds together: histories in which nothing goes wrong prove nothing."""


@pytest.mark.parametrize("start", range(0, SEEDS, CHUNK))
def test_every_history_of_two_regions_keeps_every_promise(start: int) -> None:
    total: Counter[str] = Counter()
    for seed in range(start, start + CHUNK):
        total += counted(live(seed))
    lacking = {name: total[name] for name, least in LEAST.items() if total[name] < least * CHUNK / SEEDS}
    assert not lacking, "too little of it to prove anything"
