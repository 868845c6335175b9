"""Two thousand histories, each from a seed, each judged. A failing one prints itself and replays by its number."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.simulation.world import World

# The counts are of all of them together, so one worker lives through them all.
pytestmark = pytest.mark.xdist_group("simulation")

SEEDS: Final = 2_000
CHUNK: Final = 100
KEPT: Final = [
    int(line.split()[0])
    for line in (Path(__file__).parent / "kept_seeds.txt").read_text().splitlines()
    if line and not line.startswith("#")
]


def live(seed: int) -> World:
    """Live through one seed; a failure names it, and how to see it again."""
    world = World(seed)
    try:
        world.live()
    except AssertionError as error:
        last = "\n".join(world.scheduler.trace[-40:])
        pytest.fail(f"seed {seed}: {error}\nreplay: python -m tests.simulation {seed}\n{world.weather}\n{last}")
    return world


@pytest.fixture(scope="module")
def counted() -> dict[str, int]:
    return {"worlds": 0, "cuts": 0, "kills": 0, "losses": 0, "complete": 0}


def test_every_kept_seed_holds() -> None:
    for seed in KEPT:
        live(seed)


@pytest.mark.parametrize("start", range(0, SEEDS, CHUNK))
def test_every_history_keeps_every_promise(start: int, counted: dict[str, int]) -> None:
    for seed in range(start, start + CHUNK):
        world = live(seed)
        counted["worlds"] += 1
        counted["cuts"] += world.network.cuts
        counted["kills"] += world.kills
        counted["losses"] += world.service.losses
        counted["complete"] += sum(run.outcome == "complete" for a in world.answers.values() for run in a.runs)


def test_enough_has_happened(counted: dict[str, int]) -> None:
    """Counts, not luck: worlds in which nothing went wrong would prove nothing."""
    assert counted["worlds"] == SEEDS
    assert counted["cuts"] >= 10_000, counted
    assert counted["kills"] >= 1_000, counted
    assert counted["losses"] >= 1_000, counted
    assert counted["complete"] >= 1_000, counted
